"""NAPE [1]_: half of the heads know no position, the other half has ALiBi with slopes 1/h.

score_ij = q_i·k_j / √D − m_h |i − j|, with m_h = 1/h for the first half of the heads (h = 1 to H/2)
and m_h = 0 for the rest. Where H is odd, the larger half knows no position.

Acts on the scores; nothing to train; any length.

Deviations: the paper's is causal; without a causal mask the distance counts in both directions, as
in ALiBi's symmetric form.

.. [1] Vasylenko, Treviso and Martins, "Long-Context Generalization with Sparse Attention", 2025.
   https://arxiv.org/abs/2506.16640v2 (NoPE + ALiBi; the slopes are the authors' code's default)
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mha_lab.positions.diagonals import OffsetBias
from mha_lab.positions.distances import at_least_float32
from mha_lab.ranges import Size


class NapePositions(OffsetBias):
    """Subtracts slope times distance from the scores of half of the heads.

    Args:
        embed_dim: width of the embeddings; any.
        num_heads: heads H.

    Raises:
        ValueError: num_heads is below 2, and would leave no half with positions.
    """

    def __init__(self, embed_dim: Size, *, num_heads: Size) -> None:
        super().__init__()
        if num_heads < 2:
            raise ValueError(
                f"num_heads must be at least 2 for nape, one half with positions and one without, "
                f"got {num_heads}; choose model.num_heads=2 or more, or position=alibi"
            )
        self.num_heads = num_heads
        numbers = torch.arange(1.0, num_heads // 2 + 1)  # 1/h would not be exact in every dtype
        self.register_buffer("numbers", numbers, persistent=False)

    def of_offsets(self, offset: Int[Tensor, "..."]) -> Float[Tensor, "H ..."]:
        """What is added to the score of a key that stands so far after the query."""
        slopes = 1 / at_least_float32(self.get_buffer("numbers"))
        slopes = torch.cat([slopes, slopes.new_zeros(self.num_heads - len(slopes))])
        return -slopes.view(-1, *(1,) * offset.ndim) * offset.abs()
