"""T5's relative bias [1]_: a learned number a head for each distance, distant ones in buckets.

score_ij = q_i·k_j / √D + b_h[bucket(j − i)]. Half of the buckets hold one distance each; the rest
grow with the logarithm up to ``max_distance``, and the last one holds all beyond. Without a causal
mask, half of the buckets are for keys after the query.

Acts on the scores; shared by the layers of a stack; any length: beyond ``max_distance`` all is one.

Deviations: T5 does not scale its scores by 1/√D; here they stay as the attention has them.

.. [1] Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
   Transformer", 2020, section 2.1. https://arxiv.org/abs/1910.10683
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.diagonals import OffsetBias
from mha_lab.positions.distances import at_least_float32
from mha_lab.ranges import Size


class T5Positions(OffsetBias):
    """Adds a learned bias a bucket of distances and a head.

    Args:
        embed_dim: width of the embeddings; the biases start at 1/√embed_dim, as in T5.
        num_heads: heads H.
        is_causal: whether queries see earlier keys only; else half of the buckets lie after.
        num_buckets: how many distances are told apart.
        max_distance: from here on all distances are one.

    Raises:
        ValueError: num_buckets is below 2, or odd or below 4 without a causal mask, or
            max_distance lies within the distances that have a bucket each.
    """

    def __init__(
        self,
        embed_dim: Size,
        *,
        num_heads: Size,
        is_causal: bool = True,
        num_buckets: Size = 32,
        max_distance: Size = 128,
    ) -> None:
        super().__init__()
        directions = 1 if is_causal else 2
        if num_buckets % directions or num_buckets < 2 * directions:
            rule = "at least 2" if is_causal else "even and at least 4, half for each direction"
            raise ValueError(f"num_buckets must be {rule}, got {num_buckets}")
        if max_distance <= num_buckets // directions // 2:
            raise ValueError(
                f"max_distance must be above {num_buckets // directions // 2}, the distances that "
                f"have a bucket each of num_buckets={num_buckets}, got {max_distance}"
            )
        self.is_causal = is_causal
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.table = nn.Embedding(num_buckets, num_heads)
        nn.init.normal_(self.table.weight, std=embed_dim**-0.5)

    def of_offsets(self, offset: Int[Tensor, "..."]) -> Float[Tensor, "H ..."]:
        """What is added to the score of a key that stands so far after the query."""
        return at_least_float32(self.table.weight).t()[:, self.buckets(offset)]

    def buckets(self, offset: Int[Tensor, "L S"]) -> Int[Tensor, "L S"]:
        """The number of the bucket of each offset, how far the key stands after the query."""
        if self.is_causal:
            return self._of_distance((-offset).clamp(min=0), self.num_buckets)
        half = self.num_buckets // 2
        return self._of_distance(offset.abs(), half) + half * (offset > 0)

    def _of_distance(self, distance: Tensor, count: int) -> Tensor:
        exact = count // 2
        scale = (count - exact) / math.log(self.max_distance / exact)
        growing = exact + (distance.clamp(min=exact) / exact).log() * scale
        growing = growing.long().clamp(max=count - 1)
        return torch.where(distance < exact, distance, growing)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"is_causal={self.is_causal}, max_distance={self.max_distance}"
