"""A run that is broken off, however and whenever, ends as the one that was not."""

import os
import signal
from pathlib import Path

import pytest
from break_off import SMALL, copy_at, signal_at
from same_run import differences
from torch.utils.tensorboard.writer import FileWriter

from mha_lab import config
from mha_lab.run import train

COMMON = [("on_train_batch_end", 8), ("on_validation_batch_end", 10)]
MOMENTS = [
    *COMMON,
    *(
        pytest.param(*moment, marks=pytest.mark.slow)
        for moment in (
            ("on_train_start", 0), ("on_train_batch_start", 0), ("on_train_batch_end", 1),
            ("on_train_batch_end", 4), ("on_train_batch_end", 5), ("on_validation_start", 5),
            ("on_validation_batch_start", 5), ("on_validation_end", 5),
            ("on_train_batch_start", 5), ("on_train_batch_end", 13), ("on_train_end", 13),
            ("on_test_batch_end", 13), ("on_test_end", 13),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("hook", "step"), MOMENTS)
def test_a_signal_at_any_moment(hook: str, step: int, unbroken: Path, tmp_path: Path):
    run = tmp_path / "run"
    summary = train(config.compose(SMALL, run_dir=run), callbacks=[signal_at(hook, step)])
    assert (summary["status"], summary["exit_code"]) == ("interrupted", 128 + signal.SIGTERM)
    assert summary["steps"] == (step + 1 if hook == "on_train_batch_start" else step)
    train(config.load_run(run), resume=True)
    assert differences(unbroken, run, loaders=False) == []


@pytest.mark.parametrize(("hook", "step"), MOMENTS)
def test_a_kill_at_any_moment(hook: str, step: int, unbroken: Path, tmp_path: Path):
    run, left = tmp_path / "run", tmp_path / "left"
    train(config.compose(SMALL, run_dir=run), callbacks=[copy_at(hook, step, run, left)])
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    train(config.load_run(left), resume=True)
    assert differences(unbroken, left, loaders=False) == []
    after = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    assert after == before  # what is left was a copy; the original is untouched


def test_broken_off_again_and_again(unbroken: Path, tmp_path: Path):
    run, left = tmp_path / "run", tmp_path / "left"
    train(config.compose(SMALL, run_dir=run), callbacks=[signal_at("on_validation_batch_end", 5)])
    twice = [signal_at("on_validation_start", 5)]
    train(config.load_run(run), resume=True, callbacks=twice)
    killed = [copy_at("on_train_batch_end", 6, run, left), signal_at("on_train_batch_end", 6)]
    train(config.load_run(run), resume=True, callbacks=killed)
    train(config.load_run(left), resume=True, callbacks=[signal_at("on_train_batch_end", 12)])
    train(config.load_run(left), resume=True)
    assert differences(unbroken, left) == []


def test_a_kill_after_a_last_step_that_was_validated(tmp_path: Path):
    run, left = tmp_path / "run", tmp_path / "left"
    cfg = config.compose([*SMALL, "trainer.max_steps=10"], run_dir=run)
    train(cfg, callbacks=[copy_at("on_validation_end", 10, run, tmp_path / "before"),
                          copy_at("on_train_end", 10, run, left)])  # fmt: skip
    for folder in (tmp_path / "before", left):
        train(config.load_run(folder), resume=True)
        assert differences(run, folder, loaders=False) == []


def test_a_signal_while_the_event_file_is_closed(
    unbroken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Lightning closes it again, and TensorBoard answers with an OSError."""
    run = tmp_path / "run"
    close = FileWriter.close

    def close_and_be_stopped(self: FileWriter) -> None:
        close(self)
        monkeypatch.setattr(FileWriter, "close", close)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(FileWriter, "close", close_and_be_stopped)
    summary = train(config.compose(SMALL, run_dir=run))
    assert (summary["status"], summary["exit_code"]) == ("interrupted", 128 + signal.SIGTERM)
    train(config.load_run(run), resume=True)
    assert differences(unbroken, run, loaders=False) == []
