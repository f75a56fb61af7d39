"""Global tokens and a window [1]_: some tokens see all and are seen by all, the rest see near ones.

allowed_ij = |i - j| < size or i < global_tokens or j < global_tokens. The global tokens are the
first ones (the paper chooses them by task; [2]_ has its own, before the text).

Deviation from both: all queries and keys are projected alike; [1]_ has projections of their own for
global attention, and [2]_ relative positions besides.

.. [1] Beltagy et al., "Longformer: The Long-Document Transformer", 2020, section 3.1.
   https://arxiv.org/abs/2004.05150
.. [2] Ainslie et al., "ETC: Encoding Long and Structured Inputs in Transformers", 2020.
   https://arxiv.org/abs/2004.08483
"""

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from mha_lab.attention.patterns.distances import distances, refuse_cross
from mha_lab.ranges import Count, Size


class GlobalWindow(nn.Module):
    """Near keys, and the first ones.

    Args:
        size: How many keys a window holds, the query's own counted, on each side.
        global_tokens: How many of the first tokens see all and are seen by all.

    Raises:
        ValueError: size is below 1, or global_tokens below 0.
    """

    def __init__(self, *, size: Size = 8, global_tokens: Count = 1) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}")
        if global_tokens < 0:
            raise ValueError(f"global_tokens must be at least 0, got {global_tokens}")
        self.size, self.global_tokens = size, global_tokens

    def forward(self, L: int, S: int, device: torch.device) -> Bool[Tensor, "L S"]:
        """Which keys each query sees."""
        near = distances(L, S, device).abs() < self.size
        is_global = torch.arange(S, device=device) < self.global_tokens
        return near | is_global[S - L :, None] | is_global

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """No position of another sequence is near."""
        refuse_cross("a window", is_cross=is_cross)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"size={self.size}, global_tokens={self.global_tokens}"
