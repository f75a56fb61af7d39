"""ALiBi [1]_: each head takes from a score what grows with the distance, at a slope of its own.

score_ij = q_i·k_j / √D − m_h |i − j|, with slopes m_h = 2^(−8h/H) for h = 1 to H. Where H is no
power of two, the slopes of the next lower one come first, then every second of twice as many, as
in the authors' code.

Acts on the scores; nothing to train; any length. Under a causal mask it is the paper's; without one
it is the symmetric form that the authors gave later [2]_, which cannot tell left from right.

.. [1] Press, Smith and Lewis, "Train Short, Test Long: Attention with Linear Biases Enables Input
   Length Extrapolation", 2022. https://arxiv.org/abs/2108.12409
.. [2] https://github.com/ofirpress/attention_with_linear_biases/issues/5
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mha_lab.positions.diagonals import OffsetBias
from mha_lab.positions.distances import at_least_float32
from mha_lab.ranges import Size


class AlibiPositions(OffsetBias):
    """Subtracts slope times distance from the scores.

    Args:
        embed_dim: width of the embeddings; any.
        num_heads: heads H.

    Raises:
        ValueError: num_heads is below 1.
    """

    def __init__(self, embed_dim: Size, *, num_heads: Size) -> None:
        super().__init__()
        if num_heads < 1:
            raise ValueError(f"num_heads must be at least 1, got {num_heads}")
        # Exponents are exact in every dtype that the module may be turned to; slopes are not.
        self.register_buffer("exponents", _exponents(num_heads), persistent=False)

    def of_offsets(self, offset: Int[Tensor, "..."]) -> Float[Tensor, "H ..."]:
        """What is added to the score of a key that stands so far after the query."""
        slopes = 2.0 ** -at_least_float32(self.get_buffer("exponents"))
        return -slopes.view(-1, *(1,) * offset.ndim) * offset.abs()


def _exponents(num_heads: int) -> Float[Tensor, "H"]:
    power = 2 ** (num_heads.bit_length() - 1)
    first = 8.0 * torch.arange(1, power + 1) / power
    further = 8.0 * torch.arange(1, 2 * power + 1, 2) / (2 * power)
    return torch.cat([first, further])[:num_heads]
