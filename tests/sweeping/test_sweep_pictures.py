"""What a sweep draws, and what it tells TensorBoard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import stand_in
from matplotlib.figure import Figure
from optuna.trial import FrozenTrial, TrialState, create_trial
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.hparams import metadata

from mha_lab.sweeping import hparams, plot_parallel
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.plot_curves import draw_curves, read_curve
from mha_lab.sweeping.plot_importance import draw_importance, importances
from mha_lab.sweeping.plot_parallel import draw_parallel
from mha_lab.sweeping.plot_parts import BEST, PRUNED
from mha_lab.sweeping.results import rank
from mha_lab.sweeping.run_trial import Outcome
from mha_lab.sweeping.space import read_space
from mha_lab.training.run_folder import write_rows

WORDS = ("optimizer.lr=tag(log,interval(0.001,0.1))", "model.embed_dim=8,16,32", "seed=range(0,3)")
INFINITY = float("inf")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return stand_in.plan(tmp_path, *WORDS, "sweep.objectives=val/sequence_accuracy,parameters")


def trial(plan: Plan, number: int, values: list[float] | None, **params: Any) -> FrozenTrial:
    space = read_space(plan.space)
    named = {key: params[key.split(".")[-1]] for key in space}
    made = create_trial(
        state=TrialState.COMPLETE if values else TrialState.PRUNED,
        params=named,
        distributions={key: space[key].distribution for key in named},
        values=values,
    )
    made.number = number
    return made


@pytest.fixture
def trials(plan: Plan) -> list[FrozenTrial]:
    return [
        trial(plan, 0, [0.5, 100.0], lr=0.01, embed_dim=8, seed=0),
        trial(plan, 1, [0.9, INFINITY], lr=0.1, embed_dim=32, seed=1),
        trial(plan, 2, None, lr=0.001, embed_dim=16, seed=2),
    ]


def lines(figure: Figure, color: str) -> list[np.ndarray]:
    return [line.get_xydata() for line in figure.axes[0].lines if line.get_color() == color]


def test_parallel_coordinates_lie_where_the_values_say(plan: Plan, trials: list[FrozenTrial]):
    figure = draw_parallel(plan, read_space(plan.space), rank(plan, trials))
    (best,), (pruned,) = lines(figure, BEST), lines(figure, PRUNED)
    # lr 0.1 is the top of its axis, 32 the last choice, seed 1 the middle; infinity at the top.
    np.testing.assert_allclose(best[:, 1], [1, 1, 0.5, 1, 1])
    np.testing.assert_allclose(pruned[:, 1], [0, 0.5, 1])  # as far as its values go
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"0.001", "0.01", "0.1", "8", "16", "32", "∞"} <= set(texts)


def test_learning_curves_are_those_of_metrics_csv(plan: Plan, trials: list[FrozenTrial]):
    for one in trials:
        folder = plan.folder / "trials" / f"{one.number:03d}"
        folder.mkdir(parents=True)
        write_rows(
            folder / "metrics.csv",
            [
                {"step": 9, "train/loss": 3.0},
                {"step": 19, "train/loss": 2.0, "val/token_accuracy": 0.25},
                {"step": 39, "val/token_accuracy": 0.5 + one.number},
            ],
        )
    figure = draw_curves(plan, rank(plan, trials))
    (best,) = lines(figure, BEST)
    assert best.tolist() == [[20, 0.25], [40, 1.5]]
    assert [40, 2.5] in [points[-1].tolist() for points in lines(figure, PRUNED)]
    assert read_curve(plan.folder / "nowhere.csv", "val/token_accuracy") == ([], [])


def test_one_trial_of_one_validation_is_a_point_and_needs_no_scale_of_colors(plan: Plan):
    alone = [trial(plan, 0, [0.5, 100.0], lr=0.01, embed_dim=8, seed=0)]
    folder = plan.folder / "trials" / "000"
    folder.mkdir(parents=True)
    write_rows(folder / "metrics.csv", [{"step": 49, "val/token_accuracy": 0.5}])
    [axes] = draw_curves(plan, rank(plan, alone)).axes
    [curve] = axes.lines
    assert curve.get_marker() == "o"
    assert curve.get_xydata().tolist() == [[50, 0.5]]


def test_importance_finds_what_matters_in_either_direction(plan: Plan):
    study = optuna.create_study(directions=["maximize", "minimize"])
    generator = np.random.default_rng(0)
    for number in range(60):
        lr, seed = 10 ** generator.uniform(-3, -1), int(generator.integers(3))
        values = [-abs(np.log10(lr) + 2), float(seed) + 0.01 * generator.uniform()]
        study.add_trial(trial(plan, number, values, lr=lr, embed_dim=8, seed=seed))
    higher = importances(study, 0, is_higher_better=True)
    lower = importances(study, 1, is_higher_better=False)
    assert max(higher, key=higher.__getitem__) == "optimizer.lr"
    assert max(lower, key=lower.__getitem__) == "seed"
    assert sum(higher.values()) == pytest.approx(1)
    figure = draw_importance(plan, read_space(plan.space), study)
    assert len(figure.axes) == 2


def test_importance_is_silent_where_nothing_differs(plan: Plan):
    study = optuna.create_study(directions=["maximize", "minimize"])
    for number in range(9):
        study.add_trial(trial(plan, number, [1.0, INFINITY], lr=0.01, embed_dim=8, seed=0))
    assert importances(study, 0, is_higher_better=True) == {}
    assert importances(study, 1, is_higher_better=False) == {}
    figure = draw_importance(plan, read_space(plan.space), study)
    assert "too few" in figure.axes[0].texts[0].get_text()


def read_events(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("events.out.tfevents.*.sweep")
    values = {}
    for event in EventFileLoader(str(file)).Load():
        for value in event.summary.value:
            values[value.tag] = value
    return values


def content(parse: Callable[[bytes], Any], value: Any) -> Any:
    return parse(value.metadata.plugin_data.content)


def test_the_hparams_tab_knows_space_and_objectives(plan: Plan):
    hparams.write_experiment(plan, read_space(plan.space))
    hparams.write_experiment(plan, read_space(plan.space))  # a second worker adds nothing
    values = read_events(plan.folder)
    experiment = content(metadata.parse_experiment_plugin_data, values[metadata.EXPERIMENT_TAG])
    lr, width, seed = experiment.hparam_infos
    assert (lr.name, lr.domain_interval.min_value, lr.domain_interval.max_value) == (
        "optimizer.lr", 0.001, 0.1,
    )  # fmt: skip
    assert [value.number_value for value in width.domain_discrete.values] == [8, 16, 32]
    assert (seed.domain_interval.min_value, seed.domain_interval.max_value) == (0, 2)
    names = [metric.name.tag for metric in experiment.metric_infos]
    assert names == ["trial/val/sequence_accuracy", "trial/parameters", "trial/steps"]


def test_each_trial_is_a_session(plan: Plan):
    outcome = Outcome(metrics={"val/sequence_accuracy": 0.75, "parameters": INFINITY}, steps=40)
    params = {"optimizer.lr": 0.01, "model.embed_dim": 16, "seed": 1}
    hparams.write_session(plan, read_space(plan.space), 7, params, outcome)
    values = read_events(plan.folder / "trials" / "007")
    start = content(
        metadata.parse_session_start_info_plugin_data, values[metadata.SESSION_START_INFO_TAG]
    )
    assert start.group_name == "trial 7"
    assert {key: value.number_value for key, value in start.hparams.items()} == params
    end = content(
        metadata.parse_session_end_info_plugin_data, values[metadata.SESSION_END_INFO_TAG]
    )
    assert end.status == 1  # success
    assert values["trial/val/sequence_accuracy"].tensor.float_val[0] == 0.75
    assert values["trial/steps"].tensor.float_val[0] == 40
    assert "trial/parameters" not in values  # infinity has no place on an axis


def test_choices_of_several_kinds_are_one_kind_in_the_tab(tmp_path: Path):
    plan = stand_in.plan(tmp_path, "optimizer.lr=1,0.5", "trainer.precision=32,bf16-mixed")
    hparams.write_experiment(plan, read_space(plan.space))
    experiment = content(
        metadata.parse_experiment_plugin_data, read_events(plan.folder)[metadata.EXPERIMENT_TAG]
    )
    precision, lr = sorted(experiment.hparam_infos, key=lambda info: info.name, reverse=True)
    assert [value.string_value for value in precision.domain_discrete.values] == [
        "32",
        "bf16-mixed",
    ]
    assert [value.number_value for value in lr.domain_discrete.values] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("marks", "texts"),
    [
        ([0.0, 0.25, 0.5], ["0", "0.25", "0.5"]),
        ([2.6, 2.675, 2.75, 2.825, 2.9], ["2.6", "2.67", "2.75", "2.83", "2.9"]),
    ],
)
def test_marks_of_an_axis_are_told_apart(marks: list[float], texts: list[str]):
    assert plot_parallel._told_apart(marks) == texts
