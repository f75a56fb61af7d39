"""The scores of one attention call, and its weights, a few rows at a time.

Scaled dot-product attention [1]_ fused into one kernel never shows its weights. They are computed
here a second time, in at least float32 and without gradient.

.. [1] Vaswani et al., "Attention Is All You Need", 2017. https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mha_lab.recording.calls.flex import FlexModification
from mha_lab.recording.shared_keys import shared_keys


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
