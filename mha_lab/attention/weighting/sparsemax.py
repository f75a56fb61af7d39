"""Sparsemax [1]_: the distribution that is nearest to the scores; most weights are exactly 0.

weights_j = max(z_j - τ, 0), with the τ for which a row sums to 1.

.. [1] Martins and Astudillo, "From Softmax to Sparsemax", 2016. https://arxiv.org/abs/1602.02068
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.weighting.sparse import find_threshold, sparse_gradient, sparsemax


class Sparsemax(nn.Module):
    """Each row is projected onto the distributions."""

    treats_rows_alike = True

    def forward(
        self,
        scores: Float[Tensor, "N H L S"],
        allowed: Bool[Tensor, "..."],
        found: Float[Tensor, "N H L 1"] | None = None,
    ) -> Float[Tensor, "N H L S"]:
        """Sparsemax of each row, whose threshold may have been found before."""
        return sparsemax(scores, found)

    def gradient(self, scores: Tensor, weights: Tensor, grad: Tensor, found: Tensor) -> Tensor:
        """That of the scores."""
        return sparse_gradient(weights.sign(), grad)

    def find(self, scores: Float[Tensor, "N H L S"]) -> Float[Tensor, "N H L 1"]:
        """The threshold of each row."""
        return find_threshold(scores, 1)
