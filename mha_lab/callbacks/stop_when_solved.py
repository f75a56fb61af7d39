"""End a run as soon as its task is solved."""

from typing import Any

import pytorch_lightning as pl

from mha_lab.ranges import Share


class StopWhenSolved(pl.Callback):
    """Stops training once a validation metric reaches a threshold.

    Unlike Lightning's ``EarlyStopping`` the threshold counts as reached when it is met exactly
    (an accuracy of 1.0 can be asked for), and a resumed run that was solved stays stopped.

    Args:
        threshold: the value to reach.
        monitor: the metric, higher is better.

    Raises:
        ValueError: the threshold is not in (0, 1].
    """

    def __init__(self, threshold: Share = 0.999, monitor: str = "val/sequence_accuracy") -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"stop_when_solved.threshold must be in (0, 1], got {threshold}")
        self.threshold = threshold
        self.monitor = monitor
        self.solved = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A resumed run that was solved has nothing left to do."""
        if self.solved:
            trainer.should_stop = True

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Compare after each validation; every process sees the same reduced metric."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        value = trainer.callback_metrics.get(self.monitor)
        if value is None:
            known = ", ".join(sorted(trainer.callback_metrics))
            raise ValueError(f"stop_when_solved.monitor={self.monitor!r} is not one of: {known}")
        if float(value) >= self.threshold:
            self.solved = True
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"solved": self.solved, "threshold": self.threshold}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Stay solved, unless more is asked for now than was reached then."""
        self.solved = state_dict["solved"] and self.threshold <= state_dict["threshold"]
