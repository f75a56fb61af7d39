"""The folders of a multirun are named by what differs between its runs."""

from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, Transformer
from hydra.errors import HydraException

_SUBDIR = "hydra.sweep.subdir"


def subdir_words(arguments: Sequence[str], groups: Sequence[str]) -> list[str]:
    """An override that names each run's folder: ``0_builtin_seed3`` for ``attention=... seed=...``.

    Args:
        arguments: the command line of ``train -m``.
        groups: the config groups; of these the option alone is enough.

    Returns:
        The one override, which Hydra fills in for each run; empty where the command line names the
        folders itself, or cannot be read (Hydra will say why).
    """
    words = [word for word in arguments if "=" in word and not word.startswith("-")]
    if any(word.lstrip("+").startswith(f"{_SUBDIR}=") for word in words):
        return []
    try:
        parsed = OverridesParser.create().parse_overrides(words)
    except HydraException:
        return []
    varied = [_part(item, groups) for item in parsed if _can_be_a_name(item)]
    return [f"{_SUBDIR}='{'_'.join(['${hydra:job.num}', *varied])}'"] if varied else []


def _can_be_a_name(item: Override) -> bool:
    """Whether a key varies, over values that a folder can be called by."""
    if not item.is_sweep_override():
        return False
    value = item.value()
    chosen = value.list if isinstance(value, ChoiceSweep) else []
    texts = [Transformer.str(one) for one in chosen if not isinstance(one, dict | list)]
    return len(texts) == len(chosen) and not any("/" in text for text in texts)


def _part(item: Override, groups: Sequence[str]) -> str:
    """How one key's value appears in a name, as an interpolation of each run's own config."""
    key = item.key_or_group
    if key in groups or "/" in key:
        return f"${{hydra:runtime.choices.{key}}}"
    return f"{key.split('.')[-1]}${{{key}}}"
