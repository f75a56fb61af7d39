"""The colours of maps in pictures: those that the page has on a light ground (view/static).

Weights walk through OKLCH (Björn Ottosson, 2020, "A perceptual color space for image processing"),
where equal steps look equally far apart: near 0 light, much dark. Negative weights, which a few
mechanisms have, walk another path. A weight of exactly 0, as where a mask blocks, has no colour of
this scale but a hatched grey.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

BLOCKED, HATCH = "#eceaf0", "#c3bfcc"
"""The ground and the lines of what is exactly 0."""

_EMBER = (280, 325, 365, 400, 455), 0.17  # hues in degrees from much to nothing, and chroma
_NEGATIVE = (250, 235), 0.14
_LIGHTEST, _DARKEST = 0.99, 0.22


@lru_cache(maxsize=8)
def ember(levels: int) -> Float[np.ndarray, "levels 3"]:
    """Colours of the weights from 0 to the largest, red, green and blue from 0 to 1."""
    return _walk(*_EMBER, levels)


@lru_cache(maxsize=8)
def negative(levels: int) -> Float[np.ndarray, "levels 3"]:
    """Colours of the weights from 0 to the most negative."""
    return _walk(*_NEGATIVE, levels)


def _walk(hues: tuple[int, ...], chroma: float, levels: int) -> NDArray[np.float64]:
    much = np.linspace(0, 1, levels)
    lightness = _LIGHTEST + (_DARKEST - _LIGHTEST) * much
    hue = np.deg2rad(np.interp(1 - much, np.linspace(0, 1, len(hues)), hues))
    wanted = chroma * np.sin(np.pi * np.minimum(1, 0.06 + 0.9 * much)) ** 0.6
    # As much of the chroma as a screen can show: the whole, or what halving finds.
    shown = np.where(_is_inside(_linear(lightness, wanted, hue)), wanted, 0.0)
    low, high = shown.copy(), wanted.copy()
    for _ in range(12):
        middle = (low + high) / 2
        fits = _is_inside(_linear(lightness, middle, hue))
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    shown = np.where(shown > 0, shown, low)
    linear = _linear(lightness, shown, hue)
    bright = 1.055 * np.maximum(linear, 0.0031308) ** (1 / 2.4) - 0.055
    return np.where(linear <= 0.0031308, 12.92 * linear, bright).clip(0, 1)


def _is_inside(linear: NDArray[np.float64]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.all((linear >= -1e-4) & (linear <= 1.0001), axis=-1)
    return inside


def _linear(
    lightness: NDArray[np.float64], chroma: NDArray[np.float64], hue: NDArray[np.float64]
) -> NDArray[np.float64]:
    """OKLCH to linear red, green and blue."""
    a, b = chroma * np.cos(hue), chroma * np.sin(hue)
    cones = np.stack(
        [
            lightness + 0.3963377774 * a + 0.2158037573 * b,
            lightness - 0.1055613458 * a - 0.0638541728 * b,
            lightness - 0.0894841775 * a - 1.291485548 * b,
        ],
        axis=-1,
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.707614701],
        ]
    )
    return np.asarray(cones**3 @ to_rgb.T)
