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
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mha_lab.maps.score_rows import ScoreRows, pair_score
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
        without tokens neither duplicate_token nor induction. NaN for a head of which no query
        counts, as of one that is blocked everywhere.
    """
    if weights.numel() == 0:
        return {}
    rows = ScoreRows(weights.shape[2])
    rows.add(weights)
    return WholeMap(rows, weights).scores(query_tokens, is_one_sequence=is_one_sequence)


@dataclass(frozen=True)
class WholeMap:
    """What a pooled map must remember of the whole one to be scored when its tokens are known.

    Attributes:
        rows: What each query adds to the scores that need no tokens.
        weights: The whole map (N, H, L, S), where it is small.
    """

    rows: ScoreRows
    weights: Float[Tensor, "N H L S"] | None = None

    def scores(
        self,
        query_tokens: Sequence[Sequence[str]] | None = None,
        *,
        is_one_sequence: bool = True,
    ) -> dict[str, Float[Tensor, H]]:
        """As of :func:`score_weights`; without the weights those scores that need no pairs."""
        if query_tokens is None:
            return self.rows.means()
        is_query = torch.tensor([[token not in PADDING for token in row] for row in query_tokens])
        found = self.rows.means(is_query)
        weights = self.weights
        if weights is None or not is_one_sequence or weights.shape[-2] != weights.shape[-1]:
            return found
        earlier = _earlier_occurrences(query_tokens).to(weights.device)
        follows = earlier.roll(1, dims=-1)  # key j stands for its predecessor, which is before i
        follows[..., 0] = False
        return found | {
            name: score
            for name, pairs in (("duplicate_token", earlier), ("induction", follows))
            if (score := pair_score(weights, pairs)) is not None
        }

    def cpu(self) -> WholeMap:
        """The same on the CPU."""
        return WholeMap(self.rows.cpu(), None if self.weights is None else self.weights.cpu())


def _earlier_occurrences(tokens: Sequence[Sequence[str]]) -> Bool[Tensor, "N L L"]:
    """Whether key j is an earlier occurrence of the token of query i; padding never is."""
    numbers: dict[str, int] = dict.fromkeys(PADDING, 0)
    rows = [[numbers.setdefault(token, len(numbers)) for token in row] for row in tokens]
    ids = torch.tensor(rows)
    same = (ids[:, :, None] == ids[:, None, :]) & (ids > 0)[:, :, None]
    return same.tril(-1)
