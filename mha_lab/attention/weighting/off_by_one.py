"""Softmax off by one [1]_: weights_j = exp(z_j) / (1 + Σ_l exp(z_l)), over the allowed keys.

It is a softmax with one more key, whose score and value are 0, so that a head may attend to
nothing. The same as ``add_zero_attn`` of torch's module.

.. [1] Miller, "Attention Is Off By One", 2023.
   https://www.evanmiller.org/attention-is-off-by-one.html
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.parts import SoftmaxOver
from mha_lab.attention.weighting.sink import softmax_beside


class OffByOne(nn.Module):
    """Softmax that may give less than 1 in all.

    Args:
        num_heads: H.
    """

    is_softmax = True
    rows_sum_to_one = False
    zero: Tensor

    def __init__(self, *, num_heads: int) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(num_heads), persistent=False)

    def forward(
        self, scores: Float[Tensor, "N H L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N H L S"]:
        """Softmax beside a score of 0."""
        return softmax_beside(scores, self.zero)

    def as_softmax(self, allowed: Callable[[], Tensor]) -> SoftmaxOver:
        """A softmax with one key more."""
        return SoftmaxOver(extra_score=self.zero)
