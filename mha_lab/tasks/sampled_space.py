"""Sequences that a task draws in a way of its own, and how they are split.

Unlike ``SequenceSpace``, which can count and list its sequences, this one knows them only by
drawing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks.sequence_space import BLOCK, distinct_rows
from mha_lab.tasks.splits import BUCKETS, SPLITS, Split, is_in

# From lengths (N,), a width and a generator to N sources as ids, padded with 0 to that width.
Sampler = Callable[[Int[Tensor, " N"], int, torch.Generator], Int[Tensor, "N W"]]

_TRIES = (2**6, 2**10)  # of so many draws of one length, every split has some: all but surely
_PATIENCE = 8  # after so many blocks of draws without a new sequence, there is none


@dataclass(frozen=True)
class SampledSpace:
    """The sequences that a sampler draws.

    Args:
        min_length: the shortest that is asked for.
        max_length: the longest.
        sampler: draws sources of given lengths.
        length_of: which length a request for each gives; None where it is the one asked for.

    Raises:
        ValueError: a length is below 1, or max_length below min_length.
    """

    min_length: int
    max_length: int
    sampler: Sampler
    length_of: Callable[[int], int] | None = None

    def __post_init__(self) -> None:
        if self.min_length < 1:
            raise ValueError(f"min_length must be at least 1, got {self.min_length}")
        if self.max_length < self.min_length:
            raise ValueError(
                f"max_length must be at least min_length, got max_length={self.max_length} and "
                f"min_length={self.min_length}"
            )

    def lengths(self, split: Split) -> Int[Tensor, " K"]:
        """The lengths of which a split has at least one sequence.

        Raises:
            ValueError: there is none: the space is too small to be split.
        """
        found = self._lengths[split]
        if not found:
            raise ValueError(
                f"the {split} split is empty: min_length={self.min_length} and "
                f"max_length={self.max_length} make too few sequences to hold some out of "
                "training; raise max_length"
            )
        return torch.tensor(found)

    def draw(
        self, split: Split, lengths: Int[Tensor, " N"], generator: torch.Generator
    ) -> Int[Tensor, "N L"]:
        """Draw a sequence of a split for each length.

        Args:
            split: where they must belong.
            lengths: (N,) lengths, each of which the split has.
            generator: source of the random numbers.
        """
        rows = self.sampler(lengths, self.max_length, generator)
        while len(wrong := (~is_in(split, rows)).nonzero()[:, 0]):
            rows[wrong] = self.sampler(lengths[wrong], self.max_length, generator)
        return rows

    def sample(self, split: Split, size: int, generator: torch.Generator) -> Int[Tensor, "N L"]:
        """Draw distinct sequences of a split, in random order.

        As many of each length as of the others; what a length lacks, the longer ones have more.

        Args:
            split: where they must belong.
            size: how many; fewer come back only where the longest length has no more.
            generator: source of the random numbers.
        """
        found = self._first_look(split, size, generator)
        chosen: list[Tensor] = []
        for done, (length, rows) in enumerate(found.items()):
            share = (size - sum(map(len, chosen))) // (len(found) - done)
            some = self._more(rows, split, length, share, generator)
            chosen.append(some[torch.randperm(len(some), generator=generator)[:share]])
        rows = torch.cat(chosen)
        return rows[torch.randperm(len(rows), generator=generator)]

    @cached_property
    def _lengths(self) -> dict[Split, list[int]]:
        asked = range(self.min_length, self.max_length + 1)
        lengths = sorted({self.length_of(n) if self.length_of else n for n in asked})
        found: dict[Split, list[int]] = {split: [] for split in SPLITS}
        generator = torch.Generator().manual_seed(0)
        for tries in _TRIES:
            missing = [n for n in lengths if any(n not in have for have in found.values())]
            for part in torch.split(
                torch.tensor(missing, dtype=torch.long), max(1, BLOCK // tries)
            ):
                each = part.repeat_interleave(tries)
                rows = self.sampler(each, self.max_length, generator)
                for split in SPLITS:
                    has_some = is_in(split, rows).view(-1, tries).any(1)
                    found[split] += part[has_some].tolist()
        return {split: sorted(set(some)) for split, some in found.items()}

    def _first_look(
        self, split: Split, size: int, generator: torch.Generator
    ) -> dict[int, Int[Tensor, "K L"]]:
        """Draw all lengths at once; some distinct sequences of a split for each."""
        lengths = self._lengths[split]
        tries = min(2 * BUCKETS * (size // len(lengths) + 1), BLOCK // len(lengths) + 1)
        each = torch.tensor(lengths).repeat_interleave(tries)
        rows = self.sampler(each, self.max_length, generator)
        is_right = is_in(split, rows)
        return {
            length: distinct_rows(part[right])
            for length, part, right in zip(
                lengths, torch.split(rows, tries), torch.split(is_right, tries), strict=True
            )
        }

    def _more(
        self,
        found: Int[Tensor, "K L"],
        split: Split,
        length: int,
        least: int,
        generator: torch.Generator,
    ) -> Int[Tensor, "M L"]:
        """Draw until there are enough distinct sequences of a split, or no new ones come."""
        in_vain = 0
        while len(found) < least and in_vain < _PATIENCE:
            tries = min(2 * BUCKETS * (least - len(found)) + BUCKETS, BLOCK)
            rows = self.sampler(torch.full((tries,), length), self.max_length, generator)
            known = len(found)
            found = distinct_rows(torch.cat([found, rows[is_in(split, rows)]]))
            in_vain = in_vain + 1 if len(found) == known else 0
        return found
