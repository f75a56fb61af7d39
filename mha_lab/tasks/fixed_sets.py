"""Fixed sets of generated sequences: distinct ones of a split, made once and kept in the cache."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks import cache
from mha_lab.tasks.batch import Batch, trim
from mha_lab.tasks.sampled_space import SampledSpace
from mha_lab.tasks.sequence_space import SequenceSpace
from mha_lab.tasks.splits import SPLITS, Split, is_in
from mha_lab.tasks.vocabulary import Vocabulary

GENERATOR = 1  # raise it when the same arguments come to mean other sequences


@dataclass(frozen=True)
class FixedSets:
    """Sets that are the same at every call, whatever the seed.

    Args:
        space: the sequences there are.
        batch_of: from rows of ids, padded with 0, to a batch with their targets.
        tokens: the size of the vocabulary.
        longest: the longest source, ``<eos>`` counted.
        key: what tells these sets from those of other tasks.
    """

    space: SequenceSpace | SampledSpace
    batch_of: Callable[[Int[Tensor, "N L"]], Batch]
    tokens: int
    longest: int
    key: Mapping[str, Any]

    def get(self, split: Split, size: int, cache_dir: Path | None) -> Batch:
        """Distinct sequences of a split, from the cache where they are there.

        Args:
            split: ``"train"``, ``"validation"`` or ``"test"``.
            size: how many; where the whole split has fewer, they all come, with a warning.
            cache_dir: where they are kept as a Hugging Face dataset; None keeps them nowhere.
        """
        if cache_dir is None:
            return self.make(split, size)
        key = {**self.key, "split": split, "size": size, "generator": GENERATOR}
        return cache.load_or_build(
            cache_dir, key, lambda: self.make(split, size), lambda kept: self._agrees(split, kept)
        )

    def make(self, split: Split, size: int) -> Batch:
        """The same, made anew."""
        generator = torch.Generator().manual_seed(SPLITS.index(split))
        rows = self.space.sample(split, size, generator)
        if len(rows) < size:
            warnings.warn(
                f"{size} sequences were asked for, but the {split} split of the task has only "
                f"{len(rows)}, which are all used; raise task.vocab_size or task.max_length for "
                "more",
                stacklevel=2,
            )
        return self.batch_of(rows)

    def _agrees(self, split: Split, kept: Batch) -> bool:
        """Tell whether cached sequences are what this code makes of their sources."""
        rows = kept.source.masked_fill(kept.source == Vocabulary.EOS, Vocabulary.PAD)
        fits = rows.shape[1] <= self.longest and self.tokens > int(rows.max())
        if not (fits and bool(is_in(split, rows).all())):
            return False
        pairs = zip(trim(self.batch_of(rows[:, :-1])), trim(kept), strict=True)
        return all(torch.equal(one, other) for one, other in pairs)
