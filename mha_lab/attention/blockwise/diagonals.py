"""A bias with one number for each diagonal, block by block: (H, L, S) numbers never exist.

Later keys can be blocked by these numbers too, and keys that no row of a block sees are known
without looking at each.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mha_lab.attention.blockwise.block import Block
from mha_lab.by_hand import on_diagonals, sums_of_diagonals


class Diagonals:
    """Adds number j - i + L - 1 to the score of query i and key j.

    Args:
        distinct: The numbers (1 or H, L + S - 1), -inf where blocked.
        L: Queries.
        hides_later: Whether they block the keys j > i.
    """

    def __init__(
        self, distinct: Float[Tensor, "H M"], L: int, *, hides_later: bool = False
    ) -> None:
        if hides_later:
            distinct = F.pad(distinct[:, :L], (0, distinct.shape[1] - L), value=-torch.inf)
        self.tensors = (distinct,)
        self.hides_later = hides_later
        self._L = L
        self._opened = distinct.detach() > -torch.inf
        self._ends = [_ends(row) for row in self._opened]
        self._made: tuple[Any, Tensor] | None = None
        self._turned: Tensor | None = None

    @property
    def has_blocked_rows(self) -> bool:
        """Whether some query sees no key."""
        S = self._opened.shape[1] - self._L + 1
        count = F.pad(self._opened.cumsum(-1), (1, 0))
        return bool((count[:, S:] == count[:, :-S]).any())

    def keys_seen(self, heads: slice, rows: slice, keys: int) -> slice:
        """The keys, of so many, from the first to the last that any of these rows may see."""
        ends = self._ends if len(self._ends) == 1 else self._ends[heads]
        first = min(low for low, _ in ends) + rows.start - (self._L - 1)
        last = max(high for _, high in ends) + rows.stop - 1 - (self._L - 1)
        return slice(max(0, first), min(keys, last + 1))

    def of(self, products: Tensor, block: Block, *tensors: Tensor) -> Tensor:
        """The bias of a block."""
        (distinct,), at = tensors, self._part(block)
        return on_diagonals(distinct[at.heads, at.low : at.high], products.shape[-2])

    def add(self, products: Tensor, block: Block, *tensors: Tensor) -> None:
        """Add it in place; it is the same for the next sample."""
        which = block.heads, block.rows, block.keys
        if self._made is None or self._made[0] != which:
            self._made = which, self.of(products, block, *tensors)
        products.add_(self._made[1])

    def back(self, grad: Tensor, kept: None, block: Block, *totals: Tensor | None) -> None:
        """Each number's gradient is the sum of its diagonal."""
        (total,) = totals
        if total is None:
            return
        at = self._part(block)
        sums, self._turned = sums_of_diagonals(grad[0], self._turned)
        part = total[at.heads, at.low : at.high]
        part += sums.sum_to_size(part.shape)

    def _part(self, block: Block) -> "_Part":
        heads = slice(0, 1) if len(self._ends) == 1 else block.heads
        low = block.keys.start - (block.rows.stop - 1) + self._L - 1
        high = block.keys.stop - block.rows.start + self._L - 1
        return _Part(heads, low, high)


class _Part(NamedTuple):
    """Which heads and diagonals a block has."""

    heads: slice
    low: int
    high: int


def _ends(opened: Tensor) -> tuple[int, int]:
    """The first and the last diagonal that is open."""
    found = opened.nonzero()
    return (int(found[0]), int(found[-1])) if len(found) else (0, -1)
