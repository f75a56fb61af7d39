"""Shaw's relative positions [1]_: a learned vector for each clipped distance is added to the keys.

score_ij = q_i·(k_j + a[clip(j − i, −K, K)]) / √D, so the bias is q_i·a / √D; the vectors a are
shared by the heads of a layer.

Acts on the scores, reading the queries; one table a layer; any length: beyond ``max_distance`` K
all is one.

Deviations: the paper adds such vectors to the values too, and finds that the keys' alone do as well
(its section 4.3); values stay here, so that the weights shown times the values are the outputs.

.. [1] Shaw, Uszkoreit and Vaswani, "Self-Attention with Relative Position Representations", 2018.
   https://arxiv.org/abs/1803.02155
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.distances import offsets
from mha_lab.ranges import Size


class ShawPositions(nn.Module):
    """Adds the product of the query with a vector of the distance.

    Args:
        embed_dim: width of the embeddings.
        num_heads: heads H; the vectors are embed_dim / H wide.
        max_distance: from here on, either way, all distances are one.

    Raises:
        ValueError: max_distance is below 1.
    """

    acts_on = "scores"
    is_relative = True
    is_shared = False

    def __init__(self, embed_dim: Size, *, num_heads: Size, max_distance: Size = 16) -> None:
        super().__init__()
        if max_distance < 1:
            raise ValueError(f"max_distance must be at least 1, got {max_distance}")
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.empty(2 * max_distance + 1, embed_dim // num_heads))
        nn.init.xavier_uniform_(self.table)

    def score_bias(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N H S D"],
        x: Float[Tensor, "N L E"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
    ) -> Float[Tensor, "N H L S"]:
        """What is added to the scores.

        Args:
            q: (N, H, L, D).
            k: not read.
            x: not read.
            q_positions: (L,).
            k_positions: (S,).

        Returns:
            (N, H, L, S).
        """
        reach = self.max_distance
        row = offsets(q_positions, k_positions).clamp(-reach, reach) + reach
        products = q @ self.table.t().to(q.dtype) / math.sqrt(q.shape[-1])
        return products.gather(-1, row.expand(*q.shape[:-1], -1))

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"max_distance={self.max_distance}"
