"""What of each attention call is kept: which samples, which heads, at which size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor

from mha_lab.indices import check_count, check_indices, chosen_indices
from mha_lab.maps.score_rows import ScoreRows
from mha_lab.maps.scores import WholeMap
from mha_lab.recording.calls.scores import Scores
from mha_lab.recording.distribution import attention_distribution
from mha_lab.recording.pooling import Pool, PooledRows, pool_map
from mha_lab.recording.shared_keys import shared_keys
from mha_lab.recording.transforms import is_transformed

_SMALL = 2**20
"""Weights of a whole map that is kept, 4 MiB, until its tokens are known."""


@dataclass(frozen=True)
class Chosen:
    """The part of a call that is kept.

    Attributes:
        weights: (N, H, L, S).
        samples: Which samples of the batch these are.
        heads: Which heads these are, or are averaged.
        scores: The scores (H,) of the whole map where it was pooled; else None.
        whole: What is kept of the whole map where it was pooled: tokens may come to score it by.
        key_heads: Which head of keys each head reads, where several read one; else None.
        weighted: The pooled map of weights times the norms of their values, where it was pooled
            and these are known; else None.
    """

    weights: Float[Tensor, "N H L S"]
    samples: list[int]
    heads: list[int]
    scores: dict[str, Tensor] | None = None
    whole: WholeMap | None = None
    key_heads: list[int] | None = None
    weighted: Float[Tensor, "N H L S"] | None = None


@dataclass(frozen=True)
class Choice:
    """The part of a call that is recorded; see :func:`record_attention` for each option.

    Raises:
        TypeError: If a value is of another type.
        ValueError: If a value cannot be.
    """

    samples: int | Sequence[int] | None = None
    heads: int | Sequence[int] | None = None
    average_heads: bool = False
    max_size: int | None = None
    pool: Pool = "mean"
    values: bool = False

    def __post_init__(self) -> None:
        check_indices("samples", self.samples)
        check_indices("heads", self.heads)
        if self.max_size is not None:
            check_count("max_size", self.max_size)
        if self.pool not in get_args(Pool):
            raise ValueError(f"pool={self.pool!r} must be 'mean' or 'max'")
        if not isinstance(self.values, bool):
            raise TypeError(f"values={self.values!r} must be a bool")
        if self.values and self.average_heads:
            raise ValueError(
                "values=True and average_heads=True exclude each other: each head has values of "
                "its own"
            )

    def of_scores(
        self, scores: Scores, name: str, norms: Float[Tensor, "N H S"] | None = None
    ) -> Chosen:
        """The chosen part of a call.

        Args:
            scores: Of all samples and heads.
            name: Of the module that called.
            norms: Of the values, where these are wanted and known.

        Raises:
            NotThereError: If the call of the module called name lacks a chosen sample or head.
        """
        samples = self.samples_of(scores.shape[0], name)
        heads = chosen_indices("heads", self.heads, scores.shape[1], of=repr(name))
        rows = ScoreRows(scores.shape[2])
        factors = None if norms is None else norms[samples][:, heads, None]
        weighted = PooledRows(scores.shape[2], self.max_size or 1, self.pool)
        blocks: list[Tensor] = []
        is_small = len(samples) * len(heads) * scores.shape[2] * scores.shape[3] <= _SMALL

        def visit(block: Tensor, start: int) -> None:
            rows.add(block, start)
            if is_small:
                blocks.append(block)
            if factors is not None:
                weighted.add(block * factors, start)

        weights = attention_distribution(
            scores.select(samples, heads),
            average_heads=self.average_heads,
            max_size=self.max_size,
            pool=self.pool,
            visit=visit,
        )
        key_heads = None if self.average_heads else scores.key_heads()
        key_heads = key_heads and [key_heads[head] for head in heads]
        if weights.shape[2:] == scores.shape[2:] or is_transformed(weights):
            return Chosen(weights, samples, heads, key_heads=key_heads)
        whole = WholeMap(rows, torch.cat(blocks, 2) if blocks else None)
        products = None if factors is None else weighted.map()
        return Chosen(weights, samples, heads, whole.scores(), whole, key_heads, products)

    def of_weights(
        self,
        weights: Float[Tensor, "N H L S"],
        name: str,
        values: Float[Tensor, "N H S D"] | None = None,
        norms: Float[Tensor, "N H S"] | None = None,
    ) -> Chosen:
        """The chosen part of a call whose weights exist already.

        Args:
            weights: (N, H, L, S).
            name: Of the module that called.
            values: Of the product with the weights, where they are known: heads that share values
                share keys.
            norms: Of the values, where these are wanted and known.
        """
        samples = self.samples_of(weights.shape[0], name)
        heads = chosen_indices("heads", self.heads, weights.shape[1], of=repr(name))
        chosen = weights[samples][:, heads]
        key_heads = None
        if self.average_heads:
            chosen = chosen.mean(1, keepdim=True)
        elif values is not None and values.shape[1] == weights.shape[1]:
            key_heads = shared_keys(values)
            key_heads = key_heads and [key_heads[head] for head in heads]
        if self.max_size is None or max(chosen.shape[-2:]) <= self.max_size:
            return Chosen(chosen, samples, heads, key_heads=key_heads)
        pooled = pool_map(chosen, self.max_size, self.pool)
        rows = ScoreRows(chosen.shape[2])
        rows.add(chosen)
        whole = WholeMap(rows, chosen if chosen.numel() <= _SMALL else None)
        weighted = None
        if norms is not None:
            products = chosen * norms[samples][:, heads, None]
            weighted = pool_map(products, self.max_size, self.pool)
        return Chosen(pooled, samples, heads, whole.scores(), whole, key_heads, weighted)

    def samples_of(self, size: int, name: str) -> list[int]:
        """Which samples of a batch of this size."""
        return chosen_indices("samples", self.samples, size, of=repr(name))

    def of_all(self) -> Choice:
        """The same choice, but of all samples."""
        return replace(self, samples=None)
