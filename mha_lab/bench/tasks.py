"""How fast each task makes its sequences: tokens a second on one core.

Usage:
  python -m mha_lab bench tasks                        every task that makes its sequences
  python -m mha_lab bench tasks copy mqar              some
  python -m mha_lab bench tasks sequences=4096 rounds=5

Sources and targets are counted, padding is not. Drawing a batch is timed as training does it, with
what is held out drawn again, in seconds of the processor; the median of the rounds is shown.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Any

from mha_lab.arguments import split, whole_number
from mha_lab.errors import UserError, nearest
from mha_lab.terminal import show_table

_SETTINGS = ("sequences", "rounds")


def main(arguments: Sequence[str]) -> int:
    """Time, and print a line for each task."""
    settings, names = split(arguments, _SETTINGS)
    sequences = whole_number("sequences", settings.get("sequences", "4096"), low=1, high=10**6)
    rounds = whole_number("rounds", settings.get("rounds", "5"), low=1, high=1000)

    import torch

    from mha_lab.config import options

    known = [name for name in options("task") if name != "files"]
    for name in names:
        if name not in known:
            raise UserError(f"unknown task {name!r}{nearest(name, known)}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [_row(name, sequences, rounds) for name in names or known]
    finally:
        torch.set_num_threads(threads)
    show_table(("task", "lengths", "million tokens a second"), rows, numeric=2)
    return 0


def tokens_per_second(task: Any, sequences: int, rounds: int) -> float:
    """The median of some rounds, after one that is not counted.

    Args:
        task: makes its own sequences.
        sequences: how many are drawn at once.
        rounds: how often.
    """
    import torch

    speeds = []
    for number in range(rounds + 1):
        generator = torch.Generator().manual_seed(number)
        since = time.process_time()
        batch = task.draw(sequences, generator)
        seconds = time.process_time() - since
        speeds.append(sum(int((part != 0).sum()) for part in batch) / seconds)
    return statistics.median(speeds[1:])


def _row(name: str, sequences: int, rounds: int) -> tuple[str, str, str]:
    from mha_lab.build import build
    from mha_lab.config import compose

    cfg = compose([f"task={name}"], run_dir=".")
    speed = tokens_per_second(build(cfg, "task"), sequences, rounds)
    return name, f"{cfg.task.min_length}-{cfg.task.max_length}", f"{speed / 1e6:.1f}"
