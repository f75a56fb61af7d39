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
from torch import Tensor, nn

from mha_lab.positions.diagonals import by_offset, of_diagonals
from mha_lab.positions.distances import at_least_float32
from mha_lab.ranges import Size


class NapePositions(nn.Module):
    """Subtracts slope times distance from the scores of half of the heads.

    Args:
        embed_dim: width of the embeddings; any.
        num_heads: heads H.

    Raises:
        ValueError: num_heads is below 2, and would leave no half with positions.
    """

    acts_on = "scores"
    is_relative = True

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

    def bias(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H L S"]:
        """What is added to the scores.

        Args:
            q_positions: (L,).
            k_positions: (S,).

        Returns:
            (H, L, S); 0 for heads that know no position.
        """
        return by_offset(self._of_offsets, q_positions, k_positions)

    def diagonals(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H M"] | None:
        """The same, once for each diagonal; the arguments are those of ``bias``.

        Args:
            q_positions: (L,).
            k_positions: (S,).

        Returns:
            (H, L + S - 1), or None where positions do not follow one another.
        """
        return of_diagonals(self._of_offsets, q_positions, k_positions)

    def _of_offsets(self, offset: Int[Tensor, "..."]) -> Float[Tensor, "H ..."]:
        """What is added to the score of a key that stands so far after the query."""
        slopes = 1 / at_least_float32(self.get_buffer("numbers"))
        slopes = torch.cat([slopes, slopes.new_zeros(self.num_heads - len(slopes))])
        return -slopes.view(-1, *(1,) * offset.ndim) * offset.abs()
