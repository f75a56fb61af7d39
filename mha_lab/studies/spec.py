"""What ``study.yaml`` may say, with the types and ranges that it is held to."""

import shlex
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any, Literal

from annotated_types import Ge

from mha_lab.config.signatures import check_arguments
from mha_lab.errors import UserError
from mha_lab.ranges import Positive, Size, Text

Words = str | list[str]
"""Overrides as ``train`` takes them: a list, or one text with spaces between them."""

Levels = dict[str, Words]
Selector = dict[str, Any]
"""Which rows: for each axis or column of text a value, or a list of them; all others are free."""


@dataclass(frozen=True)
class Claim:
    """One sentence of the source, as something that numbers can contradict.

    Either ``higher`` and ``lower``, an ordering of arms, which a test decides; or ``of``, and a
    limit for its mean.

    Attributes:
        says: the claim.
        measure: the number that it is about.
        at: rows that it is about, on both sides.
        higher: where the number is the larger one.
        lower: where it is the smaller one.
        by: the means differ by more than this.
        test: ``paired`` (by seed; exact permutation test) or ``rank`` (Mann-Whitney U).
        of: where the number has a limit.
        at_least: the limit of its mean.
        at_most: likewise.
        theirs: what the source reports, as text.
    """

    says: Text
    measure: Text
    at: Selector = field(default_factory=dict)
    higher: Selector | None = None
    lower: Selector | None = None
    by: Annotated[float, Ge(0)] = 0.0
    test: Literal["paired", "rank"] = "paired"
    of: Selector | None = None
    at_least: float | None = None
    at_most: float | None = None
    theirs: str = ""

    @property
    def is_ordering(self) -> bool:
        """Whether it compares arms."""
        return self.higher is not None and self.lower is not None


@dataclass(frozen=True)
class FigureSpec:
    """Which figure to draw of the numbers.

    Attributes:
        kind: ``lines`` over a column of text, ``points`` (every run, and the means) over an axis,
            or a ``heatmap`` of means, axis against axis.
        measure: the number drawn.
        at: the rows drawn.
        x: of lines the column, of points the axis; of a heatmap the axis of its columns.
        colour: the axis that lines are coloured by; of a heatmap the axis of its rows.
        panels: the axis or column that makes a panel each.
        log: whether the number's axis is logarithmic.
        caption: what it shows.
    """

    kind: Literal["lines", "points", "heatmap"]
    measure: Text
    x: Text
    at: Selector = field(default_factory=dict)
    colour: str | None = None
    panels: str | None = None
    log: bool = False
    caption: str = ""


@dataclass(frozen=True)
class Quick:
    """What the quick form does otherwise.

    Attributes:
        seeds: how many.
        settings: further overrides; of two of one key this one counts.
        only: levels kept of an axis; of axes not named all.
        samples: as in the study.
    """

    seeds: Size = 2
    settings: Words = ""
    only: dict[str, list[str | int | float]] = field(default_factory=dict)
    samples: Size | None = None


@dataclass(frozen=True)
class Spec:
    """A whole ``study.yaml``.

    Attributes:
        title: the finding's name.
        question: what is asked.
        source: paper and section, and the setting there.
        arms: axis → level → overrides; every combination is an arm. Or a list of such grids.
        settings: overrides of all runs.
        seeds: runs of each arm, with seed 0, 1, ...
        lengths: ranges of lengths that each run is tested on, such as ``11-20``.
        samples: sequences of each range.
        show: the measures in the table.
        claims: what the source says.
        figure: drawn of the numbers, unless the study draws its own.
        quick: the quick form.
        minutes: of the full form on one core, for ``--list``.
    """

    title: Text
    question: Text
    source: Text
    arms: dict[str, Any] | list[dict[str, Any]]
    show: list[str]
    claims: list[dict[str, Any]]
    settings: Words = ""
    seeds: Size = 5
    lengths: list[str] = field(default_factory=list)
    samples: Size = 500
    figure: dict[str, Any] | None = None
    quick: dict[str, Any] = field(default_factory=dict)
    minutes: Positive | None = None


def words(text: Words) -> list[str]:
    """Overrides as a list."""
    return shlex.split(text) if isinstance(text, str) else list(text)


def make(kind: type[Any], place: str, tree: Any) -> Any:
    """Make one of the above of what a file says.

    Args:
        kind: which.
        place: named in a refusal.
        tree: its keys and values.

    Raises:
        UserError: no mapping, an unknown or missing key, or a value of another type.
    """
    if not isinstance(tree, dict):
        raise UserError(f"{place} must hold keys and values")
    tree = {str(key): value for key, value in tree.items()}
    for key, value in tree.items():  # 1 is a number too
        if key in ("at_least", "at_most", "by", "minutes") and type(value) is int:
            tree[key] = float(value)
    check_arguments(place, kind, tree)
    for one in fields(kind):
        is_needed = one.default is MISSING and one.default_factory is MISSING
        if is_needed and one.name not in tree:
            raise UserError(f"{place} must say {one.name}:")
    return kind(**tree)
