"""The attention distribution of one call, computed from its queries and keys.

Scaled dot-product attention [1]_ fused into one kernel never shows its weights. They are computed
here a second time, in at least float32 and without gradient, a block of query rows at a time: with
``max_size`` each block is pooled at once, so a long sequence needs memory linear in its length.

.. [1] Vaswani et al., "Attention Is All You Need", 2017. https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from mha_lab.recording.flex import FlexModification
from mha_lab.recording.shared_keys import shared_keys

Pool = Literal["mean", "max"]

_BLOCK_ELEMENTS = 2**22
"""How many scores are computed at a time when a map is pooled: 16 MiB in float32."""


@dataclass(frozen=True)
class Scores:
    """What the scores of one attention call are made of.

    Attributes:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H_kv, S, D); H_kv divides H (grouped-query attention).
        scale: What q·k is multiplied by.
        biases: Float masks of four axes, broadcastable to (N, H, L, S), added to the scores.
        allowed: Bool masks of four axes, broadcastable to (N, H, L, S), True where a query may
            attend.
        is_causal: Whether query i may attend to keys 0..i only (aligned top-left, as in torch).
        dtype: What the scores are computed in.
        modification: What ``flex_attention`` does to them.
        values: Gives the projected values (N, H_kv, S, D), if they are known.
    """

    q: Float[Tensor, "N H L D"]
    k: Float[Tensor, "N Hkv S D"]
    scale: float
    biases: tuple[Float[Tensor, ...], ...] = ()
    allowed: tuple[Bool[Tensor, ...], ...] = ()
    is_causal: bool = False
    dtype: torch.dtype = torch.float32
    modification: FlexModification | None = None
    values: Callable[[], Float[Tensor, "N Hkv S D"]] | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, H, L, S) of the whole map."""
        return (*self.q.shape[:3], self.k.shape[2])

    def key_heads(self) -> list[int] | None:
        """Which head of keys each head reads, where several read one; else None."""
        group = self.q.shape[1] // max(1, self.k.shape[1])
        return (
            [head // group for head in range(self.q.shape[1])] if group > 1 else shared_keys(self.k)
        )

    def select(self, samples: list[int], heads: list[int]) -> Scores:
        """Keep the samples and heads with these indices."""
        group = self.q.shape[1] // max(1, self.k.shape[1])
        of_samples, of_heads = _index(samples), _index(heads)
        key_heads = of_heads if group == 1 else _index([head // group for head in heads])

        def pick(mask: Tensor) -> Tensor:
            mask = mask if mask.shape[0] == 1 else mask[of_samples]
            return mask if mask.shape[1] == 1 else mask[:, of_heads]

        return replace(
            self,
            q=self.q[of_samples][:, of_heads],
            k=self.k[of_samples][:, key_heads],
            biases=tuple(pick(mask) for mask in self.biases),
            allowed=tuple(pick(mask) for mask in self.allowed),
            modification=self.modification and self.modification.select(of_samples, of_heads),
        )

    def rows(self, start: int, stop: int) -> Float[Tensor, "N H rows S"]:
        """The weights of queries start..stop; every head has a key head of its own here."""

        def of_rows(mask: Tensor) -> Tensor:
            return mask if mask.shape[-2] == 1 else mask[..., start:stop, :]

        q = self.q[:, :, start:stop].to(self.dtype)
        scores = (q * self.scale) @ self.k.to(self.dtype).transpose(-2, -1)
        for bias in self.biases:
            scores = scores + of_rows(bias).to(self.dtype)
        for allowed in self.allowed:
            scores = scores.masked_fill(~of_rows(allowed), -torch.inf)
        if self.is_causal:
            query = torch.arange(start, stop, device=q.device)[:, None]
            key = torch.arange(self.k.shape[2], device=q.device)
            scores.masked_fill_(key > query, -torch.inf)
        if self.modification is not None:
            scores = self.modification(scores, start)
        weights = scores.softmax(-1)
        if self.biases or self.allowed or self.modification is not None:
            # A row whose every key is blocked has no distribution: softmax says NaN, we say 0.
            has_no_key = (scores == -torch.inf).all(-1, keepdim=True)
            weights = weights.masked_fill(has_no_key, 0.0)
        return weights


def _index(chosen: list[int]) -> slice | list[int]:
    """What to index with: a slice, which copies nothing, where the first so many are chosen."""
    return slice(len(chosen)) if chosen == list(range(len(chosen))) else chosen


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


def attention_distribution(
    scores: Scores,
    *,
    average_heads: bool = False,
    max_size: int | None = None,
    pool: Pool = "mean",
    visit: Callable[[Tensor, int], None] = lambda block, start: None,
) -> Float[Tensor, "N H L S"]:
    """The weights of a call: softmax of its scores, before dropout.

    Args:
        scores: The call, with as many key heads as query heads.
        average_heads: Whether to return the mean over heads, as one head.
        max_size: The largest length kept along each axis; longer axes are pooled.
        pool: How a block of weights becomes one: its mean or its largest.
        visit: When the map is pooled, called with each block of whole rows (N, H, rows, S) and
            the index of its first row, before it is pooled.

    Returns:
        (N, H, L, S) in ``scores.dtype``, H = 1 when averaged, L and S at most max_size. Each row
        of a map that was not pooled sums to 1, or to 0 where every key is blocked.
    """
    n, h, length, source = scores.shape

    def weights(start: int, stop: int) -> Tensor:
        block = scores.rows(start, stop)
        return block.mean(1, keepdim=True) if average_heads else block

    if max_size is None or max(length, source) <= max_size or 0 in (length, source):
        return weights(0, length)
    step = max(1, _BLOCK_ELEMENTS // max(1, n * h * source))
    rows = PooledRows(length, max_size, pool)
    for start in range(0, length, step):
        block = weights(start, min(start + step, length))
        visit(block, start)
        rows.add(block, start)
        del block  # before the next one is made
    return rows.map()


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
