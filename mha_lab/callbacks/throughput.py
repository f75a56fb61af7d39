"""Sequences per second, as a metric."""

import time
from typing import Any

import pytorch_lightning as pl
from torch import Tensor


class Throughput(pl.Callback):
    """Logs ``train/sequences_per_second`` on the steps that loggers keep.

    Counts what all processes train on; the time of validation is left out. A batch is a tensor,
    or a tuple or list or dict whose first element is one; its first dimension counts sequences.
    """

    def __init__(self) -> None:
        self._sequences = 0
        self._since: float | None = None

    def on_train_batch_start(self, trainer: pl.Trainer, *_: Any) -> None:
        """Start the clock, at the start and after each validation."""
        if self._since is None:
            self._sequences, self._since = 0, time.perf_counter()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, _: int
    ) -> None:
        """Count the batch; log now and then."""
        self._sequences += _first_tensor(batch).shape[0]
        if trainer.fit_loop.epoch_loop._should_accumulate():
            return
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if trainer.global_step % every == 0 and self._since is not None:
            seconds = time.perf_counter() - self._since
            rate = self._sequences * trainer.world_size / max(seconds, 1e-9)
            pl_module.log("train/sequences_per_second", rate, on_step=True, on_epoch=False)
            self._since = None

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop the clock while validating."""
        self._since = None


def _first_tensor(batch: Any) -> Tensor:
    while not isinstance(batch, Tensor):
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return batch
