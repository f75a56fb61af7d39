"""Whole runs: tasks are solved, maps show how, killed and distributed runs are right."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from small_runs import TINY

from mha_lab import config
from mha_lab.evaluation.predictor import predict
from mha_lab.run import train

pytestmark = pytest.mark.slow


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "mha_lab", "train", *words]


def weights(run: Path) -> dict[str, torch.Tensor]:
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A solved run of each experiment."""
    runs = {}
    for task in ("copy", "sort"):
        runs[task] = tmp_path_factory.mktemp(task)
        cfg = config.compose([f"+experiment={task}"], run_dir=runs[task])
        cfg.trainer.enable_progress_bar = False
        train(cfg)
    return runs


@pytest.mark.parametrize("task", ["copy", "sort"])
def test_the_experiment_is_solved(task: str, solved: dict[str, Path]):
    summary = json.loads((solved[task] / "summary.json").read_text())
    assert summary["test/sequence_accuracy"] >= 0.999
    with (solved[task] / "accuracy_by_length.csv").open() as stream:
        assert sum(int(row["sequences"]) for row in csv.DictReader(stream)) == 2000


@pytest.mark.parametrize(
    ("task", "source", "output"),
    [("copy", "3 1 4 1 5", "3 1 4 1 5"), ("sort", "3 1 4 1 5", "1 1 3 4 5"), ("sort", "9", "9")],
)
def test_a_solved_run_predicts(task: str, source: str, output: str, solved: dict[str, Path]):
    assert predict(solved[task], source).output == output.split()


def test_cross_attention_of_copy_shows_the_diagonal(solved: dict[str, Path]):
    prediction = predict(solved["copy"], "3 1 4 7 5 9")
    cross = next(one for one in prediction.maps if one.kind == "cross")
    # Query t writes symbol t, so it looks at source position t; the last one finds the end.
    best_head = torch.stack([head.diagonal() for head in cross.weights[0]]).mean(1).max()
    assert best_head > 0.8


def test_cross_attention_of_sort_looks_up_the_next_larger_value(solved: dict[str, Path]):
    prediction = predict(solved["sort"], "7 3 9 1 4")
    cross = next(one for one in prediction.maps if one.kind == "cross")
    rank = [3, 1, 4, 0, 2]  # where 1, 3, 4, 7, 9 stand in the source
    looked_up = cross.weights[0, :, range(5), rank].amax(0)  # some head looks there
    assert looked_up.mean() > 0.5


@pytest.mark.parametrize("task", ["copy", "sort"])
def test_masked_maps_are_lower_triangular(task: str, solved: dict[str, Path]):
    prediction = predict(solved[task], "7 3 9 1 4")
    masked = [one for one in prediction.maps if one.kind == "masked"]
    assert masked
    for one in masked:
        assert one.weights.triu(1).count_nonzero() == 0


@pytest.mark.parametrize("task", ["copy", "sort"])
def test_the_decoder_only_variant_solves_it_too(task: str, tmp_path: Path):
    overrides = [f"+experiment={task}", "attention=masked_decoder",
                 "trainer.enable_progress_bar=false"]  # fmt: skip
    assert train(config.compose(overrides, run_dir=tmp_path))["test/sequence_accuracy"] >= 0.99


def test_a_killed_run_resumes_exactly(tmp_path: Path):
    overrides = [*TINY, "model.dropout=0.2", "trainer.max_steps=400"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(*overrides, f"hydra.run.dir={whole}"), check=True)
    process = subprocess.Popen(command(*overrides, f"hydra.run.dir={killed}"))
    deadline = time.monotonic() + 120
    while not (killed / "checkpoints" / "last.ckpt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    step = torch.load(killed / "checkpoints" / "last.ckpt", weights_only=True)["global_step"]
    assert step < 400
    subprocess.run(command(f"resume={killed}"), check=True)
    expected, found = weights(whole), weights(killed)
    assert all(torch.equal(expected[key], found[key]) for key in expected)


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path):
    run = tmp_path / "run"
    process = subprocess.Popen(
        command(*TINY, "trainer.max_steps=100000", f"hydra.run.dir={run}"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not (run / "checkpoints" / "last.ckpt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"resume={run}" in out
    assert "Traceback" not in err
    assert json.loads((run / "summary.json").read_text())["status"] == "interrupted"


def test_two_processes_train_together(tmp_path: Path):
    run = tmp_path / "run"
    words = ["trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2", *TINY,
             "trainer.max_steps=10", f"hydra.run.dir={run}"]  # fmt: skip
    done = subprocess.run(
        command(*words), capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads((run / "summary.json").read_text())
    assert summary["steps"] == 10
    with (run / "accuracy_by_length.csv").open() as stream:
        assert sum(int(row["sequences"]) for row in csv.DictReader(stream)) == 29
    assert done.stdout.strip().splitlines()[-1] == str(run)


def test_a_compiled_model_trains_and_its_checkpoint_fits_an_uncompiled_one(tmp_path: Path):
    overrides = [*TINY, "compile=true", "trainer.max_steps=5"]
    train(config.compose(overrides, run_dir=tmp_path))
    assert not any("_orig_mod" in key for key in weights(tmp_path))
    assert predict(tmp_path, "1 2 3", ["compile=false"]).source == ["1", "2", "3"]


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "16-mixed"])
def test_a_gpu_solves_copy(precision: str, tmp_path: Path):
    overrides = ["+experiment=copy", "trainer=gpu", f"trainer.precision={precision}",
                 "trainer.enable_progress_bar=false"]  # fmt: skip
    assert train(config.compose(overrides, run_dir=tmp_path))["test/sequence_accuracy"] >= 0.99
