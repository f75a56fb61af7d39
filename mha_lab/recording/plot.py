"""Attention maps as matplotlib figures, made without pyplot: no window, no state, no backend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mha_lab.recording.attention_map import AttentionMap

_MOST_LABELS = 32
"""Tokens written along one axis; of longer sequences every second, third, ... is written."""


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
    panels = one.weights[sample, heads].float().cpu().numpy()
    columns = min(4, len(heads))
    rows = math.ceil(len(heads) / columns)
    length, source = panels.shape[-2:]
    height = min(1.6, max(0.5, length / max(1, source)))
    figure = Figure(figsize=(1.2 + 3 * columns, 0.8 + 3 * height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    largest = float(np.nanmax(panels, initial=0.0)) or 1.0
    for ax, weights, name in zip(axes, panels, one.head_names(heads), strict=False):
        image = ax.imshow(weights, vmin=0.0, vmax=largest, cmap="viridis", interpolation="nearest")
        ax.set_aspect("auto" if length != source else "equal")
        ax.set_title(name, fontsize="medium", loc="left")
        _label(ax, "y", length, one.query_tokens[sample] if one.query_tokens else None)
        _label(ax, "x", source, one.key_tokens[sample] if one.key_tokens else None)
    for ax in axes[len(heads) :]:
        ax.set_axis_off()
    figure.suptitle(f"{one.name} ({one.kind})")
    figure.supylabel("query", fontsize="medium")
    figure.supxlabel("key", fontsize="medium")
    figure.colorbar(image, ax=list(axes), label="weight", fraction=0.05 / columns, pad=0.02)
    return figure


def _label(ax: Axes, axis: str, size: int, tokens: Sequence[str] | None) -> None:
    """Write tokens along an axis, or positions where there are none."""
    if tokens is None:
        return
    every = math.ceil(size / _MOST_LABELS)
    shown = range(0, size, every)
    # A dollar sign would begin a formula.
    labels = [tokens[i].replace("$", r"\$") for i in shown]
    if axis == "y":
        ax.set_yticks(list(shown), labels, fontsize="small")
        return
    upright = max(map(len, labels), default=0) * len(labels) <= 24
    ax.set_xticks(list(shown), labels, fontsize="small", rotation=0 if upright else 90)
