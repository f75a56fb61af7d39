"""A picture as palette indices: fast to draw, small to keep.

Nearly all of a picture of attention maps is one array: every pixel is an index into a palette (a
colour map, then greys for text).
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image

from mha_lab.maps import palette

_POSITIVE, _NEGATIVE = 150, 72
BLOCKED, HATCH = 222, 223
BLACK, WHITE = 224, 255
"""Palette entries 0..149 are weights from 0 up, 150..221 from 0 down, 222 and 223 the ground and
the lines of what is exactly 0; 224 (black) to 255 (white) are greys."""
_MISSING = 244  # a grey for NaN


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


def colour(
    maps: Float[np.ndarray, "P L S"],
    largest: Float[np.ndarray, ...],
    *,
    zero_is_blocked: bool,
    by_root: bool,
) -> UInt8[np.ndarray, "P L S"]:
    """Weights of -largest to largest as palette indices; NaN is grey.

    Args:
        maps: The weights.
        largest: What has the darkest colour, of all or of each map.
        zero_is_blocked: Whether what is exactly 0 is ground, or has the colour of 0.
        by_root: Whether colour grows with the root of a weight, or in proportion.
    """
    missing = np.isnan(maps)
    shares = np.where(missing, 0, maps) / np.where(largest > 0, largest, 1.0)
    if by_root:
        shares = np.copysign(np.sqrt(np.abs(shares)), shares)
    above = np.rint(shares * (_POSITIVE - 1))
    colours = np.where(shares < 0, _POSITIVE + np.rint(-shares * (_NEGATIVE - 1)), above)
    if zero_is_blocked:
        colours = np.where(maps == 0, BLOCKED, colours)
    return np.where(missing, _MISSING, colours).astype(np.uint8)


@lru_cache(maxsize=1)
def _palette() -> NDArray[np.uint8]:
    """The colours (256, 3)."""
    hatched = np.array([to_rgb(palette.BLOCKED), to_rgb(palette.HATCH)])
    greys = np.linspace(0, 1, WHITE - BLACK + 1)[:, None].repeat(3, axis=1)
    parts = [palette.ember(_POSITIVE), palette.negative(_NEGATIVE), hatched, greys]
    return np.asarray(np.rint(np.concatenate(parts) * 255), dtype=np.uint8)
