"""What a run leaves: whole checkpoints, no place of this machine, one writer, one sentence."""

import csv
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from break_off import SMALL, signal_at, small
from same_run import differences

from mha_lab import cli, config
from mha_lab.commands.ending import summary_text
from mha_lab.errors import MachineError, UserError
from mha_lab.run import train
from mha_lab.training import run_folder
from mha_lab.training.checkpoint_files import checkpoint_path, load_checkpoint

Lab = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lab(capfd: pytest.CaptureFixture[str]) -> Lab:
    """Run a command line in this process; gives exit code, stdout, stderr."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        try:
            code = cli.run([str(word) for word in words])
        except SystemExit as error:
            code = int(error.code or 0)
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def copy(unbroken: Path, tmp_path: Path) -> Path:
    """A copy of the unbroken run, to be damaged."""
    return shutil.copytree(unbroken, tmp_path / "copy")


def broken_off(run: Path, step: int, *words: str) -> None:
    train(config.compose([*SMALL, *words], run_dir=run),
          callbacks=[signal_at("on_train_batch_end", step)])  # fmt: skip


# Checkpoints


def test_any_flipped_bit_of_a_checkpoint_is_told(copy: Path):
    file = checkpoint_path(copy, "best")
    content, draw = file.read_bytes(), random.Random(0)
    for _ in range(100):
        place = draw.randrange(len(content) - 71)  # the checksum's own mark is the rest
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
        with pytest.raises(UserError, match=r"best\.ckpt.*corrupt"):
            load_checkpoint(file)
    file.write_bytes(content)
    assert load_checkpoint(file)["global_step"] == 10


def test_a_checkpoint_is_still_one_of_torch(unbroken: Path):
    assert torch.load(checkpoint_path(unbroken, "last"), weights_only=True)["global_step"] == 13


@pytest.mark.parametrize("name", ["last", "best"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_checkpoint_gives_way_to_the_newest_whole_one(
    name: str, damage: str, lab: Lab, unbroken: Path, tmp_path: Path
):
    run = tmp_path / "run"
    broken_off(run, 12)
    file = checkpoint_path(run, name)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 16
    file.write_bytes({"cut": content[:5000], "flipped": content, "empty": b""}[damage])
    code, _, err = lab("train", f"resume={run}")
    assert code == 0, err
    step = 10 if name == "last" else 12
    assert f"{name}.ckpt' is corrupt" in err
    assert f"of step {step}" in err
    if name == "last":  # what best.ckpt lacks is trained again
        assert differences(unbroken, run, loaders=False) == []
    else:  # the best weights are gone, those that come are compared among themselves
        assert load_checkpoint(file)["global_step"] == 13


def test_an_interrupted_run_without_a_checkpoint_begins_again(
    lab: Lab, unbroken: Path, tmp_path: Path
):
    run = tmp_path / "run"
    summary = train(config.compose(SMALL, run_dir=run), callbacks=[signal_at("on_train_start", 0)])
    assert summary["steps"] == 0
    code, _, err = lab("train", f"resume={run}")
    assert code == 0
    assert "begins again" in err
    assert differences(unbroken, run, loaders=False) == []


@pytest.mark.parametrize(
    "words",
    [
        ["callbacks.checkpoint=null"],
        ["+trainer.fast_dev_run=true"],
        ["+trainer.limit_val_batches=0"],
        ["trainer.val_check_interval=100"],
        ["callbacks.checkpoint.monitor=val/token_accuracy", "callbacks.checkpoint.mode=max"],
    ],
)
def test_unusual_settings_train_and_test(words: list[str], lab: Lab, tmp_path: Path):
    run = tmp_path / "run"
    code, _, err = lab("train", *small(*words), f"hydra.run.dir={run}")
    assert code == 0, err
    assert 0 < run_folder.read_summary(run)["test/loss"] < 10
    has_checkpoints = words[0].startswith(
        ("callbacks.checkpoint.", "trainer.val", "+trainer.limit")
    )
    assert checkpoint_path(run, "best").exists() == has_checkpoints
    assert checkpoint_path(run, "last").exists() == has_checkpoints


def test_a_metric_that_there_is_not_is_one_sentence(lab: Lab, tmp_path: Path):
    words = ["callbacks.checkpoint.monitor=val/los", f"hydra.run.dir={tmp_path / 'r'}"]
    code, _, err = lab("train", *small(*words))
    assert code == 2
    assert "did you mean 'val/loss'" in err.strip().splitlines()[-1]


# Schedules


def test_a_callbacks_own_schedule_goes_on(lab: Lab, tmp_path: Path):
    words = ["trainer.max_steps=40", "+callbacks.attention_maps.every_n_steps=12"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(config.compose([*SMALL, *words], run_dir=whole))
    broken_off(parts, 22, *words)
    assert lab("train", f"resume={parts}")[0] == 0
    assert differences(whole, parts, loaders=False) == []


def test_files_of_maps_are_written_once(lab: Lab, tmp_path: Path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for run in (whole, parts):
        (train(config.compose([*SMALL, "logger=csv"], run_dir=run)) if run == whole
         else broken_off(run, 12, "logger=csv"))  # fmt: skip
    checkpoint_path(parts, "last").unlink()  # goes on from step 10, of which files were written
    assert lab("train", f"resume={parts}")[0] == 0
    scores = [(run / "attention" / "scores.csv").read_text() for run in (whole, parts)]
    assert scores[0] == scores[1]


# Places


def test_no_file_of_a_run_says_where_it_lies(lab: Lab, tmp_path: Path):
    run = tmp_path / "run"
    assert lab("train", *SMALL, f"hydra.run.dir={run}")[0] == 0
    here = [str(place).encode() for place in (tmp_path, Path.cwd(), config.config_folder())]
    for file in run.rglob("*"):
        assert not file.is_file() or not any(place in file.read_bytes() for place in here), file


def test_a_moved_run_goes_on_where_it_is(lab: Lab, unbroken: Path, tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "else where's"
    broken_off(first, 8)
    first.rename(second)
    code, out, err = lab("train", f"resume={second}")
    assert code == 0, err
    assert out.strip().splitlines()[-1] == str(second)
    assert not first.exists()
    assert differences(unbroken, second, loaders=False) == []


def test_what_is_printed_to_go_on_can_be_typed(tmp_path: Path):
    run = tmp_path / "it's a (run)"
    summary = train(config.compose(SMALL, run_dir=run), callbacks=[signal_at("on_train_start", 0)])
    printed = summary_text(summary, run).splitlines()[-2]
    assert shlex.split(printed)[-1] == f"resume={run}"


# Writers


HOLD = """
import sys, time
from pathlib import Path
from mha_lab.training.run_folder import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_writer_is_refused_until_the_first_is_gone(lab: Lab, copy: Path):
    before = {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(copy)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        code, _, err = lab("train", f"resume={copy}", "trainer.max_steps=20")
        assert code == 2
        assert "another process is writing" in err
        assert str(copy) in err
        assert before == {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    finally:
        holder.kill()  # -9: nobody tidies up
        holder.wait()
    assert lab("train", f"resume={copy}", "trainer.max_steps=14")[0] == 0


def test_what_a_killed_process_had_half_written_is_removed(copy: Path):
    halves = [copy / ".metrics.csv.123", copy / "checkpoints" / ".last.ckpt.123"]
    for half in halves:
        half.write_text("half")
    with run_folder.claimed(copy):
        assert not any(half.exists() for half in halves)
    assert (copy / ".hydra").exists() or (copy / "config.yaml").exists()


def test_two_evaluations_in_one_second_are_two(lab: Lab, copy: Path):
    folders = {lab("evaluate", f"run={copy}")[1].strip().splitlines()[-1] for _ in range(3)}
    assert len(folders) == 3
    for folder in folders:
        assert json.loads((Path(folder) / "summary.json").read_text())


# Signals


def test_a_second_signal_does_not_wait():
    from mha_lab.training.stopping import Stopped, Stopping

    before = signal.getsignal(signal.SIGTERM)
    with Stopping() as stopping:
        stopping.is_training = True
        signal.raise_signal(signal.SIGTERM)
        assert stopping.signum == signal.SIGTERM
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before


def test_no_signal_waits_longer_than_the_patience(monkeypatch: pytest.MonkeyPatch):
    from mha_lab.training import stopping

    monkeypatch.setattr(stopping, "PATIENCE", 0.1)
    with stopping.Stopping() as listening:
        listening.is_training = True
        signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(stopping.Stopped):
            time.sleep(20)


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_during_set_up_ends_a_run(signum: signal.Signals, tmp_path: Path):
    # A large set to draw: longer than the patience.
    words = ["data.train_size=20000000", "data.batch_size=8", f"hydra.run.dir={tmp_path / 'r'}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mha_lab", "train", *small(*words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (tmp_path / "r" / "config.yaml").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signum)
    out, err = process.communicate(timeout=30)  # 10 on a machine with nothing else to do
    assert process.returncode == 128 + signum
    assert "Traceback" not in err
    assert f"train resume={tmp_path / 'r'}" in out


# Machines that cannot


@pytest.fixture
def small_disk(tmp_path: Path):
    """A filesystem of 3 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("a small filesystem can only be mounted as root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def one_sentence(err: str) -> str:
    assert "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("mha_lab: ")]
    return line


def test_a_full_disk_is_one_sentence_and_the_last_checkpoint_is_kept(lab: Lab, small_disk: Path):
    run = small_disk / "run"
    broken_off(run, 8)
    (small_disk / "rest").write_bytes(bytes(shutil.disk_usage(small_disk).free))
    code, _, err = lab("train", f"resume={run}")
    assert code == 1
    assert "No space left on device" in one_sentence(err)
    assert "its last checkpoint is kept" in err
    assert load_checkpoint(checkpoint_path(run, "last"))["global_step"] == 8
    (small_disk / "rest").unlink()
    assert lab("train", f"resume={run}")[0] == 0


@pytest.mark.slow
def test_a_disk_that_fills_up_while_training(small_disk: Path):
    run = small_disk / "run"
    words = ["trainer.max_steps=100000", "trainer.val_check_interval=1", f"hydra.run.dir={run}"]
    done = subprocess.run(
        [sys.executable, "-m", "mha_lab", "train", *small(*words)],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device" in one_sentence(done.stderr)
    assert load_checkpoint(checkpoint_path(run, "last"))["global_step"] > 1


def test_a_figure_that_a_full_disk_cannot_hold_leaves_nothing(
    lab: Lab, unbroken: Path, small_disk: Path
):
    (small_disk / "rest").write_bytes(bytes(shutil.disk_usage(small_disk).free))
    code, _, err = lab("predict", f"run={unbroken}", "1 2", f"figure={small_disk / 'a.png'}")
    assert code == 1
    assert "No space left on device" in one_sentence(err)
    assert [file.name for file in small_disk.iterdir()] == ["rest"]


def test_a_read_only_disk_is_one_sentence(lab: Lab, small_disk: Path):
    run = small_disk / "run"
    broken_off(run, 8)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    code, _, err = lab("train", f"resume={run}")
    assert code == 1
    assert "Read-only file system" in one_sentence(err)
    code, _, err = lab("train", *SMALL, f"hydra.run.dir={small_disk / 'new'}")
    assert code == 1
    assert "Read-only file system" in one_sentence(err)


def test_a_folder_that_vanishes_is_one_sentence(lab: Lab, tmp_path: Path):
    from break_off import At

    run = tmp_path / "run"
    gone = At("on_train_batch_end", 8, lambda: shutil.rmtree(run))
    with pytest.raises(MachineError, match="No such file or directory"):
        train(config.compose(SMALL, run_dir=run), callbacks=[gone])


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 bytes")],
)
def test_no_memory_is_one_sentence(error: Exception, tmp_path: Path):
    from break_off import At

    def fail() -> None:
        raise error

    with pytest.raises(MachineError, match="out of memory"):
        train(
            config.compose(SMALL, run_dir=tmp_path / "run"),
            callbacks=[At("on_train_batch_end", 8, fail)],
        )


# metrics.csv


def test_the_first_step_of_metrics_is_kept_by_a_run_that_goes_on(lab: Lab, tmp_path: Path):
    run = tmp_path / "run"
    broken_off(run, 8)
    assert lab("train", f"resume={run}", "trainer.max_steps=20")[0] == 0
    with (run / "metrics.csv").open(newline="") as stream:
        assert [int(row["step"]) for row in csv.DictReader(stream)] == list(range(21))
