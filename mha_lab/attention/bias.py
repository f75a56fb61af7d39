"""What an encoding adds to the scores, where it need not exist as a whole: (N, H, L, S) numbers."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mha_lab.attention.allowed import restrict
from mha_lab.attention.blockwise.bias import BlockBias
from mha_lab.attention.blockwise.diagonals import Diagonals
from mha_lab.attention.functional import Mask


class ToldBias(NamedTuple):
    """What an encoding will add, once it is asked.

    Attributes:
        position: It has ``score_bias`` or ``bias``.
        told: What ``score_bias`` is called with: q, k, x and the positions of both.
        made: All of it, if it cannot be made by blocks; None if it is not made yet.
    """

    position: nn.Module
    told: tuple[Tensor, ...]
    made: Tensor | None = None

    @property
    def blocks(self) -> bool:
        """Whether it may be -inf."""
        return bool(getattr(self.position, "blocks", False))

    @property
    def is_best_in_blocks(self) -> bool:
        """Whether the kernel is worse even without a mask: it has no gradient for a bias."""
        return hasattr(self.position, "in_blocks") or self.learns

    @property
    def learns(self) -> bool:
        """Whether it will have a gradient, asked without making it."""
        of_what: list[Tensor] = [*self.position.parameters()] if self.made is None else [self.made]
        if self.made is None and hasattr(self.position, "score_bias"):
            of_what += self.told
        return torch.is_grad_enabled() and any(x.requires_grad for x in of_what)

    def whole(self) -> Tensor:
        """All of it, (N, H, L, S) or (H, L, S)."""
        if self.made is not None:
            return self.made
        tell: Any = self.position
        reads_content = hasattr(tell, "score_bias")
        bias: Tensor = tell.score_bias(*self.told) if reads_content else tell.bias(*self.told[3:])
        return bias

    def in_blocks(self, scale: float, *, is_causal: bool) -> BlockBias | None:
        """What adds it block by block, if that can be.

        Args:
            scale: What products of queries and keys are multiplied by.
            is_causal: Whether it may block later keys, which says so by ``hides_later``.
        """
        tell: Any = self.position
        if hasattr(tell, "in_blocks"):
            bias: BlockBias | None = tell.in_blocks(*self.told, scale=scale)
            return bias
        distinct = tell.diagonals(*self.told[3:]) if self.made is None else None
        if distinct is None:
            return None
        made = Diagonals(distinct, len(self.told[3]), hides_later=is_causal)
        return None if self.blocks and made.has_blocked_rows else made


def told_bias(position: nn.Module, told: tuple[Tensor, ...]) -> ToldBias:
    """What an encoding will add; the arguments are the attributes of ``ToldBias``.

    What cannot be made by blocks is made now, once: an encoding may draw it at random.
    """
    bias = ToldBias(position, told)
    is_for_blocks = hasattr(position, "in_blocks") or hasattr(position, "diagonals")
    return bias if is_for_blocks else bias._replace(made=bias.whole())


Bias = Tensor | ToldBias
"""Added to the scores, broadcastable to (N, H, L, S)."""


def settled(
    bias: Bias | None, mask: Mask | None, is_causal: bool
) -> tuple[Tensor | None, Mask | None, bool]:
    """All of a bias, finite, and the inside mask, which blocks where it was -inf.

    Args:
        bias: Added to the scores, or None.
        mask: Inside mask, or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
    """
    if not isinstance(bias, ToldBias):
        return bias, mask, is_causal
    made = bias.whole()
    if bias.blocks:
        # What is blocked must be known as such: not every weighting makes 0 of -inf.
        mask, is_causal = restrict(mask, is_causal, made > -torch.inf)
        made = made.masked_fill(made == -torch.inf, 0.0)
    return made, mask, is_causal
