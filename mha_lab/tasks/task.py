"""What the harness asks of a task."""

from pathlib import Path
from typing import Protocol, runtime_checkable

import torch

from mha_lab.tasks.batch import Batch
from mha_lab.tasks.splits import Split
from mha_lab.tasks.vocabulary import Vocabulary


@runtime_checkable
class Task(Protocol):
    """Pairs of token sequences, and which of them are for training, validation and test.

    Attributes:
        vocabulary: names the token ids.
        max_source_length: the longest source, ``<eos>`` counted.
        max_target_length: the longest target, ``<eos>`` counted.
        training_size: how many sequences there are to train on; None where they are drawn afresh
            without end.
    """

    vocabulary: Vocabulary
    max_source_length: int
    max_target_length: int
    training_size: int | None

    def fixed_split(self, split: Split, size: int, *, cache_dir: Path | None = None) -> Batch:
        """The sequences of a split: the same ones at every call, whatever the seed.

        Args:
            split: ``"train"``, ``"validation"`` or ``"test"``.
            size: how many at most; fewer where the split has no more.
            cache_dir: where they may be kept for the next call.
        """
        ...

    def draw(self, n: int, generator: torch.Generator) -> Batch:
        """N random sequences to train on, none of which is in validation or test."""
        ...
