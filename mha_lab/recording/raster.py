"""Quick pictures of attention maps, for drawing during training.

A matplotlib figure of four heads takes about 100 ms; this takes about 2 ms, because nearly all of a
picture is one array: every pixel is an index into a palette (a colour map, then greys for text),
labels are drawn once and kept. ``AttentionMap.plot`` makes the figures that people edit and print.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from jaxtyping import Float, UInt8
from matplotlib import colormaps
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_COLOURS = 224
"""Palette entries 0..223 are the colour map; 224 (black) to 255 (white) are greys."""
_WHITE = 255
_GREYS = 256 - _COLOURS
_MISSING = 244  # a grey for NaN
_FONT = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
_FONT_SIZE = 11
_GAP = 8
_MAP_PIXELS = 240


@dataclass(frozen=True)
class Raster:
    """A picture as palette indices (height, width)."""

    pixels: UInt8[np.ndarray, "height width"]

    def png(self) -> bytes:
        """The picture as a PNG file with a palette."""
        image = Image.fromarray(self.pixels, mode="P")
        image.putpalette(_palette().tobytes())
        file = io.BytesIO()
        image.save(file, format="PNG", compress_level=2)
        return file.getvalue()

    def rgb(self) -> UInt8[np.ndarray, "height width 3"]:
        """The picture as red, green and blue."""
        rgb: NDArray[np.uint8] = _palette()[self.pixels]
        return rgb


def draw_maps(
    maps: Float[np.ndarray, "P L S"],
    *,
    title: str = "",
    names: Sequence[str] = (),
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    columns: int = 4,
    same_scale: bool = True,
) -> Raster:
    """Draw several maps of one shape as a grid of panels, coloured from 0 to the largest weight.

    Args:
        maps: P maps (P, L, S).
        title: A line above all; the largest weight is added to it where the scale is the same.
        names: One name a panel.
        row_labels: L labels of the rows, such as query tokens.
        column_labels: S labels of the columns, such as key tokens.
        columns: How many panels stand in a row, at most.
        same_scale: Whether all panels have one colour scale, or each its own, told by its name.

    Returns:
        The picture.
    """
    count, length, source = maps.shape
    columns = min(columns, max(1, count))
    largest = np.nanmax(maps, axis=None if same_scale else (1, 2), keepdims=True, initial=0.0)
    if same_scale:
        title = f"{title}   {_range(largest)}".strip()
    else:
        names = [f"{name}   {_range(top)}" for name, top in zip(names, largest, strict=True)]
    cell = max(1, min(16, _MAP_PIXELS // max(1, length, source)))
    left = _gutter(row_labels, cell)
    below = _gutter(column_labels, cell)
    line = _FONT_SIZE + 5

    indices = _quantise(maps, largest).repeat(cell, axis=1).repeat(cell, axis=2)
    panel_height = line + length * cell + below + _GAP
    panel_width = left + source * cell + _GAP
    heading = _text(title)
    width = max(_GAP + columns * panel_width, heading.shape[1] + 2 * _GAP)
    height = _GAP + line + _GAP + math.ceil(count / columns) * panel_height
    canvas = np.full((height, width), _WHITE, dtype=np.uint8)
    _paste(canvas, heading, _GAP, _GAP)
    for panel, pixels in enumerate(indices):
        top = 2 * _GAP + line + (panel // columns) * panel_height
        x = _GAP + (panel % columns) * panel_width + left
        if panel < len(names):
            _paste(canvas, _text(names[panel]), top, x)
        y = top + line
        _paste(canvas, pixels, y, x)
        for i, label in _shown(row_labels, cell):
            text = _text(label)
            _paste(canvas, text, y + _middle(i, cell, text.shape[0]), x - 3 - text.shape[1])
        for i, label in _shown(column_labels, cell):
            text = _column_text(label, cell)
            _paste(canvas, text, y + length * cell + 3, x + _middle(i, cell, text.shape[1]))
    return Raster(canvas)


def _range(largest: NDArray[np.floating]) -> str:
    """What the colours of a scale stand for."""
    return f"0 to {largest.item():.2g}"


def _quantise(maps: NDArray[np.floating], largest: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Weights 0..largest as colours; NaN as grey."""
    levels = maps * ((_COLOURS - 1) / np.where(largest > 0, largest, 1.0))
    missing = np.isnan(levels)
    colours = np.where(missing, _MISSING, np.rint(np.where(missing, 0, levels)))
    return colours.astype(np.uint8)


def _middle(i: int, cell: int, size: int) -> int:
    """Where something of this size begins, to be centred on the i-th cell."""
    return i * cell + (cell - size) // 2


def _shown(labels: Sequence[str] | None, cell: int) -> list[tuple[int, str]]:
    """The labels that there is room for: all of them, or every second, third, ..."""
    if labels is None:
        return []
    every = math.ceil((_FONT_SIZE + 1) / cell)
    return [(i, label) for i, label in enumerate(labels) if label and i % every == 0]


def _gutter(labels: Sequence[str] | None, cell: int) -> int:
    """How much room labels take beside a map."""
    return max((_text(label).shape[1] for _, label in _shown(labels, cell)), default=0) + 6


def _column_text(label: str, cell: int) -> NDArray[np.uint8]:
    """A label below a column: upright where it is narrow enough, else read from below."""
    text = _text(label)
    return text if text.shape[1] <= cell else np.rot90(text)


@lru_cache(maxsize=4096)
def _text(text: str) -> NDArray[np.uint8]:
    """A short text as palette indices."""
    text = text if len(text) <= 80 else text[:79] + "…"
    font = _font()
    width = max(1, math.ceil(font.getlength(text)))
    image = Image.new("L", (width, _FONT_SIZE + 3), 255)
    ImageDraw.Draw(image).text((0, 0), text, fill=0, font=font)
    return (_COLOURS + np.asarray(image, dtype=np.uint16) * (_GREYS - 1) // 255).astype(np.uint8)


@lru_cache(maxsize=1)
def _font() -> ImageFont.FreeTypeFont:
    """The font that comes with matplotlib."""
    return ImageFont.truetype(str(_FONT), _FONT_SIZE)


@lru_cache(maxsize=1)
def _palette() -> NDArray[np.uint8]:
    """The colours (256, 3)."""
    colours = colormaps["viridis"](np.linspace(0, 1, _COLOURS))[:, :3]
    greys = np.linspace(0, 1, _GREYS)[:, None].repeat(3, axis=1)
    palette: NDArray[np.uint8] = np.rint(np.concatenate([colours, greys]) * 255).astype(np.uint8)
    return palette


def _paste(canvas: NDArray[np.uint8], pixels: NDArray[np.uint8], top: int, left: int) -> None:
    """Put pixels onto the canvas, cut where they reach over its edge."""
    top, left = max(0, top), max(0, left)
    room = canvas[top : top + pixels.shape[0], left : left + pixels.shape[1]]
    room[:] = pixels[: room.shape[0], : room.shape[1]]
