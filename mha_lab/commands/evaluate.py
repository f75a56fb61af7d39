"""Test a run again, on its own task or on another, longer or harder one.

Usage:
  python -m mha_lab evaluate run=FOLDER                      the run's own test set
  python -m mha_lab evaluate run=FOLDER task.max_length=20   any override
  python -m mha_lab evaluate run=FOLDER task=sort            another task of the same vocabulary
  python -m mha_lab evaluate run=FOLDER checkpoint=last      the last weights, not the best
  python -m mha_lab evaluate run=FOLDER trust=my_variants    a run of code of your own

Prints the accuracy, whole and by length, and keeps it in FOLDER/evaluations/.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from mha_lab import trust
from mha_lab.arguments import split
from mha_lab.errors import UserError
from mha_lab.terminal import show_table

_SETTINGS = ("run", "checkpoint", trust.SETTING)


def main(arguments: Sequence[str]) -> int:
    """Evaluate and print."""
    settings, overrides = split(arguments, _SETTINGS)
    if "run" not in settings:
        raise UserError("evaluate needs run=FOLDER, the folder of a trained run")

    from mha_lab.evaluation import evaluate
    from mha_lab.training.run_folder import write_rows, write_summary

    folder = Path(settings["run"])
    metrics, rows = evaluate(
        folder,
        overrides,
        checkpoint=settings.get("checkpoint", "best"),
        trusted=trust.modules(settings.get(trust.SETTING)),
    )
    show_table(
        ("length", "sequences", "sequence accuracy"),
        [
            (f"{row['length']:.0f}", f"{row['sequences']:.0f}", f"{row['sequence_accuracy']:.4f}")
            for row in rows
        ],
        numeric=3,
    )
    for key, value in metrics.items():
        print(f"{key:<24} {value:.4f}")
    kept = folder / "evaluations" / time.strftime("%Y-%m-%d_%H-%M-%S")
    kept.mkdir(parents=True, exist_ok=True)
    write_rows(kept / "accuracy_by_length.csv", rows)
    write_summary(kept, {"overrides": overrides, **metrics})
    print(kept)
    return 0
