"""Training with attention maps at every validation against training without them.

Usage:
  python -m mha_lab bench recording [rounds=5] [steps=300] [overrides]

Both are trained in turn in one process, everything else the same: the loggers, the progress bar,
the checkpoints. The callback has its defaults. Overrides choose the run (default:
+experiment=copy). The ratio of the seconds must be at most 1.02.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_lab.commands.arguments import split, whole_number

if TYPE_CHECKING:
    from omegaconf import DictConfig

_SETTINGS = ("rounds", "steps")


def main(arguments: Sequence[str]) -> int:
    """Time, print every round and the median ratio."""
    settings, overrides = split(arguments, _SETTINGS)
    rounds = whole_number("rounds", settings.get("rounds", "5"), low=1, high=1000)
    steps = whole_number("steps", settings.get("steps", "300"), low=1, high=10**6)

    from rich.console import Console
    from rich.table import Table

    from mha_lab.config import compose

    table = Table("round", "without, s", "with maps, s", "ratio")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + 1):
            seconds = {}
            # The second of a pair profits from a warm machine, so they take turns.
            for with_maps in (False, True) if number % 2 else (True, False):
                run_dir = Path(folder) / f"{number}_{with_maps}"
                cfg = compose(overrides or ["+experiment=copy"], run_dir=run_dir)
                seconds[with_maps] = training_seconds(cfg, steps, with_maps=with_maps)
            if number == 0:
                continue  # a warm-up: imports, fonts, files
            ratios.append(seconds[True] / seconds[False])
            row = (f"{seconds[False]:.2f}", f"{seconds[True]:.2f}", f"{ratios[-1]:.3f}")
            table.add_row(str(number), *row)
    Console().print(table)
    print(f"median ratio {statistics.median(ratios):.3f}")
    return 0


def training_seconds(cfg: "DictConfig", steps: int, *, with_maps: bool) -> float:
    """Seconds that a run trains and validates, its attention maps drawn and written or not.

    Args:
        cfg: The run; it is not stopped early.
        steps: How many steps it trains.
        with_maps: Whether it has an ``AttentionMapLogger``.

    Returns:
        Seconds from the start of the training to its end.
    """
    import pytorch_lightning as pl

    from mha_lab.build import build_parts
    from mha_lab.callbacks.attention_map_logger import AttentionMapLogger
    from mha_lab.run import build_callbacks, build_loggers, build_trainer

    class Stopwatch(pl.Callback):
        seconds = 0.0

        def on_fit_start(self, *_: Any) -> None:
            self.seconds = -time.perf_counter()

        def on_fit_end(self, *_: Any) -> None:
            self.seconds += time.perf_counter()

    cfg = cfg.copy()
    cfg.trainer.max_steps = steps
    cfg.callbacks.stop_when_solved = None
    parts = build_parts(cfg)
    others = [one for one in build_callbacks(cfg) if not isinstance(one, AttentionMapLogger)]
    maps: list[pl.Callback] = [AttentionMapLogger()] if with_maps else []
    stopwatch = Stopwatch()
    trainer = build_trainer(cfg, logger=build_loggers(cfg), callbacks=[*others, *maps, stopwatch])
    trainer.fit(parts.module, datamodule=parts.data)
    return stopwatch.seconds
