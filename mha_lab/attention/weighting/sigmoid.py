"""Sigmoid attention [1]_: weights_j = σ(z_j + b), b = −log n; no row has to sum to anything.

With the bias, a row begins with a sum of about 1. n is the number of keys that the query may see
(the paper: the length), so that padding says nothing and a causal row is treated as what it is.

.. [1] Ramapuram et al., "Theory, Analysis, and Best Practices for Sigmoid Self-Attention", 2024,
   section 2. https://arxiv.org/abs/2409.04431
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.allowed import number_of_keys
from mha_lab.attention.parts import RowsOver


class Sigmoid(nn.Module):
    """Each key is weighed by itself."""

    rows_sum_to_one = False

    def forward(
        self, scores: Float[Tensor, "N H L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N H L S"]:
        """σ(scores − log n)."""
        return (scores - number_of_keys(allowed, scores.dtype).log()).sigmoid()

    def as_rows(self, opened: Tensor) -> RowsOver:
        """σ of shifted rows, whose keys are counted once for all blocks."""
        return RowsOver(Unshifted(), shift=-number_of_keys(opened, torch.float64).log())


class Unshifted:
    """σ(scores)."""

    def __call__(self, scores: Tensor, allowed: Tensor) -> Tensor:
        """Each score by itself."""
        return scores.sigmoid()

    def gradient(self, scores: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
        """That of the scores, where that of the weights lies."""
        grad_scores: Tensor = torch.ops.aten.sigmoid_backward.grad_input(
            grad, weights, grad_input=grad
        )
        return grad_scores
