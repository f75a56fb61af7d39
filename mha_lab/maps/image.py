"""An image whose patches are tokens, as vision models read it."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from jaxtyping import UInt8
from numpy.typing import NDArray

_LONGEST_SIDE = 320
"""Pixels of the picture that a page holds; a larger image is made smaller."""


@dataclass(frozen=True, eq=False)
class ImageTokens(Sequence[str]):
    """The tokens of one image: those before its patches, then the patches row by row.

    A sequence of labels, so it can stand wherever one sample's tokens can:

        >>> tokens = [ImageTokens(image, grid=(14, 14)) for image in images]
        >>> with record_attention(model, tokens=tokens) as maps:
        ...     model(images)

    Attributes:
        image: (3, height, width), (1, height, width), (height, width, 3) or (height, width);
            whole numbers from 0 to 255 or any floats, which are stretched to black and white.
            A tensor, an array or a PIL image.
        grid: Rows and columns of patches.
        first: How many tokens come before the patches: the class token, registers.

    Raises:
        ValueError: If the grid or ``first`` cannot be, or the image has another shape.
    """

    image: Any
    grid: tuple[int, int]
    first: int = 1

    def __post_init__(self) -> None:
        are_two = isinstance(self.grid, Sequence) and len(self.grid) == 2
        if not are_two or not all(_is_whole(n, least=1) for n in self.grid):
            raise ValueError(
                f"grid={self.grid!r} must be (rows, columns), each an int of at least 1"
            )
        if not _is_whole(self.first, least=0):
            raise ValueError(f"first={self.first!r} must be an int of at least 0")
        _ = self.pixels

    def __len__(self) -> int:
        return self.first + self.grid[0] * self.grid[1]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self.labels[index]

    @cached_property
    def labels(self) -> list[str]:
        """[class] and others in front, then "row,column" of each patch."""
        front = ["[class]", *(f"[extra {i}]" for i in range(1, self.first))][: self.first]
        rows, columns = self.grid
        return front + [f"{row},{column}" for row in range(rows) for column in range(columns)]

    def about(self) -> dict[str, Any]:
        """What a page needs of it."""
        return {"src": self._address, "grid": list(self.grid), "first": self.first}

    @cached_property
    def pixels(self) -> UInt8[np.ndarray, "height width 3"]:
        """The image's colours from 0 to 255."""
        return _pixels(self.image)

    @cached_property
    def _address(self) -> str:
        """The image as a data address."""
        from PIL import Image

        picture = Image.fromarray(self.pixels)
        picture.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=85)
        return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _pixels(image: Any) -> NDArray[np.uint8]:
    """(height, width, 3) from 0 to 255."""
    if hasattr(image, "convert"):  # of PIL: some modes hold places in a palette, or opacity
        image = image.convert("RGB")
    elif hasattr(image, "detach"):
        image = image.detach().float().cpu() if image.is_floating_point() else image.cpu()
    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or pixels.size == 0:
        raise ValueError(
            f"image is {type(image).__name__} of shape {tuple(np.shape(image))}; it needs one or "
            "three colours: (3, height, width), (height, width, 3) or (height, width)"
        )
    if np.issubdtype(pixels.dtype, np.floating):
        pixels = np.nan_to_num(pixels.astype(np.float32), posinf=0, neginf=0)
        low, high = pixels.min(), pixels.max()
        pixels = 255 * (pixels - low) / ((high - low) or 1)
    return np.broadcast_to(pixels, (*pixels.shape[:2], 3)).clip(0, 255).astype(np.uint8)


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
