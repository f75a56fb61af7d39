"""Hard-ALiBi [1]_: some heads see the last few tokens alone, the others all and know no position.

score_ij = q_i·k_j / √D, and −∞ where head h of the windowed ones (h = 1, 2, ...) would see more
than the last h tokens, its own counted: i − j ≥ h. The other heads have no encoding.

Acts on the scores; nothing to train; any length; causal only, as the paper's. Half of the heads
have a window, as 8 of 16 in the authors' code. By counting from the windowed heads the others find
the place where what they copy goes on.

.. [1] Jelassi, Brandfonbrener, Kakade and Malach, "Repeat After Me: Transformers are Better than
   State Space Models at Copying", 2024. https://arxiv.org/abs/2402.01032 (windows of 1, 2, ... are
   those of the authors' code)
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mha_lab.positions.diagonals import OffsetBias
from mha_lab.ranges import Size


class HardAlibiPositions(OffsetBias):
    """Blocks what lies beyond the window, in some of the heads.

    Args:
        embed_dim: width of the embeddings; any.
        num_heads: heads H.
        windowed_heads: how many have a window, of 1, 2, ... tokens; None means half.

    Raises:
        ValueError: num_heads is below 1, or windowed_heads is not between 1 and num_heads.
    """

    blocks = True

    def __init__(
        self, embed_dim: Size, *, num_heads: Size, windowed_heads: Size | None = None
    ) -> None:
        super().__init__()
        if windowed_heads is None:
            windowed_heads = (num_heads + 1) // 2
        if not 1 <= windowed_heads <= num_heads:
            raise ValueError(
                f"windowed_heads must be from 1 to num_heads={num_heads}, got {windowed_heads}"
            )
        self.num_heads = num_heads
        self.windowed_heads = windowed_heads

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say that a window of the last tokens has no meaning without a causal mask.

        Raises:
            ValueError: it stands where queries see later keys.
        """
        if not is_causal:
            raise ValueError(
                "position=hard_alibi lets heads see the last few tokens, which needs a causal "
                "mask; choose model=decoder, or position=alibi"
            )

    def of_offsets(self, offset: Int[Tensor, "..."]) -> Float[Tensor, "H ..."]:
        """What is added to the score of a key that stands so far after the query."""
        window = torch.arange(1, self.num_heads + 1, device=offset.device)
        window = window.view(-1, *(1,) * offset.ndim)
        blocked = (-offset >= window) & (window <= self.windowed_heads)
        return torch.zeros(blocked.shape, device=offset.device).masked_fill(blocked, -torch.inf)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"num_heads={self.num_heads}, windowed_heads={self.windowed_heads}"
