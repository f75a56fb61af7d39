"""Which part of a call is computed at a time."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from mha_lab.attention.functional import Mask
from mha_lab.attention.multihead.blocks import BLOCK_ELEMENTS
from mha_lab.by_hand import is_plain

_FEWEST_ROWS = 32
"""Below that, adding up the gradients of keys and values takes longer than making them."""

_MOST_ROWS_OF_PART = 64
"""Where rows see a part of the keys, fewer rows see less; as many heads more fill a block."""

_WORTH_CUTTING = 0.7
"""Blocks of a part of all keys take so much of the time of the kernel's pass over all."""


KeysSeen = Callable[[slice, slice, int], slice]
"""From heads, rows and the number of keys to the keys from the first to the last that are seen."""


class Block(NamedTuple):
    """One sample, some heads, some rows, and the keys that any of these may see."""

    n: slice
    heads: slice
    rows: slice
    keys: slice

    def served(self, maps: int) -> slice:
        """The heads whose outputs its heads are the maps of, so many each."""
        return slice(self.heads.start // maps, self.heads.stop // maps)

    def of(self, mask: Tensor | None) -> Tensor | None:
        """What a tensor (1 or N, 1 or H, L, 1 or S) says of it, (1, 1 or h, rows, 1 or keys)."""
        if mask is None:
            return None
        mask = mask if mask.shape[0] == 1 else mask[self.n]
        mask = mask if mask.shape[1] == 1 else mask[:, self.heads]
        mask = mask if mask.shape[2] == 1 else mask[:, :, self.rows]
        return mask if mask.shape[3] == 1 else mask[..., self.keys]


def cut(
    q: Tensor,
    k: Tensor,
    opened: Tensor | None,
    *,
    is_mixed: bool,
    maps: int = 1,
    keys_seen: KeysSeen | None = None,
) -> Iterator[Block]:
    """Cut samples, heads (unless they are mixed) and rows.

    Args:
        q: (N, H, L, D).
        k: (N, H, S, D).
        opened: Where a query may attend, (1 or N, 1 or H, L, S); None means everywhere.
        is_mixed: Whether heads need one another.
        maps: How many that follow one another are added up, as if they were one head.
        keys_seen: Instead of opened, tells the keys that some rows of some heads see, of so many.
    """
    N, H, L, S = len(q), q.shape[1] // maps, q.shape[2], k.shape[2]
    heads = H if is_mixed else min(H, max(1, BLOCK_ELEMENTS // (L * S)))
    rows = min(L, max(_FEWEST_ROWS, BLOCK_ELEMENTS // (heads * S)))
    if not (is_mixed or (opened is None and keys_seen is None)):
        rows = min(rows, _MOST_ROWS_OF_PART)
        heads = min(H, max(1, BLOCK_ELEMENTS // (rows * S)))
    seen = None if opened is None else opened.any(0)
    for r in range(0, L, rows):
        row = slice(r, min(L, r + rows))
        for h in range(0, H, heads):
            head = slice(maps * h, maps * min(H, h + heads))
            keys = slice(0, S)
            if keys_seen is not None:
                keys = keys_seen(head, row, S)
            elif seen is not None:
                keys = _keys_of((seen if len(seen) == 1 else seen[head])[:, row].any(0))
            for n in range(N):
                yield Block(slice(n, n + 1), head, row, keys)


def is_mostly_blocked(mask: Mask, L: int, S: int) -> bool:
    """Whether blocks of rows leave out so many keys that they are faster than the kernel.

    Args:
        mask: Inside mask, broadcastable to (N, H, L, S).
        L: Queries.
        S: Keys.
    """
    if mask.shape[-2] == 1 or not is_plain(mask) or not mask.is_cpu:
        return False
    allowed = mask if mask.dtype == torch.bool else mask != -torch.inf
    seen = allowed.expand(*allowed.shape[:-2], L, S).reshape(-1, L, S).any(0)
    rows = min(max(_FEWEST_ROWS, BLOCK_ELEMENTS // S), _MOST_ROWS_OF_PART)
    keys = [_keys_of(part) for part in torch.split(seen, rows)]
    seen_keys: int = sum(span.stop - span.start for span in keys)
    return seen_keys < _WORTH_CUTTING * S * len(keys)


def _keys_of(seen: Tensor) -> slice:
    """The keys from the first to the last that any of these rows sees."""
    found = seen.any(0).nonzero()
    return slice(int(found[0]), int(found[-1]) + 1) if len(found) else slice(0, len(seen[0]))
