"""What pruning saves of a search, and whether it still finds as good a setting.

Usage:
  python -m mha_lab bench pruning [repeats=3] [trials=30] [pruner=hyperband] [overrides]

Each repeat makes the same search over learning rate, width and heads (configs/sweep/optuna.yaml)
twice, with and without pruning, from a sampler's seed of its own. Overrides choose the run
(default: +experiment=sort without maps and text samples). It takes about an hour.
"""

import contextlib
import csv
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from mha_lab.arguments import split, whole_number
from mha_lab.errors import UserError, nearest
from mha_lab.terminal import show_table

_SETTINGS = ("repeats", "trials", "pruner")
_PLAIN_RUNS = [
    "+experiment=sort",
    "callbacks.attention_maps=null",
    "callbacks.text_samples=null",
]


@dataclass
class Search:
    """What a search cost and found."""

    steps: int
    validation: float
    test: float


def main(arguments: Sequence[str]) -> int:
    """Search, print a row a repeat."""
    from mha_lab.sweeping.settings import Pruner

    settings, overrides = split(arguments, _SETTINGS)
    repeats = whole_number("repeats", settings.get("repeats", "3"), low=1, high=100)
    trials = whole_number("trials", settings.get("trials", "30"), low=2, high=10_000)
    pruner = settings.get("pruner", "hyperband")
    known = [name for name in get_args(Pruner) if name != "none"]
    if pruner not in known:
        raise UserError(
            f"pruner={pruner} is unknown{nearest(pruner, known)} (there are: {', '.join(known)})"
        )

    rows = []
    for repeat in range(repeats):
        words = [*(overrides or _PLAIN_RUNS), f"sweep.n_trials={trials}"]
        whole, pruned = (
            search([*words, f"sweep.pruner={each}", f"sweep.sampler_seed={repeat}"])
            for each in ("none", pruner)
        )
        saved = 1 - pruned.steps / whole.steps
        row = (
            str(repeat + 1),
            f"{whole.steps:,}",
            f"{pruned.steps:,}",
            f"{saved:.0%}",
            *map(_found, (whole, pruned)),
        )
        print(*row, sep="  ", flush=True)
        rows.append(row)
    columns = ("repeat", "steps", f"steps, {pruner}", "saved", "best, test", f"best, {pruner}")
    show_table(columns, rows, numeric=5)
    return 0


def search(words: Sequence[str]) -> Search:
    """Run a search in a folder that is thrown away."""
    from mha_lab.sweeping.plan import read_plan
    from mha_lab.sweeping.results import CSV
    from mha_lab.sweeping.sweep import sweep

    with tempfile.TemporaryDirectory() as home, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(home) / "search"
        sweep(read_plan([*words, f"sweep.folder={folder}"]))
        with (folder / CSV).open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))  # the best first
    return Search(
        steps=sum(int(row["steps"]) for row in rows),
        validation=float(rows[0]["val/sequence_accuracy"]),
        test=float(rows[0]["test/sequence_accuracy"]),
    )


def _found(search: Search) -> str:
    return f"{search.test:.4f} (validation {search.validation:.4f})"
