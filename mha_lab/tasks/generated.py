"""What tasks with generated sequences share: only the rule that gives the target is their own."""

import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks import cache
from mha_lab.tasks.batch import Batch, end_rows
from mha_lab.tasks.sequence_space import SequenceSpace
from mha_lab.tasks.splits import SPLITS, Split, is_in
from mha_lab.tasks.vocabulary import Vocabulary

# From sources, (N, L) ids padded with 0, and their lengths (N,) to targets, (N, M) padded alike.
Rule = Callable[[Int[Tensor, "N L"], Int[Tensor, " N"]], Int[Tensor, "N M"]]

GENERATOR = 1  # raise it when the same arguments come to mean other sequences


class GeneratedTask:
    """Random sequences with a rule for their targets.

    Lengths are uniform from ``min_length`` to ``max_length``, symbols uniform and independent; the
    symbols are named "0", "1", and so on. Whether a sequence is for training, validation or test is
    decided by its hash (``mha_lab.tasks.splits``), so nothing that is tested was ever trained on.

    Fixed sets hold distinct sequences. A short length may not have as many as the others, or none:
    then the longer ones have more.

    Args:
        name: names the task in the cache.
        rule: gives the targets of sources.
        min_length: the shortest source, ``<eos>`` not counted.
        max_length: the longest.
        vocab_size: how many symbols; special tokens are not counted.
        longest_target: the longest target that the rule can give, ``<eos>`` not counted; None
            where it is as long as the longest source.

    Raises:
        ValueError: a length or size is below 1, max_length is below min_length, or the space is so
            small that training, validation or test would have no sequence.
    """

    training_size = None

    def __init__(
        self,
        name: str,
        rule: Rule,
        *,
        min_length: int,
        max_length: int,
        vocab_size: int,
        longest_target: int | None = None,
    ) -> None:
        self.name = name
        self.rule = rule
        self.space = SequenceSpace(min_length, max_length, vocab_size)
        self.vocabulary = Vocabulary([str(symbol) for symbol in range(vocab_size)])
        self.max_source_length = max_length + 1
        self.max_target_length = (max_length if longest_target is None else longest_target) + 1
        lengths = {split: self.space.lengths(split) for split in SPLITS}  # raises if one is empty
        self._training_lengths = lengths["train"]

    def draw(self, n: int, generator: torch.Generator) -> Batch:
        """Draw sequences to train on.

        Args:
            n: how many.
            generator: source of the random numbers.

        Returns:
            Batch of (n, max_source_length) and (n, max_target_length): always as wide as the
            longest can be, so that a compiled model meets one shape.
        """
        chosen = torch.randint(len(self._training_lengths), (n,), generator=generator)
        return self._batch(self.space.draw("train", self._training_lengths[chosen], generator))

    def fixed_split(self, split: Split, size: int, *, cache_dir: Path | None = None) -> Batch:
        """Distinct sequences of a split, the same ones at every call, whatever the seed.

        Args:
            split: ``"train"``, ``"validation"`` or ``"test"``.
            size: how many; where the whole split has fewer, they all come, with a warning.
            cache_dir: where they are kept as a Hugging Face dataset; None keeps them nowhere.
        """
        if cache_dir is None:
            return self._sample(split, size)
        key = {"task": self.name, **vars(self.space), "split": split, "size": size,
               "generator": GENERATOR}  # fmt: skip
        return cache.load_or_build(
            cache_dir, key, lambda: self._sample(split, size), lambda b: self._agrees(split, b)
        )

    def _sample(self, split: Split, size: int) -> Batch:
        generator = torch.Generator().manual_seed(SPLITS.index(split))
        rows = self.space.sample(split, size, generator)
        if len(rows) < size:
            warnings.warn(
                f"{size} sequences were asked for, but the {split} split of the task has only "
                f"{len(rows)}, which are all used; raise task.vocab_size or task.max_length for "
                "more",
                stacklevel=2,
            )
        return self._batch(rows)

    def _agrees(self, split: Split, kept: Batch) -> bool:
        """Tell whether cached sequences are what this code makes of their sources."""
        rows = kept.source.masked_fill(kept.source == Vocabulary.EOS, Vocabulary.PAD)
        fits = rows.shape[1] <= self.max_source_length and len(self.vocabulary) > int(rows.max())
        return fits and bool(is_in(split, rows).all()) and _same(self._batch(rows[:, :-1]), kept)

    def _batch(self, rows: Int[Tensor, "N L"]) -> Batch:
        target = self.rule(rows, (rows != Vocabulary.PAD).sum(1))
        return Batch(end_rows(rows), end_rows(target))


def _same(one: Batch, other: Batch) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
