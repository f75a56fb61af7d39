"""Folders are named by what was chosen: of a multirun, by what differs between its runs."""

from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, Transformer
from hydra.errors import HydraException

_SUBDIR = "hydra.sweep.subdir"
_RUN_DIR = "hydra.run.dir"
_ATTENTION = "${hydra:runtime.choices.attention}"
_POSITION = "${hydra:runtime.choices.position}"


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


def run_dir_words(
    arguments: Sequence[str], usual: str, without_attention: Sequence[str] = ()
) -> list[str]:
    """An override that names a run's folder by the parts of its attention too, or without it.

    Args:
        arguments: the command line of ``train``.
        usual: the folder's name as the config has it.
        without_attention: models that have none, and no positions then.

    Returns:
        The one override, with which ``composed`` becomes ``composed_entmax15``; empty where no part
        is chosen and the model has attention, or the command line names the folder itself.
    """
    keys = [word.partition("=")[0].lstrip("+") for word in arguments]
    parts = [key for key in keys if key.startswith("attention/")]
    if _RUN_DIR in keys:
        return []
    if {f"model={name}" for name in without_attention} & set(arguments):
        return [f"{_RUN_DIR}='{usual.replace(f'{_ATTENTION}_{_POSITION}_', '')}'"]
    if not parts:
        return []
    named = "_".join([_ATTENTION, *(f"${{hydra:runtime.choices.{key}}}" for key in parts)])
    return [f"{_RUN_DIR}='{usual.replace(_ATTENTION, named)}'"]


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
