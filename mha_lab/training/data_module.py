"""The LightningDataModule: endless training batches, and fixed ones for validation and test."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch

from mha_lab.ranges import Seed, Size, Text
from mha_lab.tasks.batch import Batch, trim
from mha_lab.tasks.cache import default_cache_dir
from mha_lab.tasks.splits import Split, batch_seed
from mha_lab.tasks.task import Task
from mha_lab.training.curriculum import Curriculum, Kind

EVALUATION_BATCH = 500  # sequences in a batch of validation or test


class TaskDataModule(pl.LightningDataModule):
    """Hands the sequences of a task to a Trainer, as ready tensors.

    Training never ends by itself. Without ``train_size`` every batch is drawn afresh; with it, or
    with a task that has only so many sequences, the same ones come again in each pass, in an order
    of its own. Batch j of a run follows from ``seed`` and j alone; with several processes, they
    take turns. A checkpoint holds how many batches were used, so a resumed run goes on exactly.

    Args:
        task: where the sequences come from.
        batch_size: sequences in a training batch, of each process.
        seed: of the training batches; validation and test do not depend on it.
        train_size: size of a finite training set; None draws afresh, or uses all there are.
        validation_size: sequences to validate on, at most.
        test_size: sequences to test on, at most.
        cache_dir: where fixed sets are kept; None is the folder in the environment variable
            MHA_LAB_CACHE, or ``~/.cache/mha_lab``.
        curriculum: ``uniform``, ``fixed`` or ``staged`` lengths of training sequences; see
            ``mha_lab.training.curriculum``.
        curriculum_start: ``staged``: the longest sequences of the first batches.
        curriculum_every: ``staged``: batches until longer ones come.
        curriculum_step: ``staged``: how much longer.

    Raises:
        ValueError: a size is below 1, seed is below 0, train_size is above what the task has, or a
            curriculum is chosen where sequences are not drawn afresh by their lengths, or begins
            above the longest.
    """

    def __init__(
        self,
        task: Task,
        *,
        batch_size: Size,
        seed: Seed,
        train_size: Size | None = None,
        validation_size: Size = 1000,
        test_size: Size = 2000,
        cache_dir: Text | Path | None = None,
        curriculum: Kind = "uniform",
        curriculum_start: Size = 1,
        curriculum_every: Size = 100,
        curriculum_step: Size = 1,
    ) -> None:
        super().__init__()
        self.curriculum = Curriculum(
            kind=curriculum, start=curriculum_start, every=curriculum_every, step=curriculum_step
        )
        sizes = {"batch_size": batch_size, "validation_size": validation_size,
                 "test_size": test_size, "train_size": train_size}  # fmt: skip
        for name, size in sizes.items():
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        if seed < 0:
            raise ValueError(f"seed must be at least 0, got {seed}")
        available = task.training_size
        if train_size is not None and available is not None and train_size > available:
            raise ValueError(
                f"train_size must be at most {available}, the number of training sequences that "
                f"the task has, got {train_size}"
            )
        longest = max(getattr(task, "training_lengths", ()), default=None)
        is_fresh = longest is not None and train_size is None and available is None
        if curriculum != "uniform" and not is_fresh:
            raise ValueError(
                f"curriculum={curriculum} needs training sequences that are drawn afresh: leave "
                "out data.train_size, and choose another task than files"
            )
        if longest is not None and curriculum_start > longest:
            raise ValueError(
                f"curriculum_start must be at most {longest}, the longest training sequence, got "
                f"{curriculum_start}"
            )
        self.task = task
        self.batch_size = batch_size
        self.seed = seed
        self.train_size = available if train_size is None else train_size
        self.validation_size = validation_size
        self.test_size = test_size
        self.cache_dir = default_cache_dir() if cache_dir is None else Path(cache_dir).expanduser()
        self.between_steps: Callable[[], None] = lambda: None
        """Called when a training step, with all that belongs to it, is done and none is begun."""
        self._fixed: dict[Split, Batch] = {}
        self._stream: TrainingStream | None = None

    def train_dataloader(self) -> "TrainingStream":
        """An endless stream of batches."""
        batch = self._fresh_batch if self.train_size is None else self._finite_batch
        rank, world_size = self._place()
        self._stream = TrainingStream(lambda step: batch(step * world_size + rank))
        return self._stream

    def val_dataloader(self) -> "FixedBatches":
        """The validation batches of this process."""
        return self._evaluation_batches("validation", self.validation_size)

    def test_dataloader(self) -> "FixedBatches":
        """The test batches of this process."""
        return self._evaluation_batches("test", self.test_size)

    def on_before_batch_transfer(self, batch: Batch, dataloader_idx: int) -> Batch:
        """Count the training batches as they are used: Lightning fetches one ahead."""
        if self._stream is not None and self.trainer is not None and self.trainer.training:
            self.between_steps()
            self._stream.used += 1
        return batch

    def _fresh_batch(self, index: int) -> Batch:
        generator = torch.Generator().manual_seed(batch_seed(self.seed, index))
        if self.curriculum.kind == "uniform":
            return self.task.draw(self.batch_size, generator)
        by_length: Any = self.task  # one that can be asked for lengths, as was checked
        lengths = by_length.training_lengths
        shortest, longest = self.curriculum.bounds(index, shortest=lengths[0], longest=lengths[-1])
        batch: Batch = by_length.draw(
            self.batch_size, generator, shortest=shortest, longest=longest
        )
        return batch

    def _finite_batch(self, index: int) -> Batch:
        """Batch ``index`` of the passes over the finite set, laid end to end."""
        assert self.train_size is not None
        rows = self._set("train", self.train_size)
        epoch, slot = divmod(index, -(-len(rows.source) // self.batch_size))
        generator = torch.Generator().manual_seed(batch_seed(self.seed, epoch))
        order = torch.randperm(len(rows.source), generator=generator)
        chosen = order[slot * self.batch_size : (slot + 1) * self.batch_size]
        return trim(Batch(rows.source[chosen], rows.target[chosen]))

    def _evaluation_batches(self, split: Split, size: int) -> "FixedBatches":
        """Each process's share of a fixed set, every sequence in exactly one.

        All processes have the same number of batches, so that none waits for another in vain.
        """
        rows = self._set(split, size)
        total, (rank, world_size) = len(rows.source), self._place()
        if total < world_size:
            raise ValueError(
                f"the {split} set has {total} sequences, too few for {world_size} processes; "
                f"raise data.{split}_size or use fewer devices"
            )
        batches = -(-total // (world_size * EVALUATION_BATCH))
        shares = torch.arange(rank, total, world_size).tensor_split(batches)
        return FixedBatches(
            [trim(Batch(rows.source[share], rows.target[share])) for share in shares]
        )

    def _set(self, split: Split, size: int) -> Batch:
        if split not in self._fixed:
            self._fixed[split] = self.task.fixed_split(split, size, cache_dir=self.cache_dir)
        return self._fixed[split]

    def _place(self) -> tuple[int, int]:
        """Which process this is, of how many."""
        if self.trainer is None:
            return 0, 1
        return self.trainer.global_rank, self.trainer.world_size


class TrainingStream:
    """Batches without end; iterating starts after those that were used.

    Lightning saves and restores its state with a checkpoint.

    Args:
        batch_at: makes the batch of a step.
    """

    def __init__(self, batch_at: Callable[[int], Batch]) -> None:
        self.batch_at = batch_at
        self.used = 0

    def __iter__(self) -> Iterator[Batch]:
        return map(self.batch_at, count(self.used))

    def state_dict(self) -> dict[str, Any]:
        """How many batches were used."""
        return {"used": self.used}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on after so many batches."""
        self.used = int(state_dict["used"])


class FixedBatches(Sequence[Batch]):
    """Ready batches, as one loader: Lightning would take a plain list for several loaders."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = tuple(batches)

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: Any) -> Any:
        return self._batches[index]
