"""Attention maps as matplotlib figures, made without pyplot: no window, no state, no backend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.figure import Figure, SubFigure

from mha_lab.indices import chosen_indices
from mha_lab.maps.axis_labels import LETTER, label_axis, longest, longest_turned, side_for
from mha_lab.maps.colours import colours_of, show_weights
from mha_lab.maps.fonts import drawable, families
from mha_lab.maps.printable import WRITES
from mha_lab.maps.words import described, values_of

if TYPE_CHECKING:
    from mha_lab.maps.interface import Drawable

_SIDE, _WIDE = 2.7, 4.0
"""Inches: the least side of a map, and the side from which on two stand side by side, not four."""

_TITLE = 0.4
"""Inches: the line above all maps."""


def plot_map(one: Drawable, sample: int = 0, heads: int | Sequence[int] | None = None) -> Figure:
    """Draw the heads of one sample as a grid, with one colour scale; what is exactly 0 is hatched.

    Args:
        one: The map to draw.
        sample: Which of the map's samples, counted from 0.
        heads: How many of the map's heads, from the first, or which ones, counted from 0; None
            means all.

    Returns:
        A figure: queries are rows, keys are columns.

    Raises:
        ValueError: If the map has no such sample or head.
    """
    _check_sample(one, sample)
    chosen = chosen_indices("heads", heads, one.shape[1], of=repr(one.name))
    grid = _grid([one], len(chosen))
    size = grid.size_of(one, len(chosen))
    figure = Figure(figsize=size, layout="constrained")
    _draw(figure, one, sample, chosen, grid, size[0])
    return figure


def plot_maps(maps: Sequence[Drawable], sample: int = 0, *, title: str = "") -> Figure:
    """Draw several maps of one sample below each other, all heads of each.

    Args:
        maps: The maps to draw, at least one.
        sample: Which of the maps' samples, counted from 0.
        title: A line above all, such as the model's input and output.

    Returns:
        A figure.

    Raises:
        ValueError: If there is no map, or one has no such sample.
    """
    if not maps:
        raise ValueError("maps is empty: there is nothing to draw")
    for one in maps:
        _check_sample(one, sample)
    grid = _grid(maps, max(one.shape[1] for one in maps))
    sizes = [grid.size_of(one, one.shape[1]) for one in maps]
    width, heights = max(width for width, _ in sizes), [height for _, height in sizes]
    heights = [_TITLE, *heights] if title else heights
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
    if title:  # in a part of its own: layouts give a figure's title no room
        text = drawable(title)
        points, fonts = min(12.0, 72 * (width - 0.4) / (0.6 * len(text))), families([text])
        parts[0].text(
            0.2 / width, 0.3, text.replace("$", r"\$"), fontsize=points, fontweight="bold",
            fontfamily=fonts, va="center",
        )  # fmt: skip
    for part, one in zip(parts[-len(maps) :], maps, strict=True):
        _draw(part, one, sample, range(one.shape[1]), grid, width)
    return figure


@dataclass(frozen=True)
class _Grid:
    """How large one head's map is, in inches, and how many stand side by side."""

    side: float
    columns: int

    def height_of(self, one: Drawable) -> float:
        """The height with which square maps come out square."""
        length, source = one.shape[2:]
        ratio = min(1.6, max(0.5, length / max(1, source)))
        return max(self.side * ratio, side_for(one.query_tokens))

    def size_of(self, one: Drawable, heads: int) -> tuple[float, float]:
        """Width and height of all heads of a map, with the text around them.

        The panels fill what the text leaves: a fixed aspect would make matplotlib's layout cut
        titles.
        """
        rows = math.ceil(heads / self.columns)
        left, below = longest(one.query_tokens), longest_turned(one.key_tokens, self.side)
        width = (self.side + 0.1) * self.columns + LETTER * left + 1.2
        height = (self.height_of(one) + 0.5) * rows + LETTER * below + 0.5
        return width, height


def _grid(maps: Sequence[Drawable], heads: int) -> _Grid:
    side = max([_SIDE, *(side_for(one.key_tokens) for one in maps)])
    return _Grid(side, min(4 if side < _WIDE else 2, heads))


def _check_sample(one: Drawable, sample: int) -> None:
    if isinstance(sample, bool) or not isinstance(sample, int):
        raise TypeError(f"sample={sample!r} must be an int, not {type(sample).__name__}")
    if not 0 <= sample < one.shape[0]:
        there = f"samples 0 to {one.shape[0] - 1}" if one.shape[0] else "none"
        raise ValueError(f"sample={sample} is not in {one.name!r}: it has {there}")


def _draw(
    figure: Figure | SubFigure,
    one: Drawable,
    sample: int,
    heads: Sequence[int],
    grid: _Grid,
    width: float,
) -> None:
    """Draw the heads of one map, their names, tokens and scale, into a figure of some width."""
    heads = list(heads)
    panels = one.weights[sample, heads].float().cpu().numpy()
    length, source = panels.shape[-2:]
    rows = math.ceil(len(heads) / grid.columns)
    axes = figure.subplots(rows, grid.columns, squeeze=False).ravel()
    colours = colours_of(panels)
    # Above the first head, not above the figure: layouts give a figure's title no room of its own.
    title = drawable(described(one))
    fonts, points = families([title]), min(10.0, 72 * (width - 1) / (0.6 * len(title)))
    title = title.replace("$", r"\$")
    for panel, (ax, weights, name) in enumerate(
        zip(axes, panels, one.head_names(heads), strict=False)
    ):
        image = show_weights(ax, weights, colours)
        ax.set_title(f"{title}\n{name}", fontsize=points, loc="left", fontfamily=fonts)
        title = ""
        queries = one.query_tokens[sample] if one.query_tokens else None
        label_axis(ax.yaxis, length, queries, grid.height_of(one))
        label_axis(ax.xaxis, source, one.key_tokens[sample] if one.key_tokens else None, grid.side)
        # The same tokens stand beside every head: once a row, and below the lowest, is enough.
        ax.yaxis.set_tick_params(labelleft=panel % grid.columns == 0)
        ax.xaxis.set_tick_params(labelbottom=panel + grid.columns >= len(heads))
    for ax in axes[len(heads) :]:
        ax.set_axis_off()
    is_written = any(WRITES in token for token in (one.query_tokens or [[]])[sample])
    figure.supylabel(f"query{WRITES}written" if is_written else "query", fontsize="medium")
    figure.supxlabel("key", fontsize="medium")
    label = values_of(one) + " (hatched: exactly 0)" * bool((panels == 0).any())
    figure.colorbar(image, ax=list(axes), label=label, fraction=0.05 / grid.columns, pad=0.02)
