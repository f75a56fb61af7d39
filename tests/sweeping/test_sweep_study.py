"""Which study and which folder a plan may use."""

from pathlib import Path

import optuna
import pytest
import stand_in

from mha_lab.errors import UserError
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.storage import JOURNAL, open_storage
from mha_lab.sweeping.study import Hyperband, open_folder, open_study, sampler


def start(plan: Plan) -> optuna.Study:
    base = stand_in.compose(plan.overrides, run_dir=Path("RUN"))
    open_folder(plan, base)
    return open_study(plan, base, open_storage(plan.settings.storage, plan.folder))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trainer.max_steps=7"], "config.trainer.max_steps: 2000 there, 7 here"),
        (["task=copy"], "config.choices.task: sort there, copy here"),
        (["optimizer.lr=choice(0.1,0.2)"], "space.optimizer.lr: choice(0.001,0.01,0.1) there"),
        (["sweep.seeds=2"], "seeds: 1 there, 2 here"),
        (["sweep.sampler=grid"], "sampler: tpe there, grid here"),
    ],
)
def test_another_sweep_is_refused_and_nothing_is_overwritten(
    tmp_path: Path, words: list[str], said: str
):
    database = f"sweep.storage=sqlite:///{tmp_path}/studies.db"
    start(stand_in.plan(tmp_path / "a", "task=sort", "sweep.name=x", database))
    content = {file: file.read_bytes() for file in (tmp_path / "a").iterdir()}
    fixed = [] if words == ["task=copy"] else ["task=sort"]
    with pytest.raises(UserError, match=r"'x' holds another sweep") as caught:
        start(stand_in.plan(tmp_path / "b", *fixed, *words, "sweep.name=x", database))
    assert said in str(caught.value)
    with pytest.raises(UserError, match=r"/a holds another sweep"):
        start(stand_in.plan(tmp_path / "a", *fixed, *words, "sweep.name=x", database))
    assert {file: file.read_bytes() for file in (tmp_path / "a").iterdir()} == content


def test_how_many_trials_and_processes_may_change(tmp_path: Path):
    start(stand_in.plan(tmp_path / "a"))
    start(stand_in.plan(tmp_path / "a", "sweep.n_trials=9", "sweep.n_jobs=2", "sweep.lease=5"))


def test_a_folder_with_other_files_is_refused(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="holds other files"):
        start(stand_in.plan(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_folder(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot use"):
        start(stand_in.plan(tmp_path / "file"))


@pytest.mark.parametrize("content", ["a: [1", "[]", "\x00\x01"])
def test_a_damaged_record_is_named(tmp_path: Path, content: str):
    (tmp_path / "sweep.yaml").write_text(content)
    with pytest.raises(UserError, match=r"sweep.yaml"):
        start(stand_in.plan(tmp_path))


def test_runs_of_a_lost_study_are_not_overwritten(tmp_path: Path):
    start(stand_in.plan(tmp_path / "a"))
    (tmp_path / "a" / "trials" / "000").mkdir(parents=True)
    (tmp_path / "a" / JOURNAL).unlink()
    with pytest.raises(UserError, match="its storage is gone"):
        start(stand_in.plan(tmp_path / "a"))


def test_a_study_of_someone_else_is_refused(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/studies.db"
    study = optuna.create_study(study_name="x", storage=url, direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("y", 0, 1), n_trials=1)
    with pytest.raises(UserError, match="was not made by mha_lab"):
        start(stand_in.plan(tmp_path / "a", "sweep.name=x", f"sweep.storage={url}"))


def test_a_half_written_entry_is_dropped_and_the_rest_is_kept(tmp_path: Path):
    plan = stand_in.plan(tmp_path / "a")
    start(plan).enqueue_trial({"optimizer.lr": 0.1})
    with (tmp_path / "a" / JOURNAL).open("ab") as journal:
        journal.write(b'{"op_code": 4, "worker')
    study = start(plan)
    study.enqueue_trial({"optimizer.lr": 0.01})
    assert len(start(plan).get_trials()) == 2


def test_a_damaged_journal_is_named(tmp_path: Path):
    plan = stand_in.plan(tmp_path / "a")
    start(plan)
    (tmp_path / "a" / JOURNAL).write_text("not a journal\n" * 3)
    with pytest.raises(UserError, match="cannot read the journal"):
        start(plan)


@pytest.mark.parametrize(("shortest", "longest"), [(100, 1000), (100, 900), (7, 7), (25, 1500)])
def test_brackets_are_counted_as_optuna_counts_them(shortest: int, longest: int):
    pruner = Hyperband(shortest, longest)
    study = optuna.create_study(pruner=pruner)
    trial = study.ask()
    trial.report(0.5, shortest)
    trial.should_prune()  # now Optuna has made its brackets
    assert len(pruner._pruners) == pruner.brackets


def test_tpe_learns_after_ten_trials_whatever_the_brackets(tmp_path: Path):
    """Optuna would draw ten by chance in each of three brackets: the whole of a short study."""
    settings = stand_in.plan(tmp_path, "task=sort").settings

    def by_chance(brackets: int) -> int:
        """How many trials of a bracket are drawn before what others found has any influence."""
        for finished in range(20):
            draws = set()
            for good in (0.0, 1.0):  # two histories with the same places, but another best one
                study = optuna.create_study(direction="maximize")
                space = {"x": optuna.distributions.FloatDistribution(0, 1)}
                for i in range(finished):
                    x = i / 20
                    value = -abs(x - good)
                    trial = optuna.trial.create_trial(
                        params={"x": x}, distributions=space, value=value
                    )
                    study.add_trial(trial)
                study.sampler = sampler(settings, 3, brackets)
                draws.add(study.ask().suggest_float("x", 0, 1))
            if len(draws) > 1:
                return finished
        return 20

    assert by_chance(1) == 10
    assert by_chance(3) == 4
