"""How a model does beyond its training lengths, while it is trained."""

from collections.abc import Sequence
from typing import Any

import pytorch_lightning as pl
from lightning_fabric.utilities.exceptions import MisconfigurationException

from mha_lab.ranges import Size
from mha_lab.tasks.batch import Batch
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.training.length_scores import MEASURES, score, summarise
from mha_lab.training.module import SequenceModule


class LengthGeneralization(pl.Callback):
    """At validations, logs the accuracies on ranges of lengths in and beyond training.

    With a task of lengths 1 to 10 and the multiples 2 and 3 there are three ranges, 1-10, 11-20 and
    21-30, and metrics ``length/11-20/sequence_accuracy`` and so on for each measure of
    ``length_scores``. The sequences are those of the test split, the same at every time.

    Args:
        samples: sequences of each range, at most.
        multiples: how far the ranges go, in longest training lengths.
        every_n_validations: at every how many validations.

    Raises:
        ValueError: a number below 1, or multiples that do not rise from 2 on.
    """

    def __init__(
        self,
        samples: Size = 200,
        multiples: Sequence[Size] = (2, 3),
        every_n_validations: Size = 1,
    ) -> None:
        for name, value in (("samples", samples), ("every_n_validations", every_n_validations)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not multiples or list(multiples) != sorted({*multiples}) or min(multiples) < 2:
            raise ValueError(f"multiples must rise from 2 on, such as 2,3; got {list(multiples)}")
        self.samples = samples
        self.multiples = tuple(multiples)
        self.every_n_validations = every_n_validations
        self._sets: dict[str, Batch] = {}
        self._validations = 0

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Make the sequences, and try whether the model can read the longest."""
        task = trainer.datamodule.task  # type: ignore[attr-defined]
        if not isinstance(task, GeneratedTask) or not isinstance(pl_module, SequenceModule):
            raise MisconfigurationException(
                "callbacks/length_generalization=on needs a task that makes sequences of any "
                "length; leave it out for this one"
            )
        low, longest = task.space.min_length, task.space.max_length
        ends = [longest, *(longest * multiple for multiple in self.multiples)]
        try:
            for high in ends:
                made = task.at_lengths(min_length=low, max_length=high)
                self._sets[f"{low}-{high}"] = made.fixed_split("test", self.samples)
                low = high + 1
            last = self._sets[[*self._sets][-1]]
            row = int((last.source > 0).sum(1).argmax())
            score(pl_module.model, Batch(*(rows[row : row + 1] for rows in last)))
        except ValueError as error:
            raise MisconfigurationException(
                f"callbacks/length_generalization=on: {' '.join(str(error).split())}; or choose "
                "smaller callbacks.length_generalization.multiples"
            ) from error

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Measure and log; the process that writes does it alone."""
        if trainer.sanity_checking or trainer.state.fn != "fit" or not self._sets:
            return
        self._validations += 1
        if (self._validations - 1) % self.every_n_validations or not trainer.is_global_zero:
            return
        assert isinstance(pl_module, SequenceModule)
        metrics: dict[str, Any] = {}
        for name, batch in self._sets.items():
            row = summarise(score(pl_module.model, batch))
            metrics |= {f"length/{name}/{measure}": row[measure] for measure in MEASURES}
        for logger in trainer.loggers:
            logger.log_metrics(metrics, trainer.global_step)
