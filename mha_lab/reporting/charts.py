"""Lines of groups as one chart, or as a row of panels where there are more lines than colours."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mha_lab.reporting.drawing import INK, MUTED, SERIES, place
from mha_lab.reporting.grouping import Group

MOST_PANELS = 24
# Inches: beside and below the axes, a letter of a name, a line of text.
LEFT, BELOW, LETTER, LINE = 0.7, 0.52, 0.08, 0.21
_WIDTH, _HEIGHT = 2.5, 2.2
_PANEL_WIDTH, _PANEL_HEIGHT, _GAP = 2.3, 1.55, 0.22
_MOST_COLUMNS = 4

T = TypeVar("T")
Draw = Callable[[Axes, T, str], float]
"""Draws one line in a colour and returns the height of its right end."""


@dataclass(frozen=True)
class Shade:
    """Where a group is drawn: in which panel, in which colour, and how both are called."""

    panel: str
    name: str
    colour: str


def shades(groups: Sequence[Group]) -> list[Shade]:
    """Give each group a panel and a colour.

    Up to seven groups share one panel. More are told apart by the last of their keys that has two
    to seven values, as colours, and by the others, as panels; else each has a panel of its own.
    """
    if len(groups) <= len(SERIES):
        return [Shade("", group.label, SERIES[i]) for i, group in enumerate(groups)]
    values = [list(dict.fromkeys(words)) for words in zip(*(g.words for g in groups), strict=True)]
    fit = [i for i, found in enumerate(values) if 2 <= len(found) <= len(SERIES)]
    if not fit:
        return [Shade(group.label, "", SERIES[0]) for group in groups]
    key = fit[-1]
    return [
        Shade(
            " · ".join(word for i, word in enumerate(group.words) if word and i != key),
            group.words[key] or "–",
            SERIES[values[key].index(group.words[key])],
        )
        for group in groups
    ]


def draw_lines(
    lines: Sequence[tuple[Shade, T]], draw: Draw[T], x_label: str, y_label: str
) -> tuple[Figure, str]:
    """Draw all lines.

    Returns:
        The figure; and what its caption must say of panels that were left out.
    """
    panels: dict[str, list[tuple[Shade, T]]] = {}
    for shade, line in lines:
        panels.setdefault(shade.panel, []).append((shade, line))
    if list(panels) == [""]:
        return _together(lines, draw, x_label, y_label), ""
    shown = list(panels)[:MOST_PANELS]
    left_out = len(panels) - len(shown)
    figure = _panels([panels[panel] for panel in shown], draw, x_label, y_label)
    return figure, f" {left_out} more panels are left out." if left_out else ""


def _together(
    lines: Sequence[tuple[Shade, T]], draw: Draw[T], x_label: str, y_label: str
) -> Figure:
    names = 0.3 + LETTER * max(len(shade.name) for shade, _ in lines)
    figure = Figure(figsize=(LEFT + _WIDTH + names, BELOW + _HEIGHT + 0.15))
    axes = place(figure, LEFT, BELOW, _WIDTH, _HEIGHT)
    ends = [(draw(axes, line, shade.colour), shade.name, shade.colour) for shade, line in lines]
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.margins(x=0.01)
    _name_lines(axes, ends)
    return figure


def _name_lines(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Write names of lines at their right ends, moved apart where they would overlap.

    Args:
        axes: all lines drawn.
        ends: for each line the height of its end (data), its name and its colour.
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    ends = sorted(ends)
    heights = [min(1.0, max(0.0, float(to_axes.transform((x, y))[1]))) for y, _, _ in ends]
    for (_, name, colour), y in zip(ends, spread(heights, LINE / _HEIGHT), strict=True):
        _key(axes, 1.03, y, 0.05, name, colour)


def _key(axes: Axes, x: float, y: float, width: float, name: str, colour: str) -> None:
    """A piece of a line and its name, in coordinates of the axes."""
    at: Any = {"transform": axes.transAxes, "clip_on": False}
    axes.add_line(Line2D([x, x + width], [y, y], color=colour, lw=2.2, **at))
    axes.text(x + 1.4 * width, y, name, va="center", fontsize=10, **at)


def spread(heights: list[float], room: float) -> list[float]:
    """Move heights apart by at least ``room``, each as little as possible, inside 0 to 1.

    Args:
        heights: ascending.
        room: the least distance.
    """
    last = len(heights) - 1
    blocks: list[tuple[float, int]] = []  # where the first label of a block would be, times count
    for i, height in enumerate(heights):
        total, count = min(max(height, i * room), 1 - (last - i) * room), 1
        while blocks and _first(blocks[-1]) + blocks[-1][1] * room > _first((total, count)):
            before, members = blocks.pop()
            total, count = before + total - count * members * room, members + count
        blocks.append((total, count))
    return [_first(block) + i * room for block in blocks for i in range(block[1])]


def _first(block: tuple[float, int]) -> float:
    return block[0] / block[1]


def _panels(
    panels: Sequence[Sequence[tuple[Shade, T]]], draw: Draw[T], x_label: str, y_label: str
) -> Figure:
    columns = min(_MOST_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    step = _PANEL_WIDTH + _GAP, _PANEL_HEIGHT + _GAP + LINE
    names = dict.fromkeys((s.name, s.colour) for panel in panels for s, _ in panel if s.name)
    head = 2 * LINE if names else 0.0
    width, height = LEFT + columns * step[0], BELOW + rows * step[1] - _GAP + head
    figure = Figure(figsize=(width, height))
    first: Axes | None = None
    for i, panel in enumerate(panels):
        row, column = divmod(i, columns)
        bottom = height - head - (row + 1) * step[1] + _GAP
        axes = place(figure, LEFT + column * step[0], bottom, _PANEL_WIDTH, _PANEL_HEIGHT, first)
        first = first or axes
        for shade, line in panel:
            draw(axes, line, shade.colour)
        axes.set_title(panel[0][0].panel, fontsize=9.5)
        axes.margins(x=0.02)
        axes.tick_params(labelleft=column == 0, labelbottom=i + columns >= len(panels))
    label: Any = {"color": MUTED, "ha": "center"}
    figure.text((LEFT + columns * step[0] / 2) / width, 0.12 / height, x_label, **label)
    figure.text(0.12 / width, 0.5, y_label, rotation=90, va="center", **label)
    _legend(figure, list(names))
    return figure


def _legend(figure: Figure, names: list[tuple[str, str]]) -> None:
    """The names of the colours, in a row above all panels."""
    width, height = figure.get_size_inches()
    x = LEFT
    for name, colour in names:
        y = (height - 0.16) / height
        figure.add_artist(Line2D([x / width, (x + 0.2) / width], [y, y], color=colour, lw=2.2))
        figure.text((x + 0.27) / width, y, name, va="center", color=INK, fontsize=10)
        x += 0.5 + LETTER * len(name)
