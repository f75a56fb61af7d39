"""Log the attention maps of a model while Lightning trains it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mha_lab.callbacks.any_lightning import AnyLightningCallback
from mha_lab.callbacks.attention_destinations import Snapshot, destinations, on_cpu
from mha_lab.callbacks.batch_labels import BatchLabels
from mha_lab.callbacks.batch_recording import BatchRecording, is_empty
from mha_lab.callbacks.logging_schedule import LoggingSchedule
from mha_lab.indices import check_count, check_indices
from mha_lab.ranges import Count, Size
from mha_lab.recording.globs import check_globs, refuse_unmatched
from mha_lab.recording.module_paths import module_names

if TYPE_CHECKING:
    from pytorch_lightning import LightningModule, Trainer


class AttentionMapLogger(AnyLightningCallback):
    """Log what every head of every layer looks at, as training goes on.

    The callback watches the first batch of the validation (or training) step that runs anyway, so
    it works with any LightningModule and runs no step of its own; an empty batch is not the first.
    A TensorBoard logger is given maps and scores of every head for the Attention tab, and pictures;
    Weights & Biases and MLflow loggers pictures and scores; where no logger shows pictures, files
    are written to ``attention/`` in the run's folder.

    Works with ``pytorch_lightning`` and ``lightning.pytorch``; see docs/recording.md.

    Example:
        >>> Trainer(callbacks=[AttentionMapLogger()])

    Args:
        every_n_epochs: Log in the first epoch, then when n epochs went by since the last one that
            was logged: in each of its validations, or at its first training batch. The default is
            1 unless every_n_steps is given.
        every_n_steps: Instead, log when n optimizer steps were done since the last time.
        modules: Globs of module paths; None means all. See :func:`record_attention`.
        samples: How many samples of the batch, from the first, or which ones. None means all.
        tokens: What to write on the axes: a function of the batch, or a Hugging Face tokenizer.
            None means the module's own ``attention_tokens(batch)`` where it has one. See
            :mod:`mha_lab.recording.labels` for what they return.
        stage: "validation" or "train": which step is watched.
        max_size: Longer maps are pooled to this length; None means no limit.
        scores: Whether to log the scores of every head.
        scalars: Whether a TensorBoard logger is given each score of each head as a scalar too, some
            hundred of a small model beside its losses. The Attention tab has them anyway.
        images: Whether to log pictures, of the maps and of their scores.
        softmax: Whether to record attention that is written by hand too.
        values: Whether to log value-weighted maps too, beside the others as
            ``attention_by_value/...``: each weight times the norm of the value it is applied to.

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If an argument's value cannot be.
    """

    def __init__(
        self,
        *,
        every_n_epochs: Size | None = None,
        every_n_steps: Size | None = None,
        modules: str | Sequence[str] | None = None,
        samples: Size | Sequence[Count] | None = 1,
        tokens: Callable[[Any], Any] | Any | None = None,
        stage: Literal["validation", "train"] = "validation",
        max_size: Size | None = 64,
        scores: bool = True,
        scalars: bool = False,
        images: bool = True,
        softmax: bool = False,
        values: bool = False,
    ) -> None:
        super().__init__()
        for name, value in (
            ("every_n_epochs", every_n_epochs),
            ("every_n_steps", every_n_steps),
            ("max_size", max_size),
        ):
            if value is not None:
                check_count(name, value)
        if every_n_epochs is not None and every_n_steps is not None:
            raise ValueError("every_n_epochs and every_n_steps exclude each other; give one")
        check_indices("samples", samples)
        if stage not in ("validation", "train"):
            raise ValueError(f"stage={stage!r} must be 'validation' or 'train'")
        for name, flag in (
            ("scores", scores),
            ("scalars", scalars),
            ("images", images),
            ("softmax", softmax),
            ("values", values),
        ):
            if not isinstance(flag, bool):
                raise TypeError(f"{name}={flag!r} must be a bool, not {type(flag).__name__}")
        if scalars and not scores:
            raise ValueError("scalars=True needs scores=True: they are the scores")
        self.every_n_epochs = every_n_epochs
        self.every_n_steps = every_n_steps
        self.modules = check_globs("modules", modules) or None
        self.samples = samples
        self.tokens = tokens
        self.stage = stage
        self.max_size = max_size
        self.scores = scores
        self.scalars = scalars
        self.images = images
        self.softmax = softmax
        self.values = values
        self._recording = BatchRecording()
        self._prefix = ""
        self._schedule = LoggingSchedule(every_n_epochs, every_n_steps)
        self._waits = False  # for a batch that is not empty
        self._run_folder: Path | None = None
        self._labels = BatchLabels(tokens)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Begin afresh; find the run's folder, which all ranks do together."""
        self._schedule.last = {}
        run_folder = Path(trainer.log_dir or trainer.default_root_dir)
        self._run_folder = None if getattr(trainer, "fast_dev_run", False) else run_folder

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse modules that the model does not have, before it is trained."""
        refuse_unmatched("modules", self.modules or (), module_names(pl_module).values())

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Say so when there will be nothing to watch."""
        watches_nothing = self.stage == "validation" and not trainer.enable_validation
        if watches_nothing and trainer.limit_val_batches and trainer.is_global_zero:
            warnings.warn(
                "AttentionMapLogger(stage='validation') has no validation to watch: give the "
                "trainer a validation_step and data for it, or choose stage='train'",
                stacklevel=2,
            )

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Begin to record when a training batch is due."""
        if self.stage == "train" and (
            batch_idx == 0 or self._waits or self.every_n_steps is not None
        ):
            self._start(trainer, pl_module, batch, "attention_train")

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Log what was recorded of a training batch."""
        if self.stage == "train":
            self._finish(trainer, pl_module, batch)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget a batch that began but did not end: the module skipped its epoch."""
        self._recording.discard()

    def on_validation_batch_start(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int | None = None,  # given when there are several, one after another
    ) -> None:
        """Begin to record at the first batch of each loader."""
        if self.stage == "validation" and (batch_idx == 0 or self._waits):
            of_loader = "" if dataloader_idx is None else f"_dataloader_{dataloader_idx}"
            self._start(trainer, pl_module, batch, f"attention{of_loader}")

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int | None = None,  # given when there are several, one after another
    ) -> None:
        """Log what was recorded of a validation batch."""
        if self.stage == "validation":
            self._finish(trainer, pl_module, batch)

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Leave nothing behind when a step raises."""
        self._recording.discard()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Stop to record, however the trainer ended."""
        self._recording.discard()

    @property
    def state_key(self) -> str:
        """Several of these callbacks keep their states apart by what they watch and when."""
        names = ("stage", "every_n_epochs", "every_n_steps", "modules", "samples")
        return f"AttentionMapLogger{ {name: getattr(self, name) for name in names} }"

    def state_dict(self) -> dict[str, Any]:
        """When maps were logged last, so that a resumed run keeps the schedule."""
        return {"last": dict(self._schedule.last)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the schedule."""
        self._schedule.last = dict(state_dict["last"])

    def _start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, prefix: str) -> None:
        self._waits = False
        if not self._schedule.is_due(trainer, prefix):
            return
        if is_empty(batch):
            self._waits = True
            return
        self._prefix = prefix
        self._schedule.note(trainer, prefix)
        self._recording.start(
            pl_module,
            modules=self.modules,
            samples=self.samples,
            max_size=self.max_size,
            softmax=self.softmax,
            values=self.values,
        )

    def _finish(self, trainer: Trainer, pl_module: LightningModule, batch: Any) -> None:
        maps = self._recording.stop()
        if not maps:
            return
        snapshot = Snapshot(
            maps=self._labels.write([on_cpu(one) for one in maps], pl_module, batch),
            step=self._schedule.step_of(self._prefix),
            prefix=self._prefix,
            with_scores=self.scores,
            with_scalars=self.scalars,
            with_images=self.images,
        )
        by_value = snapshot.by_value()
        for write in destinations(trainer.loggers, self._run_folder):
            write(snapshot)
            if by_value.maps:
                write(by_value)
