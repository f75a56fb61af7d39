"""Top-k attention [1]_: softmax over the k best keys of each query; all others get exactly 0.

Of keys with the same score it is open which are kept.

.. [1] Gupta et al., "Memory-efficient Transformers via Top-k Attention", 2021.
   https://arxiv.org/abs/2106.06899
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.weighting.softmax import softmax_gradient
from mha_lab.ranges import Size


class TopK(nn.Module):
    """Softmax over the k best keys.

    Args:
        k: How many keys a query attends to at most.

    Raises:
        ValueError: k is below 1.
    """

    treats_rows_alike = True

    def __init__(self, *, k: Size = 8) -> None:
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        super().__init__()
        self.k = k

    @property
    def most_keys(self) -> int:
        """K."""
        return self.k

    def forward(
        self, scores: Float[Tensor, "N H L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N H L S"]:
        """Softmax over the best."""
        if self.k >= scores.shape[-1]:
            return scores.softmax(-1)
        best, where = scores.topk(self.k, dim=-1, sorted=False)
        return torch.zeros_like(scores).scatter(-1, where, best.softmax(-1))

    def gradient(self, scores: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
        """That of the scores."""
        return softmax_gradient(weights, grad)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"k={self.k}"
