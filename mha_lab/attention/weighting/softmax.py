"""Softmax [1]_: weights_j = exp(z_j) / Σ_l exp(z_l), over the allowed keys.

.. [1] Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1.
   https://arxiv.org/abs/1706.03762
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.parts import SoftmaxOver


def softmax_gradient(
    weights: Float[Tensor, "... S"], grad: Float[Tensor, "... S"]
) -> Float[Tensor, "... S"]:
    """That of the scores, from the weights and theirs, where theirs lies."""
    return torch._softmax_backward_data(grad, weights, -1, weights.dtype, grad_input=grad)


class Softmax(nn.Module):
    """The weighting of the original Transformer."""

    treats_rows_alike = True
    is_softmax = True

    def forward(
        self, scores: Float[Tensor, "N H L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N H L S"]:
        """Each row in proportion to the exponentials of its scores."""
        return scores.softmax(-1)

    def gradient(self, scores: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
        """That of the scores."""
        return softmax_gradient(weights, grad)

    def as_softmax(self, allowed: Callable[[], Tensor]) -> SoftmaxOver:
        """It is the softmax itself."""
        return SoftmaxOver()
