"""Attention maps as files: a picture, a page to point at, or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mha_lab.maps.numbers import save_arrays
from mha_lab.view.files import file_to_write
from mha_lab.view.shown import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mha_lab.maps.interface import Drawable

SUFFIXES = (".png", ".svg", ".html", ".npz")

_DOTS = 150
"""A picture's pixels per inch."""


def save_map(
    one: Drawable, path: str | Path, sample: int = 0, heads: int | Sequence[int] | None = None
) -> Path:
    """Write a map to a file of the kind that its suffix says.

    Args:
        one: The map.
        path: Ends in .png or .svg (a picture of one sample), .html (a page that shows every
            weight under the pointer; one file, nothing from outside) or .npz (numpy arrays).
        sample: Which of the map's samples a picture shows.
        heads: How many heads a picture shows, from the first, or which ones; None means all.

    Returns:
        The path.

    Raises:
        ValueError: If the suffix is another, or the map lacks the sample or a head.
        FileNotFoundError: If its folder does not exist.
    """
    path = file_to_write(path, SUFFIXES)
    match path.suffix.lower():
        case ".npz":
            save_arrays([one], path)
        case ".html":
            show(one).save(path)
        case _:
            _write(one.plot(sample, heads), path)
    return path


def save_maps(maps: Sequence[Drawable], path: Path, *, sample: int = 0, title: str = "") -> Path:
    """Write several maps to one picture, .png or .svg, or as numbers, .npz.

    Args:
        maps: The maps, at least one.
        path: Where.
        sample: Which of the maps' samples a picture shows.
        title: A line above a picture.

    Raises:
        ValueError: If there are no maps, or one lacks the sample.
    """
    from mha_lab.maps.plot import plot_maps

    if path.suffix.lower() == ".npz":
        save_arrays(maps, path)
    else:
        _write(plot_maps(maps, sample, title=title), path)
    return path


def _write(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=_DOTS, format=path.suffix.lower().removeprefix("."))
