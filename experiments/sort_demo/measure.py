"""The race of the demo's loop and ours, in turn, with the run's own seed: `bench solve`."""

import tempfile
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mha_lab.bench.solve import race
from mha_lab.errors import UserError
from mha_lab.training.run_folder import read_summary

FEW = 50  # a run of so few steps only shows that all works


def measure(run: Path) -> list[dict[str, Any]]:
    """Steps and seconds of both loops, and their ratio; nothing of runs of the default recipe."""
    summary = read_summary(run)
    if summary["task"] != "mingpt_sort":
        return []
    steps = int(OmegaConf.load(run / "config.yaml").trainer.max_steps)
    limit = 2000 if steps > FEW else steps
    try:
        with tempfile.TemporaryDirectory() as folder:
            one = race(int(summary["seed"]), Path(folder), steps=limit)
    except UserError:
        if steps > FEW:
            raise
        return []
    return [
        {"loop": "the demo's", "steps": one["demo_steps"], "cpu_seconds": one["demo_seconds"]},
        {"loop": "ours", "steps": one["our_steps"], "cpu_seconds": one["our_seconds"]},
        {"ratio": one["ratio"]},
    ]
