"""All sequences of some symbols and some lengths, and how they are drawn, split by split."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks.splits import BUCKETS, Split, is_in, sequence_hash
from mha_lab.tasks.vocabulary import Vocabulary

FIRST = len(Vocabulary.SPECIAL)  # the id of the first symbol
ENUMERABLE = 2**14  # of so many sequences of one length, every one can be looked at
BLOCK = 2**16  # so many candidates are drawn at once, to bound memory
MANY = 2**62  # more sequences than anyone asks for
SURE = 2**10  # of so many, every split has some: none is left out but with probability 2e-29


@dataclass(frozen=True)
class SequenceSpace:
    """The sequences of ``min_length`` to ``max_length`` out of ``vocab_size`` symbols.

    Rows are ids, padded on the right with 0 to ``max_length`` columns.
    """

    min_length: int
    max_length: int
    vocab_size: int

    def __post_init__(self) -> None:
        if self.min_length < 1:
            raise ValueError(f"min_length must be at least 1, got {self.min_length}")
        if self.max_length < self.min_length:
            raise ValueError(
                f"max_length must be at least min_length, got max_length={self.max_length} and "
                f"min_length={self.min_length}"
            )
        if self.vocab_size < 1:
            raise ValueError(f"vocab_size must be at least 1, got {self.vocab_size}")

    def lengths(self, split: Split) -> Int[Tensor, " K"]:
        """The lengths of which a split has at least one sequence.

        Raises:
            ValueError: there is none: the space is too small to be split.
        """
        found = [n for n in self._range() if self._count(n) > SURE or len(self.members(split, n))]
        if not found:
            total = sum(map(self._count, self._range()))
            raise ValueError(
                f"the {split} split is empty: vocab_size={self.vocab_size}, "
                f"min_length={self.min_length} and max_length={self.max_length} make {total} "
                "sequences, too few to hold some out of training; raise vocab_size or max_length"
            )
        return torch.tensor(found)

    def draw(
        self, split: Split, lengths: Int[Tensor, " N"], generator: torch.Generator
    ) -> Int[Tensor, "N L"]:
        """Draw a sequence of a split for each length, uniformly among those of that length.

        Args:
            split: where they must belong.
            lengths: (N,) lengths, each of which the split has.
            generator: source of the random numbers.
        """
        rows = self._anywhere(lengths, generator)
        while len(wrong := (~is_in(split, rows)).nonzero()[:, 0]):
            # The length stays, so that what is held out does not change how lengths are spread.
            rows[wrong] = self._anywhere(lengths[wrong], generator)
        return rows

    def sample(self, split: Split, size: int, generator: torch.Generator) -> Int[Tensor, "N L"]:
        """Draw distinct sequences of a split, in random order.

        As many of each length as of the others; where one has too few, the others have more. Of a
        length with very many sequences, up to half of the split's are used.

        Args:
            split: where they must belong.
            size: how many; fewer come back only where the whole split has fewer.
            generator: source of the random numbers.
        """
        listed = {n: self.members(split, n) for n in self._range() if self._count(n) <= ENUMERABLE}
        room = {
            n: len(listed[n]) if n in listed else self._count(n) // (2 * BUCKETS)
            for n in self._range()
        }
        chosen = []
        for length, share in even_shares(size, room).items():
            some = (
                listed[length] if length in listed else self._find(split, length, share, generator)
            )
            chosen.append(some[torch.randperm(len(some), generator=generator)[:share]])
        rows = torch.cat(chosen)
        return rows[torch.randperm(len(rows), generator=generator)]

    def members(self, split: Split, length: int) -> Int[Tensor, "K L"]:
        """Every sequence of one length that belongs to a split."""
        powers = self.vocab_size ** torch.arange(length)
        digits = torch.arange(self._count(length))[:, None] // powers % self.vocab_size
        rows = self._padded(digits + FIRST)
        return rows[is_in(split, rows)]

    def _range(self) -> range:
        return range(self.min_length, self.max_length + 1)

    def _count(self, length: int) -> int:
        if length * math.log2(self.vocab_size) > 62:
            return MANY  # the number itself would have as many digits as the sequence
        return int(self.vocab_size**length)

    def _find(
        self, split: Split, length: int, least: int, generator: torch.Generator
    ) -> Int[Tensor, "K L"]:
        """Draw until there are enough distinct sequences of a split, by hash; some more may be."""
        found = torch.empty(0, self.max_length, dtype=torch.long)
        while len(found) < least:
            tries = min(2 * BUCKETS * (least - len(found)), BLOCK)
            rows = self._anywhere(torch.full((tries,), length), generator)
            found = distinct_rows(torch.cat([found, rows[is_in(split, rows)]]))
        return found

    def _anywhere(
        self, lengths: Int[Tensor, " N"], generator: torch.Generator
    ) -> Int[Tensor, "N L"]:
        shape = (len(lengths), self.max_length)
        rows = torch.randint(FIRST, FIRST + self.vocab_size, shape, generator=generator)
        return rows.masked_fill_(torch.arange(self.max_length) >= lengths[:, None], Vocabulary.PAD)

    def _padded(self, rows: Int[Tensor, "N K"]) -> Int[Tensor, "N L"]:
        return torch.nn.functional.pad(rows, (0, self.max_length - rows.shape[1]))


def distinct_rows(rows: Int[Tensor, "N L"]) -> Int[Tensor, "K L"]:
    """Drop repeats; where two sequences should share all 64 bits of their hash, one of them too."""
    _, first = np.unique(sequence_hash(rows), return_index=True)
    return rows[torch.from_numpy(first)]


def even_shares(size: int, room: dict[int, int]) -> dict[int, int]:
    """Share ``size`` out as evenly as the room of each allows.

    Example:
        ``even_shares(10, {1: 1, 2: 3, 3: 99})`` is ``{1: 1, 2: 3, 3: 6}``.
    """
    shares: dict[int, int] = {}
    for done, (key, most) in enumerate(sorted(room.items(), key=lambda item: item[1])):
        shares[key] = min(most, (size - sum(shares.values())) // (len(room) - done))
    return dict(sorted(shares.items()))
