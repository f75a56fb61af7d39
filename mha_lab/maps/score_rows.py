"""What each query adds to its head's scores, gathered over blocks of rows.

So a whole map need never exist, and which queries count may be known later.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

_NEGLIGIBLE = 0.01


class ScoreRows:
    """The scores of single queries, of those that need no tokens; in memory linear in their number.

    ``mha_lab.maps.scores`` says what each is.
    """

    def __init__(self) -> None:
        self._values: defaultdict[str, list[Tensor]] = defaultdict(list)  # each (N, H, R)
        self._counts: defaultdict[str, list[Tensor]] = defaultdict(list)

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
        self._add("entropy", torch.special.entr(weights.clamp(min=0)).sum(-1), counts & is_share)
        self._add("confidence", largest, counts)
        self._add("sparsity", negligible / weights.shape[-1], counts)
        for name, offset in (("previous_token", start - 1), ("diagonal", start)):
            # Query r of the block stands at key r + offset.
            found = weights.diagonal(offset, dim1=2, dim2=3)
            first = max(0, -offset)
            beside = (first, largest.shape[-1] - first - found.shape[-1])  # queries without it
            with_key = counts[..., first : first + found.shape[-1]]
            self._add(name, pad(found, beside), pad(with_key, beside))

    def means(self, is_query: Bool[Tensor, "N L"] | None = None) -> dict[str, Float[Tensor, " H"]]:
        """Each score's mean over queries and samples, of those that have any query.

        Args:
            is_query: Which queries count; None means all.
        """
        found = {}
        for name, blocks in self._values.items():
            values, counts = _joined(blocks), _joined(self._counts[name])
            if is_query is not None:
                counts = counts & is_query.to(counts.device)[:, None]
            if (mean := _mean(values, counts)) is not None:
                found[name] = mean
        return found

    def cpu(self) -> ScoreRows:
        """The same on the CPU."""
        moved = ScoreRows()
        for name, blocks in self._values.items():
            for values, counts in zip(blocks, self._counts[name], strict=True):
                moved._add(name, values.cpu(), counts.cpu())
        return moved

    def _add(self, name: str, values: Tensor, counts: Tensor) -> None:
        self._values[name].append(values)
        self._counts[name].append(counts)


def pair_score(
    weights: Float[Tensor, "N H L S"], pairs: Bool[Tensor, "N L S"]
) -> Float[Tensor, " H"] | None:
    """What queries give to keys that they are paired with, where there are any; else None."""
    pairs = pairs[:, None]
    return _mean((weights * pairs).sum(-1), (weights.amax(-1) > 0) & pairs.any(-1))


def _joined(blocks: list[Tensor]) -> Tensor:
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, -1)


def _mean(values: Tensor, counts: Tensor) -> Tensor | None:
    """Each head's mean of those that count: NaN where it has none, None where no head has any."""
    total, count = torch.where(counts, values, 0.0).sum((0, 2)), counts.sum((0, 2))
    return total / count if max(count.tolist(), default=0) > 0 else None
