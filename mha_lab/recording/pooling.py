"""Maps that are pooled to a largest length: whole, or while they are made."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

Pool = Literal["mean", "max"]


def pool_map(
    weights: Float[Tensor, "N H L S"], max_size: int, pool: Pool
) -> Float[Tensor, "N H l s"]:
    """Shrink a map to at most max_size along each axis.

    Args:
        weights: The map (N, H, L, S).
        max_size: The largest length kept.
        pool: "mean" or "max" of each block. Blocks are those of torch's adaptive pooling: output i
            covers rows floor(i·L/m) to ceil((i+1)·L/m).

    Returns:
        The pooled map (N, H, min(L, max_size), min(S, max_size)).
    """
    size = (min(weights.shape[-2], max_size), min(weights.shape[-1], max_size))
    if size == weights.shape[-2:] or weights.numel() == 0:
        return weights
    pooled = F.adaptive_avg_pool2d if pool == "mean" else F.adaptive_max_pool2d
    return pooled(weights, size)


class PooledRows:
    """A map that is pooled while it is made, a block of rows at a time.

    Keys are pooled at once, queries at the end: (N, H, L, max_size) at most. In one tensor: many
    small ones that stay would lie between the blocks, and keep the memory of each from being used
    again.

    Args:
        length: Rows of the whole map.
        max_size: The largest length along each axis.
        pool: How a block of weights becomes one.
    """

    def __init__(self, length: int, max_size: int, pool: Pool) -> None:
        self._length, self._max_size, self._pool = length, max_size, pool
        self._narrow: Tensor | None = None

    def add(self, block: Float[Tensor, "N H rows S"], start: int) -> None:
        """Take the rows from start on."""
        pooled = _pool_keys(block, self._max_size, self._pool)
        if self._narrow is None:
            self._narrow = pooled.new_empty(*pooled.shape[:2], self._length, pooled.shape[3])
        self._narrow[:, :, start : start + block.shape[2]] = pooled

    def map(self) -> Float[Tensor, "N H l s"]:
        """The pooled map of all rows that were added."""
        assert self._narrow is not None
        return pool_map(self._narrow, self._max_size, self._pool)


def _pool_keys(weights: Tensor, max_size: int, pool: Pool) -> Tensor:
    """Pool the last axis alone."""
    size = (weights.shape[-2], min(weights.shape[-1], max_size))
    pooled = F.adaptive_avg_pool2d if pool == "mean" else F.adaptive_max_pool2d
    return pooled(weights, size)
