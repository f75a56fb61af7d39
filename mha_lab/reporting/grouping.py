"""Groups of runs that differ only by their seed: what a mean is taken over."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mha_lab.errors import UserError, nearest
from mha_lab.reporting.damage import CHOICES
from mha_lab.reporting.finding import natural_key
from mha_lab.reporting.reading import Run

# What these say in Python's words, the choice has said already.
REPEATING = ("_target_", "_partial_")
_PARTS = ("attention/weighting", "attention/pattern", "attention/mixing")
_DEFAULT_CHOICES = ("task", "attention", *_PARTS, "model", "position")
_TOLD = {"attention": ("attention_parts", ""), "position": ("position_of_attention", "own: ")}
_MOST_OTHER_KEYS = 2  # where more keys than these differ, it was a search and not a grid


@dataclass(frozen=True)
class Group:
    """The runs with the same values of the ``by`` keys.

    Attributes:
        by: the keys.
        key: their values, as text.
        runs: all runs, complete or not.
    """

    by: tuple[str, ...]
    key: tuple[str, ...]
    runs: list[Run]

    @property
    def complete(self) -> list[Run]:
        """The runs whose numbers count."""
        return [run for run in self.runs if run.is_complete]

    @property
    def models(self) -> list[str]:
        """The models that its runs are of."""
        return sorted({run.text("model") for run in self.runs if "model" in run.values})

    @property
    def label(self) -> str:
        """A short name: ``custom · learned``, ``lr 0.003``, ``no position``."""
        return " · ".join(word for word in self.words if word)

    @property
    def words(self) -> list[str]:
        """Its values, each so that it can be read without its key."""
        values = zip(self.by, self.key, self.shown, strict=True)
        return [_word(key, value, shown) for key, value, shown in values]

    def _told(self, key: str) -> str:
        """What all summaries say of a choice beside its name: ``entmax15``, ``own: a window``."""
        if key not in _TOLD or any(other.startswith(f"{key}/") for other in self.by):
            return ""
        name, before = _TOLD[key]
        texts = {str(run.summary.get(name, "")) for run in self.runs}
        text = texts.pop() if len(texts) == 1 else ""
        return f"{before}{text}" if text else ""

    @property
    def shown(self) -> list[str]:
        """Its values as tables show them: a number in four digits, a choice with what it brings."""
        values = zip(self.by, map(short_number, self.key), strict=True)
        return [
            f"{value} ({told})" if (told := self._told(key)) else value for key, value in values
        ]

    @property
    def mixed(self) -> dict[str, list[str]]:
        """The keys in which the complete runs differ, with their values; choices come first.

        The seed is left out, and so is what the choices have said already.
        """
        known = dict.fromkeys((*CHOICES, *(key for run in self.complete for key in run.values)))
        keys = [key for key in known if key != "seed" and key.split(".")[-1] not in REPEATING]
        values = {key: {run.text(key) for run in self.complete} for key in keys}
        return {key: sorted(v, key=natural_value) for key, v in values.items() if len(v) > 1}


def group_runs(runs: Sequence[Run], by: Sequence[str]) -> list[Group]:
    """Sort runs into groups; an incomplete one of which too little is known belongs to none."""
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        if run.is_complete or all(_is_known(run, key) for key in by):
            found.setdefault(tuple(run.text(key) for key in by), []).append(run)
    keys = sorted(found, key=lambda key: [natural_value(value) for value in key])
    return [Group(tuple(by), key, found[key]) for key in keys]


def _is_known(run: Run, key: str) -> bool:
    return key in run.values or (key in _PARTS and "attention" in run.values)


def check_by(by: Sequence[str], runs: Sequence[Run]) -> None:
    """Refuse a key that no run's config has.

    Raises:
        UserError: names the key, and the nearest right one.
    """
    known = {key for run in runs for key in run.values}
    for key in by:
        if key not in known:
            same_end = [name for name in sorted(known) if name.split(".")[-1] == key]
            hint = f"; did you mean {same_end[0]!r}?" if same_end else nearest(key, known)
            raise UserError(
                f"by={key}: no run's config has this key{hint} (it may be a choice, such as "
                f"{', '.join(CHOICES)}, or a dotted key, such as optimizer.lr)"
            )
        if by.count(key) > 1:
            raise UserError(f"by= names {key!r} twice")


def default_by(runs: Sequence[Run]) -> tuple[str, ...]:
    """What the runs were evidently made to compare: the choices, or the few values, that differ."""
    by: list[str] = []
    for key in (*_DEFAULT_CHOICES, *_other_mixed(runs)):
        if len(group_runs(runs, [*by, key])) > max(1, len(group_runs(runs, by))):
            by.append(key)
    return tuple(by) or ("attention",)


def _other_mixed(runs: Sequence[Run]) -> list[str]:
    groups = group_runs(runs, _DEFAULT_CHOICES)
    mixed = {key for group in groups for key in group.mixed if key not in CHOICES}
    return sorted(mixed) if len(mixed) <= _MOST_OTHER_KEYS else []


def natural_value(value: Any) -> tuple[int, float, list[tuple[int, str]]]:
    """A key that sorts numbers by their value, and before words."""
    try:
        return (0, float(value), [])
    except (TypeError, ValueError):
        return (1, 0.0, natural_key(str(value)))


def short_number(text: str) -> str:
    """``0.02418`` for ``0.024180549877059015``; whole numbers and words stay as they are."""
    try:
        number = float(text)
    except ValueError:
        return text
    short = f"{number:.4g}"
    return text if number.is_integer() or len(short) >= len(text) else short


def _word(key: str, value: str, shown: str) -> str:
    name = re.split(r"[./]", key)[-1]
    if key in _PARTS and value == "–":
        return ""  # attention that is not made of parts
    if value == "none":
        return f"no {name}" if shown == value else shown.removeprefix("none ").strip("()")
    return shown if key in (*CHOICES, *_PARTS) else f"{name} {shown}"
