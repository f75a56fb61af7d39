"""What lies between scores and weights."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import Tensor

from mha_lab.attention.blockwise.bias import BlockBias
from mha_lab.attention.blockwise.block import Block, cut
from mha_lab.attention.blockwise.mixed import maps_of, mix


class Between(NamedTuple):
    """What lies between scores and the weights that are applied, apart from what has a gradient.

    Attributes:
        weighting: From scores (n, h, rows, keys) and opened to weights, by rows.
        factor: What q·k is multiplied by: the scale, and if scores are capped 2 / cap.
        softcap: Bound of the scores, or None.
        bias: What is added to the scores and has a gradient, or None.
        opened: True where a query may attend, with rows that see no key open to all, (1 or N, 1 or
            H, L, S).
        added: Added to the scores, -inf where not opened, of such a shape; None if there is
            nothing to add.
        blocked: What must be 0 after the weighting, which gives 0 where scores are -inf: rows that
            see no key, (1 or N, 1 or H, L, 1); None if there are none.
        closed: What must be 0 after heads were mixed, (1 or N, H, L, S); None if heads see alike.
    """

    weighting: Any
    factor: float
    softcap: float | None
    bias: BlockBias | None
    opened: Tensor
    added: Tensor | None
    blocked: Tensor | None
    closed: Tensor | None

    def cut(self, q: Tensor, k: Tensor, after: Tensor | None = None) -> Iterator[Block]:
        """Cut a call into blocks of the keys that their rows see; see ``cut``."""
        seen = None if self.added is None else self.opened
        keys_seen = getattr(self.bias, "keys_seen", None) if seen is None else None
        maps, is_mixed = maps_of(after), after is not None and after.ndim == 2
        blocks = cut(q, k, seen, is_mixed=is_mixed, maps=maps, keys_seen=keys_seen)
        widened = getattr(self.bias, "widened", None)
        return blocks if widened is None else (widened(block, k.shape[2]) for block in blocks)

    @property
    def rise(self) -> float:
        """What the gradients of products by ``chain`` have still to be multiplied by."""
        return 1.0 if self.softcap is None else 2 * self.softcap


def weights_of(
    scores: Tensor,
    between: Between,
    block: Block,
    before: Tensor | None,
    after: Tensor | None,
    *of_bias: Tensor,
) -> Tensor:
    """The weights that are applied to the values of a block, by operations that have gradients.

    Args:
        scores: Products (n, h, rows, keys) times the factor.
        between: What lies between.
        block: Which they are.
        before: Between heads.
        after: Between heads, or maps.
        of_bias: What the bias is made of.
    """
    scores = mix(before, scores)
    if between.softcap is not None:
        scores = scores.sigmoid() * (2 * between.softcap) - between.softcap
    if between.bias is not None:
        scores = scores + between.bias.of(scores, block, *of_bias)
    added, opened = block.of(between.added), block.of(between.opened)
    if added is not None:
        scores = scores + added
    weights: Tensor = between.weighting(scores, opened)
    blocked, closed = block.of(between.blocked), block.of(between.closed)
    if blocked is not None:
        weights = weights.masked_fill(blocked, 0.0)
    weights = mix(after, weights)
    return weights if closed is None else weights.masked_fill(closed, 0.0)
