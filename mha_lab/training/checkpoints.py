"""``last.ckpt`` and ``best.ckpt``: whenever a run ends, it can go on as if it had not.

A checkpoint is made at every validation, at the end, and where a signal stops the run. With it go
the metrics and events of all steps up to then, and none of later ones.

Lightning's own ModelCheckpoint writes ``last.ckpt`` only where the loss improves, keeps absolute
paths, and knows no signal.
"""

import copy
import math
from pathlib import Path
from typing import Any, Literal

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint

from mha_lab.errors import UserError, nearest
from mha_lab.training import growing_files
from mha_lab.training.checkpoint_files import checkpoint_path, copy_checkpoint
from mha_lab.training.stopping import Stopped, Stopping


class Checkpoints(Checkpoint):
    """Keeps the weights with the best validation metric, and the state of the run.

    The files lie in ``checkpoints/`` of the trainer's ``default_root_dir``.

    Args:
        monitor: the metric that tells which weights are best.
        mode: whether lower or higher is better, ``min`` or ``max``.

    Raises:
        ValueError: mode is another word.
    """

    def __init__(self, monitor: str = "val/loss", mode: Literal["min", "max"] = "min") -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"checkpoint.mode must be min or max, got {mode!r}")
        self.monitor = monitor
        self.mode = mode
        self.best: float | None = None
        self.stopping = Stopping()
        """The signals to heed; whoever starts the trainer gives those that it listens to."""
        self.step = -1
        """The step of ``last.ckpt``; -1 where this callback has not written one."""
        self._validation: dict[str, Any] | None = None  # what was, as one began

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """From now on a signal waits for the end of a step."""
        if not checkpoint_path(Path(trainer.default_root_dir), "best").exists():
            self.best = None  # it was lost: another is looked for
        self.stopping.listen()
        self.stopping.is_training = True

    def between_steps(self, trainer: pl.Trainer) -> None:
        """Stop here if a signal asked for it: nothing of a step is under way.

        Raises:
            Stopped: the checkpoint is written.
        """
        if not self._is_asked_to_stop(trainer):
            return
        if trainer.fit_loop.epoch_loop._should_accumulate():
            return  # a part of the step's gradient is in no checkpoint
        if trainer.global_step not in (0, self.step):
            self._save(trainer)
        raise Stopped

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Remember what a validation that is broken off must not have changed."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        states = {one.state_key: one.state_dict() for one in trainer.callbacks}  # type: ignore[attr-defined]
        kept = {key: copy.deepcopy(state) for key, state in states.items() if state}
        self._validation = {"callbacks": kept, "growing_files": _lengths(trainer)}

    def on_validation_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any
    ) -> None:
        """Stop in the midst of a long validation; it will be done again, as a whole."""
        if self._validation is not None and self._is_asked_to_stop(trainer):
            self._save(trainer)
            raise Stopped

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write ``best.ckpt`` if these weights are the best, and ``last.ckpt``."""
        if self._validation is None:
            return
        self._validation = None
        is_best = self._is_best(trainer)
        self._save(trainer, is_best=is_best)
        if self._is_asked_to_stop(trainer):
            raise Stopped

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Keep the steps after the last validation, too."""
        if self.step != trainer.global_step or not _is_due(trainer):
            self._save(trainer, is_best=self.best is None)
        self.stopping.is_training = False
        if self._is_asked_to_stop(trainer):
            raise Stopped

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Say how long the growing files are, and where in Lightning's loops the run goes on.

        Lightning's own notes differ with the hook that saves: a run that goes on would begin
        another epoch, skip a validation, or count a step twice. So they are made those of a run
        that is between two steps, its epoch under way; or that has just begun to validate.
        """
        checkpoint["growing_files"] = _lengths(trainer)
        loops = checkpoint["loops"]["fit_loop"]
        # Where a validation is due, Lightning counts the step after it.
        stepped = checkpoint["global_step"] - _is_due(trainer)
        loops["epoch_loop.state_dict"]["_batches_that_stepped"] = stepped
        for progress in (loops["epoch_progress"][which] for which in ("total", "current")):
            progress["processed"] = progress["completed"] = progress["started"] - 1
        begun = {"ready": 1, "started": 1, "processed": 0, "completed": 0}
        validated = loops["epoch_loop.val_loop.batch_progress"]
        # What says that a validation had begun must not outlast its end.
        validated["total"] = dict.fromkeys(begun, 1) if self._validation is None else begun
        validated["current"] = dict.fromkeys(begun, 0)
        checkpoint |= self._validation or {}

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"best": self.best, "monitor": self.monitor, "mode": self.mode}

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Know what was best in a run of an earlier version, which Lightning's callback noted."""
        for state in checkpoint["callbacks"].values():
            score = state.get("best_model_score")
            if score is not None and state.get("monitor") == self.monitor:
                self.best = float(score)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on comparing, where the same is compared and what was best can still be read."""
        if (state_dict["monitor"], state_dict["mode"]) == (self.monitor, self.mode):
            self.best = state_dict["best"]

    def _is_asked_to_stop(self, trainer: pl.Trainer) -> bool:
        """Whether any process of the run was."""
        asked = self.stopping.signum is not None
        if trainer.world_size == 1:
            return asked
        return trainer.strategy.reduce_boolean_decision(asked, all=False)

    def _is_best(self, trainer: pl.Trainer) -> bool:
        metrics = trainer.callback_metrics
        if self.monitor not in metrics:
            raise UserError(
                f"callbacks.checkpoint.monitor={self.monitor!r} is not a metric of this run"
                f"{nearest(self.monitor, metrics)} (there are: {', '.join(sorted(metrics))})"
            )
        value = float(metrics[self.monitor])
        sign = 1 if self.mode == "min" else -1
        is_best = self.best is None or sign * value < sign * self.best
        if is_best and not math.isnan(value):
            self.best = value
            return True
        return False

    def _save(self, trainer: pl.Trainer, *, is_best: bool = False) -> None:
        if trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        folder = Path(trainer.default_root_dir)
        last, best = (checkpoint_path(folder, name) for name in ("last", "best"))
        trainer.save_checkpoint(best if is_best else last, weights_only=False)
        if is_best and trainer.is_global_zero:
            copy_checkpoint(best, last)
        self.step = trainer.global_step


def _lengths(trainer: pl.Trainer) -> dict[str, int]:
    """Of the growing files, after everything logged until now is in them, and in metrics.csv."""
    if not trainer.is_global_zero or trainer.fast_dev_run:  # type: ignore[attr-defined]
        return {}
    for logger in trainer.loggers:
        own = getattr(logger, "flush", None)
        flush = own or getattr(getattr(logger, "experiment", None), "flush", None)
        if callable(flush):
            flush()
    return growing_files.lengths(Path(trainer.default_root_dir))


def _is_due(trainer: pl.Trainer) -> bool:
    """Whether a validation belongs to this step even where nothing asked for an early end."""
    loop = trainer.fit_loop
    should_stop, trainer.should_stop = trainer.should_stop, False
    try:
        return loop.epoch_loop._should_check_val_fx(loop._data_fetcher)  # type: ignore[arg-type]
    finally:
        trainer.should_stop = should_stop
