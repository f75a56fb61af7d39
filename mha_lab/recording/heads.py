"""Tensors of attention calls, whatever their axes, as (N, H, ., .)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

HeadsOf = Callable[[int], int | None]
"""H of a tensor (N·H, L, D), from its N·H; None when the caller does not tell."""


def as_heads(tensor: Tensor, heads_of: HeadsOf) -> Tensor:
    """Give a tensor (..., A, B) the four axes (N, H, A, B).

    Args:
        tensor: (A, B), (N·H, A, B), (N, H, A, B), or with more leading axes, which join H.
        heads_of: Splits the first of three axes, batch-major.

    Returns:
        A view where possible.
    """
    if tensor.ndim == 3:
        heads = heads_of(tensor.shape[0]) or 1
        return tensor.reshape(tensor.shape[0] // heads, heads, *tensor.shape[1:])
    if tensor.ndim > 4:
        return tensor.flatten(1, -3)
    return tensor.reshape((1,) * (4 - tensor.ndim) + tensor.shape)
