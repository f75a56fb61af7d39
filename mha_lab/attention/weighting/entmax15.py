"""Entmax with α = 1.5 [1]_: between softmax (α = 1) and sparsemax (α = 2), with exact zeros.

weights_j = max(z_j / 2 - τ, 0)², with the τ for which a row sums to 1.

.. [1] Peters, Niculae and Martins, "Sparse Sequence-to-Sequence Models", 2019.
   https://arxiv.org/abs/1905.05702
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.weighting.sparse import entmax15, find_threshold, roots_of, sparse_gradient


class Entmax15(nn.Module):
    """Sparse weights with a smooth edge."""

    treats_rows_alike = True

    def forward(
        self,
        scores: Float[Tensor, "N H L S"],
        allowed: Bool[Tensor, "..."],
        found: Float[Tensor, "N H L 1"] | None = None,
    ) -> Float[Tensor, "N H L S"]:
        """Entmax of each row, whose threshold may have been found before."""
        return entmax15(scores, found)

    def gradient(self, scores: Tensor, weights: Tensor, grad: Tensor, found: Tensor) -> Tensor:
        """That of the scores."""
        return sparse_gradient(roots_of(scores, found), grad)

    def find(self, scores: Float[Tensor, "N H L S"]) -> Float[Tensor, "N H L 1"]:
        """The threshold of each row."""
        return find_threshold(scores, 2)
