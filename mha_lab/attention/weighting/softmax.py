"""Softmax [1]_: weights_j = exp(z_j) / Σ_l exp(z_l), over the allowed keys.

.. [1] Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1.
   https://arxiv.org/abs/1706.03762
"""

import math
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


_LOG2_E = math.log2(math.e)
"""Powers of 2 take a third of the time of those of e on a CPU."""


class Softmax(nn.Module):
    """The weighting of the original Transformer."""

    treats_rows_alike = True
    is_softmax = True

    def forward(
        self,
        scores: Float[Tensor, "N H L S"],
        allowed: Bool[Tensor, "..."],
        found: Float[Tensor, "N H L 1"] | None = None,
    ) -> Float[Tensor, "N H L S"]:
        """Each row in proportion to the exponentials of its scores."""
        if found is None:
            return scores.softmax(-1)
        return torch.sub(scores, found, out=scores).mul_(_LOG2_E).exp2_()

    def find_and_weigh(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms of the rows' sums of exponentials, and the weights where scores were."""
        largest = scores.amax(-1, keepdim=True)
        scores.sub_(largest).mul_(_LOG2_E).exp2_()
        total = scores.sum(-1, keepdim=True)
        return largest.add_(total.log()), scores.div_(total)

    def gradient(self, scores: Tensor, weights: Tensor, grad: Tensor, found: Tensor) -> Tensor:
        """That of the scores."""
        return softmax_gradient(weights, grad)

    def as_softmax(self, allowed: Callable[[], Tensor]) -> SoftmaxOver:
        """It is the softmax itself."""
        return SoftmaxOver()
