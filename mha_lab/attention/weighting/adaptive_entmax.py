"""Entmax whose temperature follows the length [1]_: entmax((1 + β_h (log n)^γ_h) · z), α = 1.5.

n is the number of keys that the query may see, counted as 2 at least. β_h = softplus(b_h) and γ_h
are learned, one a head. Deviations from the paper: there both are functions of each token, γ within
±2; the authors' code counts one key more, so that the logarithm is above 0, and beside NAPE scales
the heads without positions alone.

.. [1] Vasylenko et al., "Long-Context Generalization with Sparse Attention", 2025 (ASEntmax).
   https://arxiv.org/abs/2506.16640
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.allowed import number_of_keys
from mha_lab.attention.parts import RowsOver
from mha_lab.attention.weighting.entmax15 import Entmax15
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
        blocked = allowed.logical_not()  # -inf times a factor would have no gradient
        scaled = scores.masked_fill(blocked, 0.0) * self._scale(allowed, scores)
        return entmax15(scaled.masked_fill(blocked, -torch.inf))

    def as_rows(self, opened: Tensor) -> RowsOver:
        """Entmax over scaled rows."""
        return RowsOver(Entmax15(), self._scale(opened, self.raw_beta.unsqueeze(0)))

    def _scale(self, allowed: Tensor, like: Tensor) -> Tensor:
        """The factor of each row, for as many maps as axis 1 of a tensor has."""
        dtype = torch.promote_types(like.dtype, torch.float32)
        n = number_of_keys(allowed, dtype).clamp(min=2)
        beta, gamma = (
            x.to(dtype).repeat_interleave(like.shape[1] // len(x))[:, None, None]
            for x in (F.softplus(self.raw_beta), self.gamma)
        )
        return 1 + beta * n.log() ** gamma
