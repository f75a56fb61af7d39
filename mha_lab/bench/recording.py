"""Training with attention maps at every validation against training without them.

Usage:
  python -m mha_lab bench recording [pairs=60] [overrides]

One training, with its loggers, progress bar and checkpoints, whose validations take turns: the
maps of every second one are recorded, drawn and written, with the callback's defaults. What is
timed is the whole stretch from one validation's end to the next one's. Overrides choose the run
(default: +experiment=copy). The ratio of the medians must be at most 1.02.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_lab.arguments import split, whole_number
from mha_lab.errors import UserError
from mha_lab.terminal import show_table

if TYPE_CHECKING:
    from omegaconf import DictConfig

_WARMUP_PAIRS = 2
"""Imports, fonts, files."""


def main(arguments: Sequence[str]) -> int:
    """Time, print both medians and their ratio."""
    settings, overrides = split(arguments, ("pairs",))
    pairs = whole_number("pairs", settings.get("pairs", "60"), low=2, high=10_000)

    from mha_lab.config import compose

    with tempfile.TemporaryDirectory() as folder:
        cfg = compose(overrides or ["+experiment=copy"], run_dir=Path(folder) / "run")
        if cfg.callbacks.get("attention_maps") is None:
            raise UserError("bench recording compares with maps: leave callbacks.attention_maps")
        seconds = stretches(cfg, pairs + _WARMUP_PAIRS)[2 * _WARMUP_PAIRS :]
    rows, medians = [], []
    for name, mine in (("without maps", seconds[0::2]), ("with maps", seconds[1::2])):
        low, median, high = statistics.quantiles(mine, n=4)
        medians.append(median)
        rows.append((f"{len(mine)} {name}", *(f"{1e3 * x:.1f}" for x in (median, low, high))))
    columns = ("validations", "median, ms", "lower quartile, ms", "upper quartile, ms")
    show_table(columns, rows, numeric=3)
    print(f"ratio of the medians {medians[1] / medians[0]:.3f}")
    return 0


def stretches(cfg: "DictConfig", pairs: int) -> list[float]:
    """Seconds from one validation's end to the next one's, without maps and with them in turn.

    Args:
        cfg: The run; it is not stopped early, and validates as often as it says.
        pairs: How many of both.

    Returns:
        2·pairs numbers; the first, third, ... are those without maps.
    """
    import pytorch_lightning as pl

    from mha_lab.build import build_parts
    from mha_lab.callbacks.attention_map_logger import AttentionMapLogger
    from mha_lab.run.trainer import build_callbacks, build_loggers, build_trainer

    class ByTurns(AttentionMapLogger):
        """Sees every second validation."""

        def on_validation_batch_start(self, *args: Any) -> None:
            if len(stopwatch.ends) % 2 == 0:
                super().on_validation_batch_start(*args)

    class Stopwatch(pl.Callback):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
            if not trainer.sanity_checking:
                self.ends.append(time.perf_counter())

    cfg = cfg.copy()
    cfg.trainer.max_steps = (2 * pairs + 1) * cfg.trainer.val_check_interval
    cfg.callbacks.stop_when_solved = None
    parts = build_parts(cfg)
    others = [one for one in build_callbacks(cfg) if not isinstance(one, AttentionMapLogger)]
    stopwatch = Stopwatch()
    trainer = build_trainer(
        cfg, logger=build_loggers(cfg), callbacks=[*others, ByTurns(), stopwatch]
    )
    trainer.fit(parts.module, datamodule=parts.data)
    return [end - start for start, end in zip(stopwatch.ends, stopwatch.ends[1:], strict=False)]
