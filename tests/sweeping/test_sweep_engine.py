"""Whole sweeps with a stand-in for training: what is run, told, kept and written."""

import csv
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
import stand_in
from omegaconf import DictConfig

from mha_lab import config
from mha_lab.errors import UserError
from mha_lab.sweeping import sweep as engine
from mha_lab.sweeping.observer import Observer
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.sweep import sweep
from mha_lab.training.module import TrainingDiverged
from mha_lab.training.run_folder import read_summary


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep.csv").open() as stream:
        return list(csv.DictReader(stream))


class Runs:
    """Counts the runs, and lets chosen ones fail."""

    def __init__(self, **failures: BaseException) -> None:
        self.configs: list[DictConfig] = []
        self.failures = {int(key.removeprefix("run")): value for key, value in failures.items()}

    def __call__(self, cfg: DictConfig, **kwargs: Any) -> dict[str, Any]:
        self.configs.append(cfg)
        if len(self.configs) - 1 in self.failures:
            raise self.failures[len(self.configs) - 1]
        return stand_in.train(cfg, **kwargs)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sweep"


def grid(folder: Path, *words: str) -> Plan:
    return stand_in.plan(folder, "sweep.sampler=grid", *words)


@pytest.fixture(autouse=True)
def _instant_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Composing a config takes longer than the stand-in."""
    instant = SimpleNamespace(compose=stand_in.compose, first_line=config.first_line)
    monkeypatch.setattr("mha_lab.sweeping.run_trial.config", instant)
    monkeypatch.setattr("mha_lab.sweeping.sweep.config", instant)


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer than all else here; one test draws them."""
    if "pictures" not in request.node.name:
        monkeypatch.setattr(engine, "_draw", lambda *_: None)


def test_a_sweep_ends_with_table_csv_recipe_and_pictures(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert sweep(grid(folder), train=stand_in.train) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[-1] == str(folder)
    assert f"train --config-dir {folder} --config-name best" in told
    assert "trial 1 of sweep" in told  # lr 0.01
    found = rows(folder)
    assert [row["trial"] for row in found] == ["1", "0", "2"]  # by merit, then in order
    assert [float(row["objective/val/sequence_accuracy"]) for row in found] == [1.0, 0.75, 0.75]
    assert found[0]["best"] == "True"
    for name in ("parallel_coordinates", "parameter_importance", "learning_curves"):
        assert (folder / f"{name}.png").stat().st_size > 5000
    assert {run.name for run in (folder / "trials").iterdir()} == {"000", "001", "002"}
    assert not list((folder / "workers").iterdir())


def test_a_grid_is_run_whole_and_each_combination_once(folder: Path):
    runs = Runs()
    sweep(grid(folder, "seed=0,1", "sweep.n_trials=null"), train=runs)
    assert len({(cfg.optimizer.lr, cfg.seed) for cfg in runs.configs}) == len(runs.configs) == 6


def test_failures_are_recorded_and_end_nothing(folder: Path):
    runs = Runs(
        run0=TrainingDiverged("the training diverged: val/loss is nan"),
        run1=MemoryError("no room"),
    )
    assert sweep(grid(folder), train=runs) == 0
    reasons = {row["trial"]: row["reason"] for row in rows(folder)}
    assert reasons["0"] == "the training diverged: val/loss is nan"
    assert reasons["1"] == "out of memory: no room"
    assert reasons["2"] == ""
    kept = read_summary(folder / "trials" / "000")
    assert (kept["status"], kept["reason"]) == ("failed", reasons["0"])


def test_a_bad_combination_is_a_failed_trial(folder: Path):
    from mha_lab.run import train

    plan = grid(folder, "model.num_heads=3,5", "optimizer.lr=0.01")  # embed_dim 64
    assert sweep(plan, train=train) == 1
    assert all("divisible" in row["reason"] for row in rows(folder))
    assert all(row["state"] == "failed" for row in rows(folder))


def test_an_objective_that_is_no_number_is_a_failure(folder: Path):
    def train(cfg: DictConfig, **kwargs: Any) -> dict[str, Any]:
        return stand_in.train(cfg, **kwargs) | {"test/sequence_accuracy": math.nan}

    plan = grid(folder, "sweep.objectives=test/sequence_accuracy")
    assert sweep(plan, train=train) == 1
    assert rows(folder)[0]["reason"] == "an objective is not a number"


def test_where_all_are_pruned_the_last_line_says_so_and_none_is_best(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    def train(cfg: DictConfig, **kwargs: Any) -> dict[str, Any]:
        raise optuna.TrialPruned("at step 10, val/token_accuracy 0.2")

    plan = stand_in.plan(folder, "sweep.pruner=median", "optimizer.lr=choice(0.001,0.01,0.1)")
    assert sweep(plan, train=train) == 1
    said = capsys.readouterr().out.splitlines()[-2]
    assert said == "no trial was completed (3 pruned); trial 0: at step 10, val/token_accuracy 0.2"
    assert [row["best"] for row in rows(folder)] == ["False"] * 3


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
@pytest.mark.parametrize("objective", ["val/sequence_accuracy", "val/loss"])
def test_of_trials_that_are_all_equal_none_is_pruned(folder: Path, pruner: str, objective: str):
    plan = stand_in.plan(
        folder, f"sweep.pruner={pruner}", f"sweep.objectives=[{objective}]", "sweep.sampler=grid",
        "optimizer.lr=0.1", "seed=0,1,2,3,4,5,6,7", "sweep.n_trials=null",
        "trainer.max_steps=30", "trainer.val_check_interval=10",
    )  # fmt: skip

    def train(cfg: DictConfig, **kwargs: Any) -> dict[str, Any]:
        cfg.seed = 0
        return stand_in.train(cfg, **kwargs)

    assert sweep(plan, train=train) == 0
    assert [row["state"] for row in rows(folder)] == ["complete"] * 8


def test_several_sweeps_share_a_storage(folder: Path):
    words = (f"sweep.storage=sqlite:///{folder.parent / 'all.db'}",)
    one = stand_in.plan(folder / "a", *words, "sweep.name=a")
    other = stand_in.plan(folder / "b", *words, "sweep.name=b", "sweep.objectives=[val/loss]")
    for plan in (one, other, one):  # the first one again: its trials are there, and no other's
        assert sweep(plan, train=stand_in.train) == 0
    assert {run.name for run in (folder / "a" / "trials").iterdir()} == {"000", "001", "002"}
    assert next(row["optimizer.lr"] for row in rows(folder / "b")) == "0.01"
    asks_else = stand_in.plan(folder / "c", *words, "sweep.name=b")
    with pytest.raises(UserError, match="holds another sweep"):
        sweep(asks_else, train=stand_in.train)


@pytest.mark.parametrize("how", [KeyboardInterrupt(), SystemExit(1)], ids=["python", "lightning"])
def test_interrupted_it_goes_on_and_repeats_nothing(folder: Path, how: BaseException):
    runs = Runs(run1=how)
    with pytest.raises(KeyboardInterrupt):
        sweep(grid(folder), train=runs)
    assert sweep(grid(folder), train=runs) == 0
    rates = [cfg.optimizer.lr for cfg in runs.configs]
    assert rates == [0.001, 0.01, 0.01, 0.1]  # the interrupted one again, nothing else
    assert sorted(float(row["optimizer.lr"]) for row in rows(folder)) == [0.001, 0.01, 0.1]
    folders = {run.name for run in (folder / "trials").iterdir()}
    assert folders == {Path(row["folder"]).name for row in rows(folder)}


def test_interrupted_or_not_the_search_is_the_same(tmp_path: Path):
    words = ("optimizer.lr=tag(log,interval(0.0001,1))", "sweep.n_trials=12")
    whole, parts = Runs(), Runs(run11=KeyboardInterrupt())
    sweep(stand_in.plan(tmp_path / "whole", *words), train=whole)
    with pytest.raises(KeyboardInterrupt):
        sweep(stand_in.plan(tmp_path / "parts", *words), train=parts)
    sweep(stand_in.plan(tmp_path / "parts", *words), train=parts)
    del parts.configs[11]
    rates = [[cfg.optimizer.lr for cfg in runs.configs] for runs in (whole, parts)]
    assert rates[0] == rates[1]
    assert len(set(rates[0])) == 12


def test_a_finished_sweep_is_only_told_again_and_more_trials_can_be_asked_for(folder: Path):
    runs = Runs()
    random = ("sweep.sampler=random", "optimizer.lr=interval(0.001,0.1)")
    sweep(stand_in.plan(folder, *random), train=runs)
    sweep(stand_in.plan(folder, *random), train=runs)
    assert len(runs.configs) == 3
    sweep(stand_in.plan(folder, *random, "sweep.n_trials=5"), train=runs)
    assert len(runs.configs) == 5
    assert len({cfg.optimizer.lr for cfg in runs.configs}) == 5


def test_several_seeds_count_by_their_mean(folder: Path):
    runs = Runs()
    sweep(grid(folder, "sweep.seeds=3", "seed=5", "optimizer.lr=0.01,0.1"), train=runs)
    assert [cfg.seed for cfg in runs.configs] == [5, 6, 7] * 2
    best = rows(folder)[0]
    assert float(best["objective/val/sequence_accuracy"]) == pytest.approx(1 - 0.06)
    assert int(best["steps"]) == 90
    assert (folder / "trials" / "000" / "seed_2" / "summary.json").is_file()


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_hopeless_trials_are_pruned(folder: Path, pruner: str):
    plan = stand_in.plan(
        folder,
        f"sweep.pruner={pruner}",
        "sweep.sampler=random",
        "sweep.n_trials=12",
        "sweep.seeds=2",
        "trainer.max_steps=30",
        "trainer.val_check_interval=10",
        "optimizer.lr=tag(log,interval(0.0001,1))",
    )
    sweep(plan, train=stand_in.train)
    pruned = [row for row in rows(folder) if row["state"] == "pruned"]
    assert 2 <= len(pruned) <= 10
    assert all(int(row["steps"]) < 30 for row in pruned)  # at its end a run is complete
    assert read_summary(folder / pruned[0]["folder"] / "seed_0")["status"] == "pruned"


def test_a_metric_that_is_better_lower_can_guide_an_accuracy(folder: Path):
    plan = stand_in.plan(
        folder, "sweep.pruner=median", "sweep.prune_by=val/loss", "sweep.sampler=random",
        "sweep.n_trials=12", "optimizer.lr=tag(log,interval(0.0001,1))",
    )  # fmt: skip
    sweep(plan, train=stand_in.train)
    found = rows(folder)
    complete = [float(r["val/sequence_accuracy"]) for r in found if r["state"] == "complete"]
    pruned = [
        abs(math.log10(float(r["optimizer.lr"])) + 2) for r in found if r["state"] == "pruned"
    ]
    assert max(complete) > 0.8
    assert min(pruned) > abs(max(complete) - 1) * 4  # none of them would have been the best


def test_two_objectives_yield_a_pareto_front(folder: Path):
    def train(cfg: DictConfig, **kwargs: Any) -> dict[str, Any]:
        # Accuracy rises with the learning rate, and so does the time: no trial beats another.
        summary = stand_in.train(cfg, **kwargs)
        kwargs["callbacks"][0].best["val/sequence_accuracy"] = cfg.optimizer.lr
        is_solved = cfg.optimizer.lr > 0.001
        return summary | {
            "train_seconds": 100 * cfg.optimizer.lr,
            "status": "solved" if is_solved else "finished",
        }

    plan = grid(
        folder, "+experiment=sort", "sweep.objectives=[val/sequence_accuracy,seconds_to_solve]"
    )
    assert sweep(plan, train=train) == 0
    found = rows(folder)
    assert [row["optimizer.lr"] for row in found] == ["0.1", "0.01", "0.001"]
    assert [row["best"] for row in found] == ["True", "True", "False"]  # never solved: infinity
    assert found[2]["objective/seconds_to_solve"] == "inf"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model.embed_dmi=2,3"], "did you mean 'model.embed_dim'"),
        (["attention=custom,bulitin"], "did you mean 'builtin'"),
        (["model.embed_dim=interval(8,16)"], "write int(interval(8,16))"),
        (["attention=cutsom"], "did you mean 'custom'"),
        (["sweep.objectives=[seconds_to_solve]"], "stop when solved"),
        (["trainer=ddp"], "one process"),
        (["sweep.sampler=grid", "optimizer.lr=interval(0.1,1)"], "continuous"),
        (["optimizer.lr=interval(0,1)"], "optimizer.lr must be a number above 0"),
        (["model.embed_dim=16,abc"], "model.embed_dim must be a whole number"),
        (["optimizer.lr=0.01"], "the search space is empty"),
        (["sweep.storage=sqlite:////nowhere/at/all.db"], "cannot reach"),
        (["sweep.storage=postgresql://me:secret@127.0.0.1:9/x"], "cannot reach"),
        (["sweep.storage=redis://x"], "is not a storage"),
        (["sweep.storage=file.db"], "is not a storage"),
    ],
)
def test_what_cannot_be_is_said_before_the_first_trial(folder: Path, words: list[str], said: str):
    with pytest.raises(UserError) as caught:
        sweep(stand_in.plan(folder, *words), train=stand_in.train)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not (folder / "trials").exists()


def test_a_run_past_half_of_its_steps_is_not_pruned():
    """Less is saved by pruning it then than is lost."""

    class Hopeless:
        def report(self, value: float, step: int) -> None: ...

        def should_prune(self) -> bool:
            return True

    def validate(step: int) -> None:
        trainer = SimpleNamespace(
            sanity_checking=False,
            state=SimpleNamespace(fn="fit"),
            callback_metrics={"val/loss": 1.0, "val/token_accuracy": 0.1},
            global_step=step,
            max_steps=30,
            should_stop=False,
        )
        Observer(Hopeless(), "val/token_accuracy").on_validation_end(trainer, None)

    with pytest.raises(optuna.TrialPruned, match="at step 15"):
        validate(15)
    validate(16)
    validate(30)
