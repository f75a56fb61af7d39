"""Heads lean towards their mean: (1 − sₕ) · weightsₕ + sₕ · mean of all heads, with learned sₕ.

Name your paper or source here.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.ranges import Size


class TemplateMixing(nn.Module):
    """Lets heads exchange weights; see ``mha_lab.attention.parts`` for what a mixing may say.

    Args:
        num_heads: Number of heads H.
        share: Every head's s before training, between 0 and 1; an option of its own, set by
            attention.mixing.share.

    Raises:
        ValueError: ``share`` is not between 0 and 1.
    """

    def __init__(self, *, num_heads: Size, share: float = 0.1) -> None:
        if not 0 < share < 1:
            raise ValueError(f"share must lie between 0 and 1, got {share}")
        super().__init__()
        self.share = nn.Parameter(torch.full((num_heads,), share).logit())

    def forward(self, weights: Float[Tensor, "N H L S"]) -> Float[Tensor, "N H L S"]:
        """What each head makes of all heads' weights.

        Args:
            weights: (N, H, L, S), after the weighting.

        Returns:
            (N, H, L, S); where a head may not see, 0 is put back afterwards.
        """
        share = self.share.sigmoid()[:, None, None]
        return weights.lerp(weights.mean(1, keepdim=True).expand_as(weights), share)
