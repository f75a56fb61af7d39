"""From the words of the command line to a plan."""

from pathlib import Path

import pytest

from mha_lab.errors import UserError
from mha_lab.sweeping.plan import Plan, read_plan
from mha_lab.sweeping.settings import Settings

LR = "tag(log, interval(3e-4, 3e-2))"


def test_words_are_sorted_into_settings_space_and_fixed():
    plan = read_plan(
        ["+experiment=sort", "seed=7", "sweep.n_trials=11", "task.max_length=5,7", "sweep=grid"]
    )
    assert plan.overrides == ["+experiment=sort", "seed=7"]
    assert plan.space["task.max_length"] == "5,7"
    assert "model.embed_dim" in plan.space  # from configs/sweep/grid.yaml
    assert (plan.settings.sampler, plan.settings.n_trials) == ("grid", 11)
    assert (plan.name, plan.folder) == ("sort", Path("outputs/sweeps/sort"))


def test_the_command_line_wins_over_the_file():
    words = ["optimizer.lr=0.01", "model.embed_dim=8,16", "sweep.space.model.num_heads=null"]
    for given in (words, [*words, "sweep.space.optimizer.lr=null"]):
        plan = read_plan(given)
        assert plan.space == {"model.embed_dim": "8,16"}
        assert plan.overrides == ["optimizer.lr=0.01"]


@pytest.mark.parametrize(
    "word",
    [
        'sweep.space.optimizer.lr="tag(log,interval(1e-4,1e-2))"',
        "sweep.space.optimizer.lr=tag(log,interval(1e-4,1e-2))",
        "optimizer.lr=tag(log,interval(1e-4,1e-2))",
    ],
)
def test_three_ways_to_vary_a_key(word: str):
    assert read_plan([word]).space["optimizer.lr"] == "tag(log,interval(1e-4,1e-2))"


def test_a_prefix_stays_with_its_key():
    plan = read_plan(["+experiment=copy,sort"])
    assert plan.space["+experiment"] == "copy,sort"


def test_objectives_can_be_listed_with_commas():
    plan = read_plan(["sweep.objectives=val/sequence_accuracy,steps_to_solve", "sweep.pruner=none"])
    assert plan.settings.objectives == ["val/sequence_accuracy", "steps_to_solve"]
    assert plan.settings.directions == ["maximize", "minimize"]


def test_a_file_of_ones_own(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text("space: {seed: 'range(0, 3)', model: {embed_dim: 'choice(2, 3)'}}\nn_trials: 5")
    plan = read_plan([f"sweep={file}", "task=copy"])
    assert plan.space == {"seed": "range(0, 3)", "model.embed_dim": "choice(2, 3)"}
    assert (plan.settings.n_trials, plan.name) == (5, "copy")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sweep=optnua"], "did you mean 'optuna'"),
        (
            ["sweep.sampler=tpee"],
            "one of tpe, random, grid, got 'tpee'; did you mean 'tpe'",
        ),
        (["sweep.pruner=hyperbnd"], "did you mean 'hyperband'"),
        (["sweep.n_trails=5"], "did you mean 'n_trials'"),
        (["sweep.n_trials=few"], "sweep.n_trials"),
        (["sweep.n_trials=0"], "sweep.n_trials must be a whole number of at least 1"),
        (["sweep.n_jobs=-1"], "sweep.n_jobs must be a whole number of at least 1"),
        (["sweep.sampler_seed=-1"], "sampler_seed"),
        (["sweep.objectives=[val/acuracy]"], "got ['val/acuracy']"),
        (["sweep.objectives=[]"], "must name each objective once"),
        (["sweep.objectives=[val/loss,val/loss]"], "must name each objective once"),
        (["sweep.objectives=[val/loss,parameters]"], "add sweep.pruner=none"),
        (["sweep.prune_by=test/loss"], "got 'test/loss'"),
        (["optimizer.lr=1,2", "optimizer.lr=3"], "optimizer.lr is given twice"),
        (["sweep.space.seed=1,2", "seed=3"], "seed is given twice"),
        (["sweep.space={}"], "sweep.space.KEY=null takes it out"),
        (["sweep=optuna", "sweep=grid"], "sweep is given twice"),
        (["sweep.name=../../x"], "without slashes"),
        (["sweep.name=.x"], "no dot first"),
        (["sweep.name=''"], "not empty"),
        (["sweep.lease=nan"], "sweep.lease must be a number of at least 1"),
        (["sweep.seeds=true"], "sweep.seeds must be a whole number"),
        (["hydra.run.dir=x"], "say sweep.folder"),
        (["-m"], "knows no option '-m'"),
        (["seed=[1"], "seed=[1"),
        (["sweep=nowhere.yaml"], "cannot read 'nowhere.yaml'"),
    ],
)
def test_a_mistake_is_explained_in_one_sentence(words: list[str], said: str):
    with pytest.raises(UserError) as caught:
        read_plan(words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["n_trails: 3", "n_trials: [1", "n_trials: few"])
def test_an_unreadable_file_is_named(tmp_path: Path, content: str):
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(UserError, match=r"cannot read '.*mine.yaml'"):
        read_plan([f"sweep={file}"])


def test_how_many_and_where_does_not_change_the_question():
    def plan(**changes: object) -> Plan:
        return Plan(Settings(**changes), [], {"seed": "1,2"}, "a", Path("b"))

    assert plan(n_trials=3, n_jobs=2, lease=5.0, storage="x").question == plan().question
    assert plan(seeds=2).question != plan().question
    assert plan(objectives=["val/loss"]).question != plan().question
