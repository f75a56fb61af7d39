"""Scalable softmax [1]_: softmax(s_h · log n · z), so that long rows do not fade.

n is the number of keys that the query may see (so padding says nothing, and a causal row counts
what it sees), and s_h is learned, one a head, without the optional bias of the paper. It begins at
0.43, the s of the paper's examples. A query that sees one key gives it weight 1, as it must.

.. [1] Nakanishi, "Scalable-Softmax Is Superior for Attention", 2025.
   https://arxiv.org/abs/2501.19399
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.allowed import number_of_keys
from mha_lab.attention.parts import RowsOver, SoftmaxOver
from mha_lab.attention.weighting.softmax import Softmax
from mha_lab.ranges import Positive


class ScalableSoftmax(nn.Module):
    """Softmax whose scores grow with the logarithm of the length.

    Args:
        num_heads: H, each with a factor of its own.
        start: The factor that training begins with.

    Raises:
        ValueError: start is not above 0.
    """

    def __init__(self, *, num_heads: int, start: Positive = 0.43) -> None:
        if not start > 0:
            raise ValueError(f"start must be above 0, got {start}")
        super().__init__()
        self.factor = nn.Parameter(torch.full((num_heads,), float(start)))

    def forward(
        self, scores: Float[Tensor, "N MH L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N MH L S"]:
        """Softmax of the scaled scores."""
        scale = self._scale(allowed, scores.shape[1], scores.dtype)
        blocked = allowed.logical_not()  # -inf times a factor would have no gradient
        scaled = scores.masked_fill(blocked, 0.0) * scale
        return scaled.masked_fill(blocked, -torch.inf).softmax(-1)

    def as_softmax(self, allowed: Callable[[], Tensor]) -> SoftmaxOver:
        """A softmax over scaled rows."""
        return SoftmaxOver(self._scale(allowed(), len(self.factor), self.factor.dtype))

    def as_rows(self, opened: Tensor) -> RowsOver:
        """A softmax over scaled rows."""
        return RowsOver(Softmax(), self._scale(opened, len(self.factor), self.factor.dtype))

    def _scale(self, allowed: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
        n = number_of_keys(allowed, torch.promote_types(dtype, torch.float32))
        factor = self.factor.repeat_interleave(heads // len(self.factor))
        return factor.to(n.dtype)[:, None, None] * n.log()
