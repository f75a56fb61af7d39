"""Steps per second of the harness against a bare PyTorch loop with the same model and data.

Usage:
  python -m mha_lab bench loop [rounds=5] [steps=200] [overrides]

Both are timed in turn in one process, the harness with its loggers, progress bar and callbacks
on. Validation is left out of both. Overrides choose the run (default: +experiment=copy).
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_lab.arguments import split, whole_number
from mha_lab.terminal import show_table

if TYPE_CHECKING:
    from omegaconf import DictConfig

_SETTINGS = ("rounds", "steps")
_WARMUP_STEPS = 20


def main(arguments: Sequence[str]) -> int:
    """Time, print every round and the median ratio."""
    settings, overrides = split(arguments, _SETTINGS)
    rounds = whole_number("rounds", settings.get("rounds", "5"), low=1, high=1000)
    steps = whole_number("steps", settings.get("steps", "200"), low=_WARMUP_STEPS + 1, high=10**6)

    from mha_lab.config import compose

    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            run_dir = Path(folder) / str(number)
            cfg = compose(overrides or ["+experiment=copy"], run_dir=run_dir)
            loops = [bare_loop, harness_loop]
            if number % 2:  # a machine that grows slower or faster favours neither
                loops.reverse()
            speed = {loop: loop(cfg, steps) for loop in loops}
            bare, harness = speed[bare_loop], speed[harness_loop]
            ratios.append(harness / bare)
            rows.append((str(number + 1), f"{bare:.1f}", f"{harness:.1f}", f"{ratios[-1]:.3f}"))
    columns = ("round", "bare loop, steps/s", "harness, steps/s", "ratio")
    show_table(columns, rows, numeric=3)
    print(f"median ratio {statistics.median(ratios):.3f}")
    return 0


def bare_loop(cfg: "DictConfig", steps: int) -> float:
    """Steps per second of the plainest loop that trains the same model."""
    import torch

    from mha_lab.build import build_parts
    from mha_lab.training.module import token_loss

    parts = build_parts(cfg)
    model = parts.module.model
    optimizer, schedule = parts.module.recipe.build(model)
    batches = iter(parts.data.train_dataloader())
    model.train()
    since = 0.0
    for step in range(steps):
        if step == _WARMUP_STEPS:
            since = time.perf_counter()
        batch = next(batches)
        loss = token_loss(model(batch.source, batch.target), batch.target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.trainer.gradient_clip_val)
        optimizer.step()
        schedule.step()
    return (steps - _WARMUP_STEPS) / (time.perf_counter() - since)


def harness_loop(cfg: "DictConfig", steps: int) -> float:
    """Steps per second inside ``trainer.fit``, loggers, bar and callbacks on."""
    import pytorch_lightning as pl

    from mha_lab.build import build_parts
    from mha_lab.run.trainer import build_callbacks, build_loggers, build_trainer, quieten

    class Stopwatch(pl.Callback):
        since = 0.0
        seconds = 0.0

        def on_train_batch_start(self, trainer: pl.Trainer, *_: Any) -> None:
            if trainer.global_step == _WARMUP_STEPS:
                self.since = time.perf_counter()

        def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
            self.seconds = time.perf_counter() - self.since

    quieten()
    cfg = cfg.copy()
    cfg.trainer.max_steps = steps
    cfg.trainer.val_check_interval = steps
    cfg.trainer.limit_val_batches = 0
    parts = build_parts(cfg)
    stopwatch = Stopwatch()
    trainer = build_trainer(
        cfg, logger=build_loggers(cfg), callbacks=[*build_callbacks(cfg), stopwatch]
    )
    trainer.fit(parts.module, datamodule=parts.data)
    return (steps - _WARMUP_STEPS) / stopwatch.seconds
