"""One head's map in the project's colours, for matplotlib; those of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from matplotlib.colors import FuncNorm, ListedColormap

from mha_lab.maps import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


def show_weights(ax: Axes, weights: Float[np.ndarray, "L S"], colours: dict[str, Any]) -> AxesImage:
    """Draw one head's map.

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


def colours_of(weights: Float[np.ndarray, "*maps"], highest: float | None = None) -> dict[str, Any]:
    """One colour scale for some maps: from 0, or as far below it as above where some are less.

    Colour grows with the root of a weight: in a map of many keys nearly all weights are small, and
    would else be pale.

    Args:
        weights: The maps.
        highest: What has the darkest colour; None means the largest weight.

    Returns:
        Arguments for ``imshow`` and its like.
    """
    if highest is None:
        highest = float(np.nanmax(np.abs(weights), initial=0.0)) or 1.0
    is_signed = bool((weights < 0).any())
    colours = palette.ember(256)
    if is_signed:
        colours = np.concatenate([palette.negative(256)[::-1], colours])
    norm = FuncNorm((_root, _square), vmin=-highest if is_signed else 0.0, vmax=highest)
    return {"cmap": ListedColormap(colours), "norm": norm}


def _root(values: Any) -> Any:
    return np.sign(values) * np.sqrt(np.abs(values))


def _square(values: Any) -> Any:
    return values * np.abs(values)
