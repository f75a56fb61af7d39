"""When a callback logs: every so many epochs or optimizer steps since it logged last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytorch_lightning import Trainer


class LoggingSchedule:
    """Remembers when was logged last, for each thing that is logged.

    Args:
        every_n_epochs: After so many epochs; None means 1 unless every_n_steps is given.
        every_n_steps: After so many optimizer steps instead.
    """

    def __init__(self, every_n_epochs: int | None, every_n_steps: int | None) -> None:
        self._every_n_epochs = every_n_epochs or 1
        self._every_n_steps = every_n_steps
        self.last: dict[str, tuple[int, int]] = {}  # step and epoch

    def is_due(self, trainer: Trainer, name: str) -> bool:
        """Whether it is time to log: never in the sanity check, and in the first process only."""
        if trainer.sanity_checking or not trainer.is_global_zero:
            return False
        if name not in self.last:
            return True
        step, epoch = self.last[name]
        if self._every_n_steps is not None:
            return trainer.global_step - step >= self._every_n_steps
        epochs = trainer.current_epoch - epoch
        return epochs == 0 or epochs >= self._every_n_epochs

    def note(self, trainer: Trainer, name: str) -> None:
        """It is logged now."""
        self.last[name] = (trainer.global_step, trainer.current_epoch)

    def step_of(self, name: str) -> int:
        """The step at which it was logged last."""
        return self.last[name][0]
