"""What a sweep was asked to do: its settings, the fixed overrides, and the space.

``python -m mha_lab sweep +experiment=sort sweep=optuna model.embed_dim=32,64 seed=3`` mixes three
kinds of words: ``sweep=`` and ``sweep.KEY=`` are settings, a word with several values spans the
space, and every other word is fixed in all trials.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import ChoiceSweep, Override, Transformer

from mha_lab import config
from mha_lab.config import trust
from mha_lab.config.words import parse_words, plain
from mha_lab.errors import UserError
from mha_lab.sweeping.settings import Settings, load

_SPACE = "sweep.space."


@dataclass(frozen=True)
class Plan:
    """A sweep, as every process of it knows it: plain text that can be sent anywhere.

    Args:
        settings: the settings.
        overrides: fixed in all trials, as ``train`` takes them.
        space: for each key that varies, its values in Hydra's override syntax.
        name: of the study.
        folder: of the sweep.
    """

    settings: Settings
    overrides: list[str]
    space: dict[str, str]
    name: str
    folder: Path

    @property
    def question(self) -> dict[str, Any]:
        """What must be the same for two sweeps to be one study.

        How many trials, where and by how many processes may differ.
        """
        kept = ("objectives", "seeds", "sampler", "sampler_seed", "pruner", "prune_by")
        settings = {key: value for key, value in asdict(self.settings).items() if key in kept}
        return {"space": self.space, **settings}


def read_plan(words: Sequence[str], *, trusted: Sequence[str] = ()) -> Plan:
    """Sort the words of the command line into a plan.

    Args:
        words: what follows ``python -m mha_lab sweep``.
        trusted: modules that a file of settings may name besides this project's own options.

    Raises:
        UserError: a word that cannot be read or is given twice, an unknown setting or value.
    """
    parsed = parse(words)
    chosen = [item for item in parsed if item.key_or_group == "sweep"]
    option = str(chosen[0].value()) if chosen else "optuna"
    settings = load(option, trusted)
    space = _flatten(settings.space)
    _check_space(space, Path(option), trusted)
    fixed: list[str] = []
    given: dict[str, str] = {}
    for item in parsed:
        word = str(item.input_line)
        prefixed, _, text = word.partition("=")
        key = item.key_or_group.removeprefix(_SPACE)
        if key == "sweep":
            continue
        if item.key_or_group.startswith(_SPACE):
            prefixed, text = key, _unquoted(item, text)
            if text == "null":
                space.pop(key, None)
                continue
        elif key == "sweep.space":
            raise UserError(
                "sweep.space is changed key by key: sweep.space.KEY=VALUES adds or replaces one, "
                "sweep.space.KEY=null takes it out"
            )
        elif key.startswith("sweep."):
            settings.set(key.removeprefix("sweep."), _value(item))
            continue
        elif key.startswith("hydra."):
            raise UserError(f"{key} means nothing to a sweep: say sweep.folder=FOLDER")
        elif not item.is_sweep_override():
            fixed.append(word)
        if key in given:
            raise UserError(
                f"{key} is given twice ({given[key]} and {word}): fix it or vary it, not both"
            )
        given[key] = word
        # The command line wins over the file.
        space = {name: values for name, values in space.items() if name.lstrip("+") != key}
        if item.is_sweep_override() or item.key_or_group.startswith(_SPACE):
            space[prefixed] = text
    settings.check()
    settings.space = {}
    name = settings.name or _default_name(fixed)
    return Plan(settings, fixed, space, name, Path(settings.folder or f"outputs/sweeps/{name}"))


def parse(words: Sequence[str]) -> list[Override]:
    """Read overrides in Hydra's syntax.

    Raises:
        UserError: one cannot be read.
    """
    for word in words:
        if word.startswith("-"):
            raise UserError(f"sweep knows no option {word!r}; its settings are sweep.KEY=VALUE")
    return parse_words(words)


def _check_space(space: Mapping[str, str], file: Path, trusted: Sequence[str]) -> None:
    """A space that is read from a file may choose no code that is not trusted."""
    own = trust.own_targets(config.config_folder())
    for key, text in space.items():
        (item,) = parse([f"{key}={text}"])
        value = item.value()
        for choice in value.list if isinstance(value, ChoiceSweep) else [value]:
            trust.check({key: plain(choice)}, file, own, trusted)


def _value(item: Override) -> Any:
    """The value of a setting; ``a,b`` is a list here."""
    value = item.value()
    return [Transformer.str(x) for x in value.list] if isinstance(value, ChoiceSweep) else value


def _unquoted(item: Override, text: str) -> str:
    """What a second pair of quotes holds, as in ``'sweep.space.seed="range(0, 3)"'``."""
    return text if item.is_sweep_override() or item.value() is None else str(item.value())


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """``{"model": {"embed_dim": "choice(2, 3)"}}`` as ``{"model.embed_dim": "choice(2, 3)"}``."""
    flat: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = str(value)
    return flat


def _default_name(fixed: Sequence[str]) -> str:
    """The experiment's name, or the task's."""
    chosen = dict(word.lstrip("+").partition("=")[::2] for word in fixed)
    return chosen.get("experiment") or chosen.get("task") or "sweep"
