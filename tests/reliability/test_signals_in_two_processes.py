"""A run of two processes (DistributedDataParallel on the CPU) that a signal stops, and goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from break_off import SMALL

from mha_lab.training.checkpoint_files import checkpoint_path, load_checkpoint

TWO = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2")
MANY = ("trainer.max_steps=100000", "trainer.val_check_interval=20")


def begin(run: Path, *words: str) -> subprocess.Popen[str]:
    """The processes, in a group of their own as a terminal's are; they hear Ctrl-C."""
    return subprocess.Popen(
        [sys.executable, "-m", "mha_lab", "train", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signum", "to_all"),
    [(signal.SIGINT, True), (signal.SIGTERM, False)],
    ids=["Ctrl-C", "SIGTERM to the first"],
)
def test_a_signal_stops_both_processes_and_the_run_goes_on(
    signum: signal.Signals, to_all: bool, tmp_path: Path
):
    run = tmp_path / "run"
    small = [w for w in SMALL if not w.startswith(("trainer=", "trainer.max", "trainer.val"))]
    process = begin(run, *small, *TWO, *MANY, f"hydra.run.dir={run}")
    deadline = time.monotonic() + 120
    while not checkpoint_path(run, "last").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    (os.killpg if to_all else os.kill)(process.pid, signum)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signum, err
    assert "Traceback" not in err
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    step = load_checkpoint(checkpoint_path(run, "last"))["global_step"]
    assert f"interrupted at step {step}" in out
    process = begin(run, f"resume={run}", f"trainer.max_steps={step + 3}")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert load_checkpoint(checkpoint_path(run, "last"))["global_step"] == step + 3
