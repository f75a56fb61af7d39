"""Scores that say in one number what a head does.

Each is a mean over queries; queries whose every key is blocked, and padding (a token labelled ""
or as in ``PADDING``), do not count. Positions of queries and keys are counted from 0 along both
axes.

=============== ===================================================================== ==========
score           mean over queries i of                                                 source
=============== ===================================================================== ==========
entropy         -Σ_j w[i, j] ln w[i, j], in nats: 0 for one key, ln S for all alike    [1]_
confidence      the largest weight, max_j w[i, j]                                      [2]_
sparsity        the share of keys with less than 1 % of the row's largest weight       [3]_
previous_token  w[i, i-1], for i ≥ 1                                                   [2]_ [4]_
diagonal        w[i, i]                                                                [5]_
duplicate_token what goes to earlier keys of the query's own token, where there are any  [6]_
induction       what goes to keys that follow an earlier occurrence of the query's
                token (prefix matching), where there are any                           [7]_
=============== ===================================================================== ==========

The last two need tokens and one sequence on both axes, so cross-attention has none.

.. [1] Clark et al., "What Does BERT Look At?", 2019. https://arxiv.org/abs/1906.04341
.. [2] Voita et al., "Analyzing Multi-Head Self-Attention", 2019. https://arxiv.org/abs/1905.09418
.. [3] Zhang et al., "H2O: Heavy-Hitter Oracle", 2023. https://arxiv.org/abs/2306.14048
.. [4] Elhage et al., "A Mathematical Framework for Transformer Circuits", 2021.
   https://transformer-circuits.pub/2021/framework/
.. [5] Kovaleva et al., "Revealing the Dark Secrets of BERT", 2019, whose diagonal pattern this
   measures. https://arxiv.org/abs/1908.08593
.. [6] Wang et al., "Interpretability in the Wild", 2022. https://arxiv.org/abs/2211.00593
.. [7] Olsson et al., "In-context Learning and Induction Heads", 2022.
   https://arxiv.org/abs/2209.11895
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mha_lab.view.pooling import PADDING

SCORE_NAMES = (
    "entropy",
    "confidence",
    "sparsity",
    "previous_token",
    "diagonal",
    "duplicate_token",
    "induction",
)
"""All scores, in the order in which they are shown."""

_NEGLIGIBLE = 0.01


class ScoreSums:
    """Adds up scores over blocks of query rows, so that a whole map need never exist."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, Tensor] = {}

    def add(
        self,
        weights: Float[Tensor, "N H R S"],
        start: int = 0,
        is_query: Bool[Tensor, "N R"] | None = None,
    ) -> None:
        """Add the scores of a block of rows that need no tokens.

        Args:
            weights: The weights of queries start, start + 1, ...
            start: Where the block begins.
            is_query: Which queries count; None means all.
        """
        largest = weights.amax(-1)
        counts = (largest > 0) | largest.isnan()  # a map of NaN has scores of NaN
        if is_query is not None:
            counts = counts & is_query[:, None, :]
        negligible = (weights < _NEGLIGIBLE * largest[..., None]).count_nonzero(-1)
        is_share = ~(weights.amin(-1) < 0)  # of weights below 0 there is no entropy
        self._add("entropy", torch.special.entr(weights.clamp(min=0)).sum(-1), counts & is_share)
        self._add("confidence", largest, counts)
        self._add("sparsity", negligible / weights.shape[-1], counts)
        for name, offset in (("previous_token", start - 1), ("diagonal", start)):
            # Query r of the block stands at key r + offset.
            values = weights.diagonal(offset, dim1=2, dim2=3)
            first = max(0, -offset)
            self._add(name, values, counts[..., first : first + values.shape[-1]])

    def add_pairs(
        self,
        name: str,
        weights: Float[Tensor, "N H L S"],
        pairs: Bool[Tensor, "N L S"],
    ) -> None:
        """Add a score: what queries give to keys that they are paired with, where there are any."""
        pairs = pairs[:, None]
        counts = (weights.amax(-1) > 0) & pairs.any(-1)
        self._add(name, (weights * pairs).sum(-1), counts)

    def means(self) -> dict[str, Float[Tensor, " H"]]:
        """Each score's mean over queries and samples, of those that have any query."""
        return {
            name: self._sums[name] / self._counts[name]
            for name in SCORE_NAMES
            if name in self._sums and min(self._counts[name].tolist()) > 0
        }

    def _add(self, name: str, values: Tensor, counts: Tensor) -> None:
        total, count = torch.where(counts, values, 0.0).sum((0, 2)), counts.sum((0, 2))
        self._sums[name] = self._sums[name] + total if name in self._sums else total
        self._counts[name] = self._counts[name] + count if name in self._counts else count


def score_weights(
    weights: Float[Tensor, "N H L S"],
    query_tokens: Sequence[Sequence[str]] | None = None,
    *,
    is_one_sequence: bool = True,
) -> dict[str, Float[Tensor, H]]:
    """Score every head of a map.

    Args:
        weights: The map (N, H, L, S), not pooled.
        query_tokens: One list of L labels a sample; those of ``PADDING`` do not count. None where
            there are none.
        is_one_sequence: Whether queries and keys are the same tokens.

    Returns:
        (H,) for each name of ``SCORE_NAMES`` that the map has: none where no query counts, and
        without tokens neither duplicate_token nor induction.
    """
    sums = ScoreSums()
    if weights.numel() == 0:
        return {}
    if query_tokens is None:
        sums.add(weights)
        return sums.means()
    is_query = torch.tensor(
        [[token not in PADDING for token in row] for row in query_tokens], device=weights.device
    )
    sums.add(weights, is_query=is_query)
    if is_one_sequence and weights.shape[-2] == weights.shape[-1]:
        earlier = _earlier_occurrences(query_tokens).to(weights.device)
        sums.add_pairs("duplicate_token", weights, earlier)
        follows = earlier.roll(1, dims=-1)  # key j stands for its predecessor, which is before i
        follows[..., 0] = False
        sums.add_pairs("induction", weights, follows)
    return sums.means()


def _earlier_occurrences(tokens: Sequence[Sequence[str]]) -> Bool[Tensor, "N L L"]:
    """Whether key j is an earlier occurrence of the token of query i; padding never is."""
    numbers: dict[str, int] = dict.fromkeys(PADDING, 0)
    rows = [[numbers.setdefault(token, len(numbers)) for token in row] for row in tokens]
    ids = torch.tensor(rows)
    same = (ids[:, :, None] == ids[:, None, :]) & (ids > 0)[:, :, None]
    return same.tril(-1)
