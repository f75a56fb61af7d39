"""Trials as one sweep, in one process, against the same runs as commands of their own.

Usage:
  python -m mha_lab bench sweep [trials=8] [overrides]

All trials train exactly alike (only the size of the test set differs, by one sequence each), so
the sweep is compared with `trials` times the training time of one `train` command, plus the rest
of that command once: start-up, test, and end. Overrides choose the run (default: +experiment=sort).
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mha_lab.arguments import split, whole_number
from mha_lab.errors import UserError


def main(arguments: Sequence[str]) -> int:
    """Time both, print the ratio."""
    settings, overrides = split(arguments, ("trials",))
    trials = whole_number("trials", settings.get("trials", "8"), low=2, high=1000)
    words = overrides or ["+experiment=sort"]

    from mha_lab.training.run_folder import read_summary

    with tempfile.TemporaryDirectory() as home:
        run, folder = Path(home) / "run", Path(home) / "sweep"
        alone = seconds("train", *words, "data.test_size=2000", f"hydra.run.dir={run}")
        training = read_summary(run)["train_seconds"]
        together = seconds(
            "sweep", *words, "sweep=grid", "sweep.space.model.embed_dim=null",
            "sweep.space.optimizer.lr=null", f"data.test_size=range(2000,{2000 + trials})",
            f"sweep.folder={folder}",
        )  # fmt: skip
        each = [read_summary(trial)["train_seconds"] for trial in folder.glob("trials/*")]
    expected = trials * training + (alone - training)
    print(f"one train command        {alone:7.1f} s, of which training {training:.1f} s")
    print(f"{trials} trials as one sweep  {together:7.1f} s, of which training {sum(each):.1f} s")
    print(f"{trials} x training + one start-up {expected:.1f} s")
    print(f"ratio {together / expected:.3f}")
    return 0


def seconds(*words: str) -> float:
    """How long a command takes, from its start to its end.

    Raises:
        UserError: it fails; what it says is on the screen.
    """
    since = time.perf_counter()
    command = [sys.executable, "-m", "mha_lab", *words]
    ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    if ended.returncode:
        raise UserError(f"{words[0]} ended with code {ended.returncode}; it said why above")
    return time.perf_counter() - since
