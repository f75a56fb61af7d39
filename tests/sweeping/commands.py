"""Sweeps as people start them: processes of their own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from optuna.trial import FrozenTrial

from mha_lab.sweeping.plan import read_plan
from mha_lab.sweeping.slots import Slots
from mha_lab.sweeping.worker import join

SMALL = (
    "task=sort",
    "attention=builtin",
    "model.embed_dim=8",
    "data.batch_size=7",
    "data.validation_size=23",
    "data.test_size=29",
    "trainer.max_steps=6",
    "trainer.val_check_interval=3",
    "trainer.enable_progress_bar=false",
    "callbacks.attention_maps=null",
)
SEARCH = (
    "sweep.sampler=random",
    "sweep.pruner=none",
    "sweep.space.model.embed_dim=null",
    "model.num_heads=1,2",
)
PATIENCE = 600.0  # seconds; a shared machine can be slow


def start(*words: str, log: Path) -> subprocess.Popen[bytes]:
    """Start ``python -m mha_lab WORDS`` in a process group of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MHA_LAB_CACHE": str(log.parent / "cache")}
    with log.open("ab") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "mha_lab", *words],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=log.parent,
            start_new_session=True,
        )


def finish(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a process that must end well."""
    code = process.wait(PATIENCE)
    assert code == 0, log.read_text()[-3000:]


def slots(words: tuple[str, ...], size: int) -> Slots:
    """The trials of a sweep, as a bystander sees them; the sweep has begun."""
    from mha_lab import config

    plan = read_plan(words)
    return join(plan, config.compose(plan.overrides, run_dir="RUN"), size)


def wait_for(happens: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Look again and again, until it happens; the process must not end before."""
    end = time.monotonic() + PATIENCE
    while not happens():
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < end, log.read_text()[-3000:]
        time.sleep(0.2)


def pid(trial: FrozenTrial) -> int:
    """The process that runs a trial."""
    return int(trial.user_attrs["worker"].split("-")[-2])
