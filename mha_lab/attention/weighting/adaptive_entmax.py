"""Entmax whose temperature follows the length [1]_: entmax((1 + β_h (log n)^γ_h) · z), α = 1.5.

n is the number of keys that the query may see, counted as 2 at least. β_h = softplus(b_h) and γ_h
are learned, one a head. Deviation from the paper: there both are functions of each query.

.. [1] Vasylenko et al., "Long-Context Generalization with Sparse Attention", 2025, section 4
   (ASEntmax). https://arxiv.org/abs/2506.16640
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.allowed import number_of_keys
from mha_lab.attention.weighting.sparse import entmax15


class AdaptiveEntmax(nn.Module):
    """Sparse weights that do not fade in long rows.

    Args:
        num_heads: H, each with a temperature of its own.
    """

    def __init__(self, *, num_heads: int) -> None:
        super().__init__()
        self.raw_beta = nn.Parameter(torch.full((num_heads,), -2.0))
        self.gamma = nn.Parameter(torch.ones(num_heads))

    def forward(
        self, scores: Float[Tensor, "N MH L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N MH L S"]:
        """Entmax of the scaled scores."""
        n = number_of_keys(allowed, scores.dtype).clamp(min=2)
        maps = scores.shape[1] // len(self.gamma)
        beta, gamma = (
            x.to(scores.dtype).repeat_interleave(maps)[:, None, None]
            for x in (F.softplus(self.raw_beta), self.gamma)
        )
        blocked = allowed.logical_not()  # -inf times a factor would have no gradient
        scaled = scores.masked_fill(blocked, 0.0) * (1 + beta * n.log() ** gamma)
        return entmax15(scaled.masked_fill(blocked, -torch.inf))
