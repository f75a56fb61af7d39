"""Talking heads [1]_: heads exchange their scores before the weighting, and their weights after it.

scores_h = Σ_g A_hg · scores_g, weights_h = Σ_g B_hg · weights_g, with learned A and B (H, H), here
begun as the identity. Rows of B need not sum to 1, nor do rows of weights. After the second
exchange a head may weigh only what it may see itself.

.. [1] Shazeer et al., "Talking-Heads Attention", 2020. https://arxiv.org/abs/2003.02436
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.functional import exchange


class TalkingHeads(nn.Module):
    """Linear maps between heads, on both sides of the weighting.

    Args:
        num_heads: H.
    """

    rows_sum_to_one = False

    def __init__(self, *, num_heads: int) -> None:
        super().__init__()
        self.before = nn.Parameter(torch.eye(num_heads))
        self.after = nn.Parameter(torch.eye(num_heads))

    def mix_scores(self, scores: Float[Tensor, "N H L S"]) -> Float[Tensor, "N H L S"]:
        """What each head makes of all heads' scores."""
        return exchange(self.before, scores)

    def matrices(self) -> tuple[Tensor, Tensor]:
        """The two maps, for blocks."""
        return self.before, self.after

    def forward(self, weights: Float[Tensor, "N H L S"]) -> Float[Tensor, "N H L S"]:
        """What each head makes of all heads' weights."""
        return exchange(self.after, weights)
