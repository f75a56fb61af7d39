"""A penalty that grows with the distance, at a rate each head learns: −softplus(rateₕ) · |i − j|.

Name your paper or source here.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.interface import Place
from mha_lab.ranges import Positive, Size


class TemplatePositions(nn.Module):
    """Adds to the scores of each head; see ``mha_lab.positions.interface`` for the other places.

    Args:
        embed_dim: Width of the embeddings; not needed here.
        num_heads: Number of heads H.
        first_rate: What each head's rate is before training; an option of its own, set by
            position.first_rate.
    """

    acts_on: ClassVar[Place] = "scores"

    def __init__(self, embed_dim: Size, *, num_heads: Size, first_rate: Positive = 0.1) -> None:
        super().__init__()
        # softplus of this is first_rate: a rate stays above 0 whatever training does.
        self.rate = nn.Parameter(torch.full((num_heads,), first_rate).expm1().log())

    def bias(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H L S"]:
        """What is added to the score of each query and key.

        Args:
            q_positions: (L,), where each query stands.
            k_positions: (S,), where each key stands.

        Returns:
            (H, L, S).
        """
        distance = (q_positions[:, None] - k_positions[None, :]).abs()
        # Half precision would be too coarse for what is added to scores.
        rate = self.rate.to(torch.promote_types(self.rate.dtype, torch.float32))
        return -F.softplus(rate)[:, None, None] * distance
