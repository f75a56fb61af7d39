"""Keys at distances 0, 1, 2, 4, 8 and so on, and all near ones: log L instead of L keys a query.

Name your paper or source here.
"""

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from mha_lab.attention.patterns.distances import distances, refuse_cross
from mha_lab.ranges import Size


class TemplatePattern(nn.Module):
    """Says who may see whom; causality and padding are seen to by others.

    Args:
        near: Keys below this distance are seen too; an option of its own, set by
            attention.pattern.near.
    """

    def __init__(self, *, near: Size = 2) -> None:
        super().__init__()
        self.near = near

    def forward(self, L: int, S: int, device: torch.device) -> Bool[Tensor, "L S"]:
        """Which keys each query sees.

        Args:
            L: Number of queries; they are the last L of the positions.
            S: Number of keys.
            device: Of the result.

        Returns:
            (L, S), True where query i may see key j; (H, L, S) where heads differ.
        """
        away = distances(L, S, device).abs()
        is_power_of_two = (away & (away - 1)) == 0  # 0 as well
        return is_power_of_two | (away < self.near)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say where the pattern has no meaning: positions of another sequence are no distance."""
        refuse_cross("a pattern of distances", is_cross=is_cross)
