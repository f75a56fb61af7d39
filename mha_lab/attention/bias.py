"""What an encoding adds to the scores where it need not exist as a whole: (N, H, L, S) numbers."""

from typing import Any, NamedTuple

from torch import Tensor, nn

from mha_lab.attention.blockwise.bias import BlockBias


class ToldBias(NamedTuple):
    """What an encoding will add, once it is asked.

    Attributes:
        position: It has ``score_bias`` and ``in_blocks``.
        told: What these are called with: q, k, x and the positions of both.
    """

    position: nn.Module
    told: tuple[Tensor, ...]

    def whole(self) -> Tensor:
        """All of it, (N, H, L, S)."""
        tell: Any = self.position
        bias: Tensor = tell.score_bias(*self.told)
        return bias

    def in_blocks(self, scale: float) -> BlockBias | None:
        """What adds it block by block, if that can be.

        Args:
            scale: What products of queries and keys are multiplied by.
        """
        tell: Any = self.position
        bias: BlockBias | None = tell.in_blocks(*self.told, scale=scale)
        return bias


Bias = Tensor | ToldBias
"""Added to the scores, broadcastable to (N, H, L, S)."""


def whole(bias: Bias | None) -> Tensor | None:
    """All of a bias."""
    return bias.whole() if isinstance(bias, ToldBias) else bias
