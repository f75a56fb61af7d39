"""Attention maps as matplotlib figures, made without pyplot: no window, no state, no backend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from matplotlib.axis import XAxis
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from mha_lab.indices import chosen_indices
from mha_lab.maps import palette
from mha_lab.maps.printable import WRITES, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.image import AxesImage

    from mha_lab.maps.interface import Drawable

_MOST_LABELS = 32
"""Tokens written along one axis; of longer sequences every second, third, ... is written."""

_LONGEST_LABEL = 16
"""Characters of a token that are written."""

_PANEL, _LETTER = 2.7, 0.08
"""Inches: the side of a map, the width of a character."""

_COLUMNS = 4
"""Heads side by side."""

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
    heads = chosen_indices("heads", heads, one.shape[1], of=repr(one.name))
    columns = min(_COLUMNS, len(heads))
    size = _size(one, len(heads), columns)
    figure = Figure(figsize=size, layout="constrained")
    _draw(figure, one, sample, heads, columns, size[0])
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
        ValueError: If there is no map.
    """
    if not maps:
        raise ValueError("maps is empty: there is nothing to draw")
    for one in maps:
        _check_sample(one, sample)
    columns = min(_COLUMNS, max(one.shape[1] for one in maps))
    sizes = [_size(one, one.weights.shape[1], columns) for one in maps]
    width, heights = max(width for width, _ in sizes), [height for _, height in sizes]
    heights = [_TITLE, *heights] if title else heights
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
    if title:  # in a part of its own: layouts give a figure's title no room
        text = printable(title).replace("$", r"\$")
        points = min(12.0, 72 * (width - 0.4) / (0.6 * len(text)))
        parts[0].text(0.2 / width, 0.3, text, fontsize=points, fontweight="bold", va="center")
    for part, one in zip(parts[-len(maps) :], maps, strict=True):
        _draw(part, one, sample, range(one.weights.shape[1]), columns, width)
    return figure


def _check_sample(one: Drawable, sample: int) -> None:
    if isinstance(sample, bool) or not isinstance(sample, int):
        raise TypeError(f"sample={sample!r} must be an int, not {type(sample).__name__}")
    if not 0 <= sample < one.shape[0]:
        there = f"samples 0 to {one.shape[0] - 1}" if one.shape[0] else "none"
        raise ValueError(f"sample={sample} is not in {one.name!r}: it has {there}")


def _size(one: Drawable, heads: int, columns: int) -> tuple[float, float]:
    """Width and height in inches, with which square maps come out square.

    The panels fill what the text leaves: a fixed aspect would make matplotlib's layout cut titles.
    """
    length, source = one.weights.shape[-2:]
    ratio = min(1.6, max(0.5, length / max(1, source)))
    rows = math.ceil(heads / columns)
    left, below = _longest(one.query_tokens, upright=True), _longest(one.key_tokens, upright=False)
    width = (_PANEL + 0.1) * columns + _LETTER * left + 1.2
    height = (_PANEL * ratio + 0.5) * rows + _LETTER * below + 0.5
    return width, height


def _draw(
    figure: Figure | SubFigure,
    one: Drawable,
    sample: int,
    heads: Sequence[int],
    columns: int,
    width: float,
) -> None:
    """Draw the heads of one map, their names, tokens and scale, into a figure of some width."""
    heads = list(heads)
    panels = one.weights[sample, heads].float().cpu().numpy()
    length, source = panels.shape[-2:]
    axes = figure.subplots(math.ceil(len(heads) / columns), columns, squeeze=False).ravel()
    colours = colours_of(panels)
    names = one.head_names(heads)
    # Above the first head, not above the figure: layouts give a figure's title no room of its own.
    title = printable(f"{one.name} ({one.kind})")
    points = min(10.0, 72 * (width - 1) / (0.6 * len(title)))
    for panel, (ax, weights, name) in enumerate(zip(axes, panels, names, strict=False)):
        image = show_weights(ax, weights, colours)
        ax.set_title(f"{title}\n{name}", fontsize=points, loc="left")
        title = ""
        _label(ax.yaxis, length, one.query_tokens[sample] if one.query_tokens else None)
        _label(ax.xaxis, source, one.key_tokens[sample] if one.key_tokens else None)
        # The same tokens stand beside every head: once a row, and below the lowest, is enough.
        ax.yaxis.set_tick_params(labelleft=panel % columns == 0)
        ax.xaxis.set_tick_params(labelbottom=panel + columns >= len(heads))
    for ax in axes[len(heads) :]:
        ax.set_axis_off()
    is_written = any(WRITES in token for token in (one.query_tokens or [[]])[sample])
    figure.supylabel(f"query{WRITES}written" if is_written else "query", fontsize="medium")
    figure.supxlabel("key", fontsize="medium")
    label = "weight (hatched: exactly 0)" if (panels == 0).any() else "weight"
    figure.colorbar(image, ax=list(axes), label=label, fraction=0.05 / columns, pad=0.02)


def show_weights(ax: Axes, weights: Float[np.ndarray, "L S"], colours: dict[str, Any]) -> AxesImage:
    """Draw one head's map in the project's colours, which are those of the page.

    Args:
        ax: Where.
        weights: The map.
        colours: From ``colours_of``.

    Returns:
        The image, for a colour bar. What is exactly 0, as where a mask blocks, is hatched.
    """
    shown = np.ma.masked_equal(weights, 0.0)  # no colour: the hatched ground is seen
    ax.patch.set(facecolor=palette.BLOCKED, edgecolor=palette.HATCH, hatch="////", linewidth=0)
    for spine in ax.spines.values():
        spine.set_color(palette.HATCH)
    return ax.imshow(shown, **colours, interpolation="nearest", aspect="auto")


def colours_of(weights: Float[np.ndarray, "*maps"]) -> dict[str, Any]:
    """One colour scale for some maps: from 0, or as far below it as above where some are less.

    Returns:
        Arguments for ``imshow`` and its like.
    """
    highest = float(np.nanmax(np.abs(weights), initial=0.0)) or 1.0
    if not (weights < 0).any():
        return {"cmap": ListedColormap(palette.ember(256)), "vmin": 0.0, "vmax": highest}
    both = np.concatenate([palette.negative(256)[::-1], palette.ember(256)])
    return {"cmap": ListedColormap(both), "vmin": -highest, "vmax": highest}


def _label(axis: Axis, size: int, tokens: Sequence[str] | None) -> None:
    """Write tokens along an axis, or positions where there are none."""
    if tokens is None:
        axis.set_major_locator(MaxNLocator(integer=True))
        return
    labels = _shown(tokens)
    points = min(8.5, 72 * _PANEL / max(1, len(labels)))
    axis.set_ticks(list(labels), list(labels.values()), fontsize=points)
    if isinstance(axis, XAxis):
        for label in axis.get_ticklabels():
            label.set_rotation(90 if _is_wide(label.get_text(), len(labels)) else 0)


def _shown(tokens: Sequence[str]) -> dict[int, str]:
    """The tokens that are written along an axis, by position."""
    every = math.ceil(len(tokens) / _MOST_LABELS)
    return {i: _short(printable(tokens[i])) for i in range(0, len(tokens), every)}


def _is_wide(label: str, labels: int) -> bool:
    """Whether a label has no room to stand upright below its column."""
    return (len(label) + 1) * labels * _LETTER > _PANEL


def _longest(tokens: Sequence[Sequence[str]] | None, *, upright: bool) -> int:
    """Characters of the longest label along an axis, of those that are turned or of all."""
    rows = [list(_shown(row).values()) for row in tokens or ()]
    return max(
        (len(label) for row in rows for label in row if upright or _is_wide(label, len(row))),
        default=0,
    )


def _short(token: str) -> str:
    """A token as matplotlib can write it: a dollar sign would begin a formula."""
    token = token if len(token) <= _LONGEST_LABEL else token[: _LONGEST_LABEL - 1] + "…"
    return token.replace("$", r"\$")
