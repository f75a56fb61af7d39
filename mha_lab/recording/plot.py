"""Attention maps as matplotlib figures, made without pyplot: no window, no state, no backend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axis import XAxis
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from matplotlib.axis import Axis

    from mha_lab.recording.attention_map import AttentionMap

_MOST_LABELS = 32
"""Tokens written along one axis; of longer sequences every second, third, ... is written."""

_LONGEST_LABEL = 16
"""Characters of a token that are written."""

_COLUMNS = 4
"""Heads side by side."""


def plot_map(one: AttentionMap, sample: int = 0, heads: Sequence[int] | None = None) -> Figure:
    """Draw the heads of one sample as a grid, with one colour scale from 0.

    Args:
        one: The map to draw.
        sample: Which of the map's samples, counted from 0.
        heads: Which of the map's heads, counted from 0; None means all.

    Returns:
        A figure: queries are rows, keys are columns.

    Raises:
        ValueError: If the map has no such sample or head.
    """
    n, h = one.weights.shape[:2]
    heads = list(range(h)) if heads is None else list(heads)
    if not 0 <= sample < n:
        raise ValueError(f"sample={sample} is not in the map: it has samples 0 to {n - 1}")
    if not heads or not all(0 <= head < h for head in heads):
        raise ValueError(f"heads={heads} are not in the map: it has heads 0 to {h - 1}")
    figure = Figure(figsize=_size(one, len(heads)), layout="constrained")
    _draw(figure, one, sample, heads)
    return figure


def plot_maps(maps: Sequence[AttentionMap], sample: int = 0) -> Figure:
    """Draw several maps of one sample below each other, all heads of each.

    Args:
        maps: The maps to draw, at least one.
        sample: Which of the maps' samples, counted from 0.

    Returns:
        A figure.

    Raises:
        ValueError: If there is no map.
    """
    if not maps:
        raise ValueError("maps is empty: there is nothing to draw")
    sizes = [_size(one, one.weights.shape[1]) for one in maps]
    heights = [height for _, height in sizes]
    figure = Figure(figsize=(max(width for width, _ in sizes), sum(heights)), layout="constrained")
    parts = figure.subfigures(len(maps), 1, squeeze=False, height_ratios=heights).ravel()
    for part, one in zip(parts, maps, strict=True):
        _draw(part, one, sample, range(one.weights.shape[1]))
    return figure


def _size(one: AttentionMap, heads: int) -> tuple[float, float]:
    """Width and height in inches."""
    length, source = one.weights.shape[-2:]
    columns = min(_COLUMNS, heads)
    height = min(1.6, max(0.5, length / max(1, source)))
    return 1.2 + 3 * columns, 0.8 + 3 * height * math.ceil(heads / columns)


def _draw(figure: Figure | SubFigure, one: AttentionMap, sample: int, heads: Sequence[int]) -> None:
    """Draw the heads of one map, their names, tokens and scale."""
    heads = list(heads)
    panels = one.weights[sample, heads].float().cpu().numpy()
    length, source = panels.shape[-2:]
    columns = min(_COLUMNS, len(heads))
    axes = figure.subplots(math.ceil(len(heads) / columns), columns, squeeze=False).ravel()
    largest = float(np.nanmax(panels, initial=0.0)) or 1.0
    names = one.head_names(heads)
    # Above the first head, not above the figure: layouts give a figure's title no room of its own.
    title = f"{one.name} ({one.kind})"
    for panel, (ax, weights, name) in enumerate(zip(axes, panels, names, strict=False)):
        image = ax.imshow(weights, vmin=0.0, vmax=largest, cmap="viridis", interpolation="nearest")
        ax.set_aspect("auto" if length != source else "equal")
        ax.set_title(f"{title}\n{name}", fontsize="medium", loc="left")
        title = ""
        _label(ax.yaxis, length, one.query_tokens[sample] if one.query_tokens else None)
        _label(ax.xaxis, source, one.key_tokens[sample] if one.key_tokens else None)
        # The same tokens stand beside every head: once a row, and below the lowest, is enough.
        ax.yaxis.set_tick_params(labelleft=panel % columns == 0)
        ax.xaxis.set_tick_params(labelbottom=panel + columns >= len(heads))
    for ax in axes[len(heads) :]:
        ax.set_axis_off()
    figure.supylabel("query", fontsize="medium")
    figure.supxlabel("key", fontsize="medium")
    figure.colorbar(image, ax=list(axes), label="weight", fraction=0.05 / columns, pad=0.02)


def _label(axis: Axis, size: int, tokens: Sequence[str] | None) -> None:
    """Write tokens along an axis, or positions where there are none."""
    if tokens is None:
        axis.set_major_locator(MaxNLocator(integer=True))
        return
    shown = range(0, size, math.ceil(size / _MOST_LABELS))
    labels = [_short(tokens[i]) for i in shown]
    is_column = isinstance(axis, XAxis)
    crowded = is_column and max(map(len, labels), default=0) * len(labels) > 24
    axis.set_ticks(list(shown), labels, fontsize="small", rotation=90 if crowded else 0)


def _short(token: str) -> str:
    """A token as matplotlib can write it: a dollar sign would begin a formula."""
    token = token if len(token) <= _LONGEST_LABEL else token[: _LONGEST_LABEL - 1] + "…"
    return token.replace("$", r"\$")
