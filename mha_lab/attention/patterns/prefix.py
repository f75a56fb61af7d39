"""Prefix language model [1]_ [2]_: the first tokens are seen by all, the rest by later ones only.

allowed_ij = j < size or j ≤ i.

.. [1] Liu et al., "Generating Wikipedia by Summarizing Long Sequences", 2018.
   https://arxiv.org/abs/1801.10198
.. [2] Raffel et al., "Exploring the Limits of Transfer Learning", 2019, section 3.2.1.
   https://arxiv.org/abs/1910.10683
"""

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from mha_lab.attention.patterns.distances import distances, refuse_cross
from mha_lab.ranges import Size


class Prefix(nn.Module):
    """Both directions within the prefix, causal behind it.

    Args:
        size: How many tokens the prefix has.

    Raises:
        ValueError: size is below 1.
    """

    def __init__(self, *, size: Size = 8) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}")
        self.size = size

    def forward(self, L: int, S: int, device: torch.device) -> Bool[Tensor, "L S"]:
        """Which keys each query sees."""
        return (distances(L, S, device) >= 0) | (torch.arange(S, device=device) < self.size)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """A causal mask blocks what the prefix would show."""
        refuse_cross("a prefix", is_cross=is_cross)
        if is_causal:
            raise ValueError(
                "a prefix that is seen from everywhere has no meaning under a causal mask, which "
                "blocks it; choose model=encoder, or attention/pattern=full"
            )

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"size={self.size}"
