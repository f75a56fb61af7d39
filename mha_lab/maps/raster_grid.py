"""Quick pictures of attention maps, for drawing during training.

A matplotlib figure of four heads takes about 100 ms; this takes about 2 ms. ``AttentionMap.plot``
makes the figures that people edit and print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from mha_lab.maps.raster import BLOCKED, HATCH, WHITE, Raster, colour
from mha_lab.maps.raster_text import FONT_SIZE, LINE, draw_text

_HATCHED = 5  # pixels between two lines
_GAP = 8
_COLUMNS = 4
_MAP_PIXELS = 240
_LARGEST_CELL = 13  # just enough for a line of text

_Pixels = NDArray[np.uint8]
_Labels = list[tuple[int, _Pixels]]  # place among the tokens, and the text


def draw_maps(
    maps: Float[np.ndarray, "P L S"],
    *,
    title: str = "",
    names: Sequence[str] = (),
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    same_scale: bool = True,
    longest_label: int = 16,
    zero_is_blocked: bool = True,
    by_root: bool = True,
) -> Raster:
    """Draw several maps of one shape as a grid of panels, coloured from 0 to the largest weight.

    Args:
        maps: P maps (P, L, S).
        title: A line above all; the largest weight is added to it where the scale is the same.
        names: One name a panel.
        row_labels: L labels of the rows, such as query tokens; written at the left.
        column_labels: S labels of the columns, such as key tokens; written below.
        same_scale: Whether all panels have one colour scale, or each its own, told by its name.
        longest_label: Longer labels are cut to so many characters.
        zero_is_blocked: Whether what is exactly 0 is hatched, or has the colour of 0.
        by_root: Whether colour grows with the root of a weight, as in the page and in figures, or
            in proportion.

    Returns:
        The picture. Negative weights have colours of their own; what is no finite number is grey.
    """
    maps = np.where(np.isfinite(maps), maps, np.nan)
    axes = None if same_scale else (1, 2)
    largest = np.nanmax(np.abs(maps), axis=axes, keepdims=True, initial=0.0)
    if same_scale:
        title = f"{title}   {_range(largest, maps)}".strip()
    else:
        scales = [_range(top, panel) for top, panel in zip(largest, maps, strict=True)]
        names = [f"{name}   {scale}" for name, scale in zip(names, scales, strict=True)]
    cell = max(1, min(_LARGEST_CELL, _MAP_PIXELS // max(1, *maps.shape[1:])))
    colours = colour(maps, largest, zero_is_blocked=zero_is_blocked, by_root=by_root)
    columns = [
        (i, text if text.shape[1] <= cell else np.rot90(text))  # upright where there is room
        for i, text in _texts(column_labels, cell, longest_label)
    ]
    return Raster(
        _arranged(
            _enlarged(colours, cell),
            cell,
            draw_text(title),
            [draw_text(name) for name in names],
            _texts(row_labels, cell, longest_label),
            columns,
        )
    )


def _enlarged(colours: _Pixels, cell: int) -> _Pixels:
    """Each weight as a square, what is blocked with lines across."""
    pixels = colours.repeat(cell, axis=1).repeat(cell, axis=2)
    lines = np.add.outer(np.arange(pixels.shape[1]), np.arange(pixels.shape[2])) % _HATCHED == 0
    pixels[(pixels == BLOCKED) & lines] = HATCH
    return pixels


def _arranged(
    panels: _Pixels,
    cell: int,
    title: _Pixels,
    names: Sequence[_Pixels],
    rows: _Labels,
    columns: _Labels,
) -> _Pixels:
    """Panels (P, height, width) in a grid: names above each, labels beside and below the grid."""
    count, height, width = panels.shape
    across = min(_COLUMNS, max(1, count))
    left = _GAP + max((text.shape[1] + 4 for _, text in rows), default=0)
    step_x = _GAP + max([width, *(text.shape[1] for text in names)])
    step_y = _GAP + LINE + height
    top = _GAP + LINE
    below = 4 + max((text.shape[0] for _, text in columns), default=0)
    canvas = np.full(
        (
            top + math.ceil(count / across) * step_y + below + _GAP,
            max(left + across * step_x, title.shape[1] + 2 * _GAP),
        ),
        WHITE,
        dtype=np.uint8,
    )
    _paste(canvas, title, _GAP, _GAP)
    for i, panel in enumerate(panels):
        x, y = left + i % across * step_x, top + i // across * step_y + _GAP + LINE
        if i < len(names):
            _paste(canvas, names[i], y - LINE, x)
        _paste(canvas, panel, y, x)
        if i % across == 0:
            for place, text in rows:
                middle = place * cell + (cell - text.shape[0]) // 2
                _paste(canvas, text, y + middle, x - 4 - text.shape[1])
        if i + across >= count:
            for place, text in columns:
                middle = place * cell + (cell - text.shape[1]) // 2
                _paste(canvas, text, y + height + 4, x + middle)
    return canvas


def _range(largest: NDArray[np.floating], maps: NDArray[np.floating]) -> str:
    """What the colours of a scale stand for."""
    low = -largest.item() if (maps < 0).any() else 0
    return f"{low:.2g} to {largest.item():.2g}"


def _texts(labels: Sequence[str], cell: int, longest: int) -> _Labels:
    """The labels that there is room for: all of them, or every second, third, ..."""
    every = math.ceil((FONT_SIZE + 1) / cell)
    return [
        (i, draw_text(label if len(label) <= longest else label[: longest - 1] + "…"))
        for i, label in enumerate(labels)
        if label and i % every == 0
    ]


def _paste(canvas: _Pixels, pixels: _Pixels, top: int, left: int) -> None:
    """Put pixels onto the canvas, cut where they reach over its edge."""
    top, left = max(0, top), max(0, left)
    room = canvas[top : top + pixels.shape[0], left : left + pixels.shape[1]]
    room[:] = pixels[: room.shape[0], : room.shape[1]]
