"""Dilated sliding window [1]_: every ``dilation``-th key, up to ``size`` of them on each side.

allowed_ij = |i - j| < size · dilation and (i - j) mod dilation = 0.

.. [1] Beltagy et al., "Longformer: The Long-Document Transformer", 2020, section 3.1.
   https://arxiv.org/abs/2004.05150
"""

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from mha_lab.attention.patterns.distances import distances, refuse_cross
from mha_lab.ranges import Size


class DilatedWindow(nn.Module):
    """Keys at regular distances.

    Args:
        size: How many keys the window holds, the query's own counted, on each side.
        dilation: The distance between two of them.

    Raises:
        ValueError: One is below 1.
    """

    def __init__(self, *, size: Size = 8, dilation: Size = 2) -> None:
        super().__init__()
        for name, value in (("size", size), ("dilation", dilation)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.size, self.dilation = size, dilation

    def forward(self, L: int, S: int, device: torch.device) -> Bool[Tensor, "L S"]:
        """Which keys each query sees."""
        away = distances(L, S, device).abs()
        return (away < self.size * self.dilation) & (away % self.dilation == 0)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """No position of another sequence is near."""
        refuse_cross("a dilated window", is_cross=is_cross)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"size={self.size}, dilation={self.dilation}"
