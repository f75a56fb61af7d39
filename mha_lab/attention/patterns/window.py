"""Sliding window [1]_ [2]_: a query sees the keys less than ``size`` positions away.

allowed_ij = |i - j| < size. Under a causal mask that is the window of Mistral [2]_, the query and
the size - 1 keys before it; without, as many on the other side.

.. [1] Beltagy et al., "Longformer: The Long-Document Transformer", 2020, section 3.1.
   https://arxiv.org/abs/2004.05150
.. [2] Jiang et al., "Mistral 7B", 2023, section 2. https://arxiv.org/abs/2310.06825
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from mha_lab.attention.patterns.distances import distances, refuse_cross
from mha_lab.ranges import Size


class Window(nn.Module):
    """Keys that are near.

    Args:
        num_heads: H.
        size: How many keys a window holds, the query's own counted, on each side; a list has one
            size a head, where None is a head that sees all.

    Raises:
        ValueError: A size is below 1, or there is not one a head.
    """

    def __init__(self, *, num_heads: int, size: Size | list[Size | None] = 8) -> None:
        super().__init__()
        sizes = size if isinstance(size, Sequence) else [size]
        if any(one is not None and one < 1 for one in sizes):
            raise ValueError(f"size must be at least 1, got {size}")
        if isinstance(size, Sequence) and len(size) != num_heads:
            raise ValueError(f"size must have num_heads={num_heads} sizes, got {list(size)}")
        self.size = list(size) if isinstance(size, Sequence) else size

    def forward(self, L: int, S: int, device: torch.device) -> Bool[Tensor, "..."]:
        """(L, S), or with a size a head (H, L, S)."""
        away = distances(L, S, device).abs()
        if not isinstance(self.size, list):
            return away < self.size
        sizes = torch.tensor([S + 1 if one is None else one for one in self.size], device=device)
        return away < sizes[:, None, None]

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """No position of another sequence is near."""
        refuse_cross("a window", is_cross=is_cross)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"size={self.size}"
