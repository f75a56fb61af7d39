"""Real runs in a sweep: the same numbers as alone, one after the other in one process."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from mha_lab import config
from mha_lab.run import train
from mha_lab.sweeping.plan import read_plan
from mha_lab.sweeping.sweep import sweep
from mha_lab.training.run_folder import read_summary

SMALL = [
    "task=sort",
    "attention=builtin",
    "model.num_heads=2",
    "model.dropout=0.1",
    "data.batch_size=7",
    "data.validation_size=23",
    "data.test_size=29",
    "trainer.max_steps=6",
    "trainer.val_check_interval=3",
    "trainer.log_every_n_steps=1",
]
TIMES = ("wall_seconds", "train_seconds")


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MHA_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def losses(run: Path) -> list[tuple[str, str, str]]:
    with (run / "metrics.csv").open() as stream:
        return [(r["step"], r["train/loss"], r["val/loss"]) for r in csv.DictReader(stream)]


def test_a_trial_in_a_sweep_gives_the_same_numbers_as_alone(tmp_path: Path):
    folder = tmp_path / "sweep"
    words = [*SMALL, f"sweep.folder={folder}", "sweep=grid", "sweep.space.optimizer.lr=null"]
    assert sweep(read_plan([*words, "model.embed_dim=8,16", "model=encoder_decoder,encoder"])) == 0
    # Not in the sweep's order, so that what a run might leave behind would be another thing.
    for number, chosen in ((3, ["16", "encoder"]), (1, ["8", "encoder"])):
        alone, trial = tmp_path / f"alone_{number}", folder / "trials" / f"{number:03d}"
        values = [f"model.embed_dim={chosen[0]}", f"model={chosen[1]}"]
        train(config.compose([*SMALL, *values], run_dir=alone))
        assert losses(trial) == losses(alone)
        summaries = [read_summary(run) for run in (trial, alone)]
        assert summaries[0]["steps"] == 6
        for summary in summaries:
            for key in TIMES:
                del summary[key]
        assert summaries[0] == summaries[1]
        weights = [
            torch.load(run / "checkpoints" / "best.ckpt", weights_only=True)["state_dict"]
            for run in (trial, alone)
        ]
        torch.testing.assert_close(*weights, rtol=0, atol=0)


def test_best_yaml_is_the_best_trial_as_train_composes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from mha_lab import cli
    from mha_lab.commands import job
    from mha_lab.sweeping.recipe import write_recipe

    words = [
        "+experiment=sort", "attention=masked_decoder", "optimizer.lr=0.0123", "optimizer.decay=cosine",  # noqa: E501
        "~callbacks.text_samples", "+trainer.limit_val_batches=1", "optimizer.betas=[0.8,0.9]",
    ]  # fmt: skip
    write_recipe(tmp_path, words, "a title")
    composed: list[Any] = []
    monkeypatch.setattr(job, "train_and_tell", lambda cfg, **_: composed.append(cfg) or 0)
    run = tmp_path / "run"
    recipe = [
        "train",
        "--config-dir",
        str(tmp_path),
        "--config-name",
        "best",
        f"hydra.run.dir={run}",
    ]
    assert cli.run(recipe) == 0
    assert cli.run([*recipe, "attention=builtin", "seed=5"]) == 0  # further changes are possible
    expected = config.compose(words, run_dir=run)
    expected.callbacks.text_samples = None
    assert composed[0] == expected
    assert composed[1].choices.attention == "builtin"
    assert composed[1].seed == 5
    assert composed[1].optimizer.lr == 0.0123


def test_train_says_where_sweep_belongs(capsys: pytest.CaptureFixture[str]):
    from mha_lab import cli

    for word in ("sweep=optuna", "+sweep=optuna", "sweep.n_trials=3"):
        assert cli.run(["train", "+experiment=sort", word]) == 2
        assert "python -m mha_lab sweep" in capsys.readouterr().err
