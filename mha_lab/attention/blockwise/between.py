"""What lies between scores and weights, and of it what belongs to one block."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import Tensor

from mha_lab.attention.functional import exchange
from mha_lab.attention.multihead.blocks import BLOCK_ELEMENTS

_FEWEST_ROWS = 32
"""Below that, adding up the gradients of keys and values takes longer than making them."""


class Between(NamedTuple):
    """What lies between scores and the weights that are applied, apart from what has a gradient.

    Attributes:
        weighting: From scores (n, h, rows, keys) and opened to weights, by rows.
        factor: What q·k is multiplied by: the scale, and if scores are capped 2 / cap.
        softcap: Bound of the scores, or None.
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
    opened: Tensor
    added: Tensor | None
    blocked: Tensor | None
    closed: Tensor | None

    @property
    def rise(self) -> float:
        """What the gradients of products by ``chain`` have still to be multiplied by."""
        return 1.0 if self.softcap is None else 2 * self.softcap


class Block(NamedTuple):
    """One sample, some heads, some rows, and the keys that any of these may see."""

    n: slice
    heads: slice
    rows: slice
    keys: slice

    def of(self, mask: Tensor | None) -> Tensor | None:
        """What a tensor (1 or N, 1 or H, L, 1 or S) says of it, (1, 1 or h, rows, 1 or keys)."""
        if mask is None:
            return None
        mask = mask if mask.shape[0] == 1 else mask[self.n]
        mask = mask if mask.shape[1] == 1 else mask[:, self.heads]
        mask = mask if mask.shape[2] == 1 else mask[:, :, self.rows]
        return mask if mask.shape[3] == 1 else mask[..., self.keys]


def weights_of(
    scores: Tensor,
    between: Between,
    block: Block,
    bias: Tensor | None,
    before: Tensor | None,
    after: Tensor | None,
) -> Tensor:
    """The weights that are applied to the values of a block, by operations that have gradients.

    Args:
        scores: Products (n, h, rows, keys) times the factor.
        between: What lies between.
        block: Which they are.
        bias: Of the block.
        before: Between heads.
        after: Between heads.
    """
    if before is not None:
        scores = exchange(before, scores)
    if between.softcap is not None:
        scores = scores.sigmoid() * (2 * between.softcap) - between.softcap
    if bias is not None:
        scores = scores + bias
    added, opened = block.of(between.added), block.of(between.opened)
    if added is not None:
        scores = scores + added
    weights: Tensor = between.weighting(scores, opened)
    blocked, closed = block.of(between.blocked), block.of(between.closed)
    if blocked is not None:
        weights = weights.masked_fill(blocked, 0.0)
    if after is not None:
        weights = exchange(after, weights)
    return weights if closed is None else weights.masked_fill(closed, 0.0)


def cut(q: Tensor, k: Tensor, between: Between, *, is_mixed: bool) -> Iterator[Block]:
    """Cut samples, heads (unless they are mixed) and rows."""
    N, H, L, _ = q.shape
    S = k.shape[2]
    heads = H if is_mixed else min(H, max(1, BLOCK_ELEMENTS // (L * S)))
    rows = min(L, max(_FEWEST_ROWS, BLOCK_ELEMENTS // (heads * S)))
    seen = between.opened.flatten(0, 1).any(0) if between.added is not None else None
    for r in range(0, L, rows):
        row = slice(r, r + rows)
        keys = slice(0, S)
        if seen is not None:
            found = seen[row].any(0).nonzero()
            keys = slice(int(found[0]), int(found[-1]) + 1)
        for n in range(N):
            for h in range(0, H, heads):
                yield Block(slice(n, n + 1), slice(h, h + heads), row, keys)
