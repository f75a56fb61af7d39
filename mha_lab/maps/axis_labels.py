"""Tokens along the axes of a figure, and the room that they need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axis import XAxis
from matplotlib.ticker import MaxNLocator

from mha_lab.maps.fonts import drawable, families

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_MOST_LABELS = 64
"""Tokens written along one axis; of longer sequences every second, third, ... is written."""

_LONGEST_LABEL = 16
"""Characters of a token that are written."""

LETTER = 0.08
"""Inches: the width of a character."""

_LINE = 0.085
"""Inches: the height of the smallest label."""


def label_axis(axis: Axis, size: int, tokens: Sequence[str] | None, side: float) -> None:
    """Write tokens along an axis of some inches, or positions where there are none."""
    if tokens is None:
        axis.set_major_locator(MaxNLocator(integer=True))
        return
    labels = _shown(tokens)
    points = min(8.5, 72 * side / max(1, len(labels)))
    fonts = families(labels.values())
    axis.set_ticks(list(labels), list(labels.values()), fontsize=points, fontfamily=fonts)
    if isinstance(axis, XAxis):
        for label in axis.get_ticklabels():
            label.set_rotation(90 if _is_wide(label.get_text(), len(labels), side) else 0)


def side_for(tokens: Sequence[Sequence[str]] | None) -> float:
    """Inches that an axis needs for its labels."""
    return _LINE * max((len(_shown(row)) for row in tokens or ()), default=0)


def longest(tokens: Sequence[Sequence[str]] | None) -> int:
    """Characters of the longest label beside rows."""
    return max((len(label) for row in tokens or () for label in _shown(row).values()), default=0)


def longest_turned(tokens: Sequence[Sequence[str]] | None, side: float) -> int:
    """Characters of the longest label that is turned, as it has no room to stand upright."""
    rows = [list(_shown(row).values()) for row in tokens or ()]
    turned = (len(label) for row in rows for label in row if _is_wide(label, len(row), side))
    return max(turned, default=0)


def short(token: str) -> str:
    """A token as matplotlib can write it: a dollar sign would begin a formula."""
    token = drawable(token)
    token = token if len(token) <= _LONGEST_LABEL else token[: _LONGEST_LABEL - 1] + "…"
    return token.replace("$", r"\$")


def _shown(tokens: Sequence[str]) -> dict[int, str]:
    """The tokens that are written along an axis, by position."""
    every = math.ceil(len(tokens) / _MOST_LABELS)
    return {i: short(tokens[i]) for i in range(0, len(tokens), every)}


def _is_wide(label: str, labels: int, side: float) -> bool:
    """Whether a label has no room to stand upright below its column."""
    return (len(label) + 1) * labels * LETTER > side
