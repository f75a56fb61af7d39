"""Quick pictures of attention maps, for drawing during training.

A matplotlib figure of four heads takes about 100 ms; this takes about 2 ms, because nearly all of a
picture is one array: every pixel is an index into a palette (a colour map, then greys for text),
labels are drawn once and kept. ``AttentionMap.plot`` makes the figures that people edit and print.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from mha_lab.maps import palette
from mha_lab.maps.printable import printable

_POSITIVE, _NEGATIVE = 150, 72
_BLOCKED, _HATCH = 222, 223
_COLOURS = 224
"""Palette entries 0..149 are weights from 0 up, 150..221 from 0 down, 222 and 223 the ground and
the lines of what is exactly 0; 224 (black) to 255 (white) are greys."""
_WHITE = 255
_GREYS = 256 - _COLOURS
_MISSING = 244  # a grey for NaN
_HATCHED = 5  # pixels between two lines
_FONT = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
_FONT_SIZE = 11
_LINE = 16
_GAP = 8
_COLUMNS = 4
_MAP_PIXELS = 240
_LARGEST_CELL = 13  # just enough for a line of text
_PLAIN = re.compile("[\x20-\x7e·…]*")
_PIECES = re.compile(r"\d|\s+|[^\d\s]+")


@dataclass(frozen=True)
class Raster:
    """A picture as palette indices (height, width)."""

    pixels: UInt8[np.ndarray, "height width"]

    def png(self) -> bytes:
        """The picture as a PNG file with a palette."""
        image = Image.fromarray(self.pixels, mode="P")
        image.putpalette(_palette().tobytes())
        file = io.BytesIO()
        image.save(file, format="PNG", compress_level=3)
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
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    same_scale: bool = True,
    longest_label: int = 16,
    zero_is_blocked: bool = True,
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

    Returns:
        The picture. Negative weights have colours of their own; what is no finite number is grey.
    """
    count, length, source = maps.shape
    maps = np.where(np.isfinite(maps), maps, np.nan)
    axes = None if same_scale else (1, 2)
    largest = np.nanmax(np.abs(maps), axis=axes, keepdims=True, initial=0.0)
    if same_scale:
        title = f"{title}   {_range(largest, maps)}".strip()
    else:
        scales = [_range(top, panel) for top, panel in zip(largest, maps, strict=True)]
        names = [f"{name}   {scale}" for name, scale in zip(names, scales, strict=True)]
    cell = max(1, min(_LARGEST_CELL, _MAP_PIXELS // max(1, length, source)))
    rows = _texts(row_labels, cell, longest_label)
    columns = [
        (i, text if text.shape[1] <= cell else np.rot90(text))  # upright where there is room
        for i, text in _texts(column_labels, cell, longest_label)
    ]
    heading, headings = _text(title), [_text(name) for name in names]

    across = min(_COLUMNS, max(1, count))
    left = _GAP + max((text.shape[1] + 4 for _, text in rows), default=0)
    panel_width = _GAP + max([source * cell, *(text.shape[1] for text in headings)])
    panel_height = _GAP + _LINE + length * cell
    top = _GAP + _LINE
    width = max(left + across * panel_width, heading.shape[1] + 2 * _GAP)
    below = 4 + max((text.shape[0] for _, text in columns), default=0)
    height = top + math.ceil(count / across) * panel_height + below + _GAP
    canvas = np.full((height, width), _WHITE, dtype=np.uint8)

    _paste(canvas, heading, _GAP, _GAP)
    pixels = _quantise(maps, largest, zero_is_blocked).repeat(cell, axis=1).repeat(cell, axis=2)
    across_lines = np.add.outer(np.arange(length * cell), np.arange(source * cell)) % _HATCHED == 0
    pixels[(pixels == _BLOCKED) & across_lines] = _HATCH
    for panel in range(count):
        x = left + panel % across * panel_width
        y = top + panel // across * panel_height + _GAP + _LINE
        if panel < len(headings):
            _paste(canvas, headings[panel], y - _LINE, x)
        _paste(canvas, pixels[panel], y, x)
        if panel % across == 0:
            for i, text in rows:
                middle = i * cell + (cell - text.shape[0]) // 2
                _paste(canvas, text, y + middle, x - 4 - text.shape[1])
        if panel + across >= count:
            for i, text in columns:
                middle = i * cell + (cell - text.shape[1]) // 2
                _paste(canvas, text, y + length * cell + 4, x + middle)
    return Raster(canvas)


def _range(largest: NDArray[np.floating], maps: NDArray[np.floating]) -> str:
    """What the colours of a scale stand for."""
    low = -largest.item() if (maps < 0).any() else 0
    return f"{low:.2g} to {largest.item():.2g}"


def _quantise(
    maps: NDArray[np.floating], largest: NDArray[np.floating], zero_is_blocked: bool
) -> NDArray[np.uint8]:
    """Weights of -largest to largest as colours; NaN as grey."""
    missing = np.isnan(maps)
    shares = np.where(missing, 0, maps) / np.where(largest > 0, largest, 1.0)
    above = np.rint(shares * (_POSITIVE - 1))
    colours = np.where(shares < 0, _POSITIVE + np.rint(-shares * (_NEGATIVE - 1)), above)
    if zero_is_blocked:
        colours = np.where(maps == 0, _BLOCKED, colours)
    return np.where(missing, _MISSING, colours).astype(np.uint8)


def _texts(labels: Sequence[str], cell: int, longest: int) -> list[tuple[int, NDArray[np.uint8]]]:
    """The labels that there is room for: all of them, or every second, third, ..."""
    every = math.ceil((_FONT_SIZE + 1) / cell)
    return [
        (i, _text(label if len(label) <= longest else label[: longest - 1] + "…"))
        for i, label in enumerate(labels)
        if label and i % every == 0
    ]


@lru_cache(maxsize=4096)
def _text(text: str) -> NDArray[np.uint8]:
    """A line of text as palette indices."""
    text = printable(text if len(text) <= 160 else text[:159] + "…")
    if not _PLAIN.fullmatch(text):  # marks combine, and some scripts run to the left: only whole
        return _piece(text)
    # Titles change from step to step in their numbers only, so digits are drawn one by one: they
    # are equally wide. The rest is drawn a word at a time, with its kerning.
    return np.hstack([_piece(piece) for piece in _PIECES.findall(text)] or [_piece("")])


@lru_cache(maxsize=4096)
def _piece(text: str) -> NDArray[np.uint8]:
    """A digit, a word or a gap as palette indices."""
    font = _font()
    width = max(1, round(font.getlength(text)))
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
    hatched = np.array([to_rgb(palette.BLOCKED), to_rgb(palette.HATCH)])
    greys = np.linspace(0, 1, _GREYS)[:, None].repeat(3, axis=1)
    parts = [palette.ember(_POSITIVE), palette.negative(_NEGATIVE), hatched, greys]
    return np.asarray(np.rint(np.concatenate(parts) * 255), dtype=np.uint8)


def _paste(canvas: NDArray[np.uint8], pixels: NDArray[np.uint8], top: int, left: int) -> None:
    """Put pixels onto the canvas, cut where they reach over its edge."""
    top, left = max(0, top), max(0, left)
    room = canvas[top : top + pixels.shape[0], left : left + pixels.shape[1]]
    room[:] = pixels[: room.shape[0], : room.shape[1]]
