"""What each query adds to its head's scores, gathered over blocks of rows.

So a whole map need never exist, and which queries count may be known later.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

_NEGLIGIBLE = 0.01


class ScoreRows:
    """The scores of single queries, of those that need no tokens; in memory linear in their number.

    ``mha_lab.maps.scores`` says what each is.

    Args:
        length: How many queries there are.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        # One tensor (N, H, L) each: many small ones that stay would lie between the blocks, and
        # keep the memory of each block from being used again.
        self._values: dict[str, Tensor] = {}
        self._counts: dict[str, Tensor] = {}

    def add(self, weights: Float[Tensor, "N H R S"], start: int = 0) -> None:
        """Add a block of rows.

        Args:
            weights: The weights of queries start, start + 1, ...
            start: Where the block begins.
        """
        largest = weights.amax(-1)
        counts = (largest > 0) | largest.isnan()  # a map of NaN has scores of NaN
        negligible = (weights < _NEGLIGIBLE * largest[..., None]).count_nonzero(-1)
        is_share = ~(weights.amin(-1) < 0)  # of weights below 0 there is no entropy
        entropy = torch.special.entr(weights.clamp(min=0)).sum(-1)
        self._add("entropy", start, entropy, counts & is_share)
        self._add("confidence", start, largest, counts)
        self._add("sparsity", start, negligible / weights.shape[-1], counts)
        for name, offset in (("previous_token", start - 1), ("diagonal", start)):
            # Query r of the block stands at key r + offset.
            found = weights.diagonal(offset, dim1=2, dim2=3)
            first = max(0, -offset)
            beside = (first, largest.shape[-1] - first - found.shape[-1])  # queries without it
            with_key = counts[..., first : first + found.shape[-1]]
            self._add(name, start, pad(found, beside), pad(with_key, beside))

    def means(self, is_query: Bool[Tensor, "N L"] | None = None) -> dict[str, Float[Tensor, " H"]]:
        """Each score's mean over queries and samples, of those that have any query.

        Args:
            is_query: Which queries count; None means all.
        """
        found = {}
        for name, values in self._values.items():
            counts = self._counts[name]
            if is_query is not None:
                counts = counts & is_query.to(counts.device)[:, None]
            if (mean := _mean(values, counts)) is not None:
                found[name] = mean
        return found

    def cpu(self) -> ScoreRows:
        """The same on the CPU."""
        moved = ScoreRows(self._length)
        moved._values = {name: values.cpu() for name, values in self._values.items()}
        moved._counts = {name: counts.cpu() for name, counts in self._counts.items()}
        return moved

    def _add(self, name: str, start: int, values: Tensor, counts: Tensor) -> None:
        for kept, block in ((self._values, values), (self._counts, counts)):
            rows = block.shape[-1]
            if rows == self._length:
                kept[name] = block
                continue
            if name not in kept:
                kept[name] = block.new_zeros(*block.shape[:2], self._length)
            kept[name][..., start : start + rows] = block


def pair_score(
    weights: Float[Tensor, "N H L S"], pairs: Bool[Tensor, "N L S"]
) -> Float[Tensor, " H"] | None:
    """What queries give to keys that they are paired with, where there are any; else None."""
    pairs = pairs[:, None]
    return _mean((weights * pairs).sum(-1), (weights.amax(-1) > 0) & pairs.any(-1))


def _mean(values: Tensor, counts: Tensor) -> Tensor | None:
    """Each head's mean of those that count: NaN where it has none, None where no head has any."""
    total, count = torch.where(counts, values, 0.0).sum((0, 2)), counts.sum((0, 2))
    return total / count if max(count.tolist(), default=0) > 0 else None
