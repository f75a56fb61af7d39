"""run=latest and run=FOLDER_OF_RUNS: the newest, named; and a sentence where there is none."""

import os
import shutil
from pathlib import Path

import pytest

NEWEST = {"copy/old_name": 100, "multirun/0_seed0": 300, "sweeps/s/trials/001": 200}


@pytest.fixture
def outputs(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder whose outputs/ holds runs of several kinds, of known times."""
    monkeypatch.chdir(tmp_path)
    for name, time in NEWEST.items():
        copy = shutil.copytree(trained, Path("outputs", name))
        for file in copy.glob("events*"):
            file.unlink()  # as of logger=csv
        for file in copy.rglob("*"):
            os.utime(file, (time, time))
    Path("outputs/sweeps/s/sweep.csv").write_text("trial\n")
    Path("outputs/sweeps/s/summary.json").write_text("{}")
    # Begun later than all others, and without a checkpoint yet; refused; empty.
    Path("outputs/copy/begun").mkdir()
    shutil.copy(trained / "config.yaml", "outputs/copy/begun")
    os.utime("outputs/copy/begun/config.yaml", (400, 400))
    Path("outputs/copy/refused/.hydra").mkdir(parents=True)
    Path("outputs/copy/refused/.hydra/overrides.yaml").write_text("[]")
    Path("outputs/empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "newest"),
    [
        ("latest", "outputs/multirun/0_seed0"),
        ("outputs", "outputs/multirun/0_seed0"),
        ("outputs/copy", "outputs/copy/old_name"),
        ("outputs/sweeps", "outputs/sweeps/s/trials/001"),
        ("outputs/sweeps/s", "outputs/sweeps/s/trials/001"),
        ("outputs/c*", "outputs/copy/old_name"),
        ("outputs/*/old_*", "outputs/copy/old_name"),
    ],
)
def test_the_newest_that_can_be_used_is_taken_and_named(lab, outputs, text, newest):
    code, out, err = lab("predict", f"run={text}", "3 1 2")
    assert code == 0, err
    assert err == f"mha_lab: run={text} is {newest}\n"
    assert len(out.splitlines()) == 1


def test_every_command_that_takes_a_run_takes_the_latest(lab, outputs):
    code, out, err = lab("evaluate", "run=latest", "data.test_size=7")
    assert code == 0, err
    assert out.splitlines()[-1].startswith("outputs/multirun/0_seed0/evaluations/")
    # What was evaluated later is trained no later.
    words = ("trainer.max_steps=10", "trainer.enable_progress_bar=false")
    code, out, err = lab("train", "resume=outputs/multirun", *words)
    assert code == 0, err
    assert "resume=outputs/multirun is outputs/multirun/0_seed0" in err
    assert out.splitlines()[-1] == "outputs/multirun/0_seed0"
    code, out, err = lab("report", "latest", "table=markdown")
    assert code == 0, err
    assert "latest is outputs/multirun\n" in err


def test_copies_are_told_by_when_they_were_trained(lab, outputs):
    """Not by when they were copied."""
    for name, began in (("first", 2_000), ("then", 1_000)):
        copy = shutil.copytree("outputs/copy/old_name", Path("copies", name))
        (copy / f"events.out.tfevents.{began}.host.1.0").touch()
        os.utime(copy / "config.yaml")
    code, _, err = lab("predict", "run=copies", "3 1 2")
    assert code == 0
    assert err == "mha_lab: run=copies is copies/first\n"


def test_a_run_is_itself_and_a_folder_called_latest_too(lab, outputs):
    for text in ("outputs/copy/old_name", "latest"):
        shutil.copytree("outputs/copy/old_name", "latest", dirs_exist_ok=True)
        assert lab("predict", f"run={text}", "3 1 2")[2] == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", "run=outputs/empty", "1"], "run=outputs/empty: there is no run in or below"),
        (["evaluate", "run=outputs/copy/none"], "the folder does not exist"),
        (["predict", "run=outputs/n*", "1"], "no run folder at 'outputs/n*'"),
        (["evaluate", "run=outputs/e*"], "run=outputs/e*: there is no run in or below"),
        (["predict", "run=outputs/copy/old_name/config.yaml", "1"], "is a file: name the run's"),
        (["train", "resume=outputs/empty"], "resume=outputs/empty: there is no run in or below"),
        (["report", "outputs/empty"], "no runs in"),
    ],
)
def test_no_run_there_is_said_in_a_sentence(lab, outputs, words, said):
    code, _, err = lab(*words)
    assert code == 2
    assert said in err
    assert len(err.splitlines()) == 1


def test_without_any_run_latest_says_how_to_begin(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (
        ["predict", "run=latest", "1"],
        ["dashboard", "logdir=latest"],
        ["report", "latest"],
    ):
        code, _, err = lab(*words)
        assert code == 2
        assert "train one first (python -m mha_lab train +experiment=copy)" in err


def test_runs_without_a_checkpoint_are_told_from_no_runs(lab, outputs):
    shutil.rmtree("outputs/copy/old_name")
    code, _, err = lab("predict", "run=outputs/copy", "1")
    assert code == 2
    assert "no run in or below 'outputs/copy' has a checkpoint yet" in err
