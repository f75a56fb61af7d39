"""The order of trials: what a researcher would sign."""

import math
from pathlib import Path

import optuna
import pytest
import stand_in
from optuna.trial import FrozenTrial, TrialState

from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.results import best, rank, show
from mha_lab.sweeping.worker import METRICS, STEPS

ACCURACY = "val/sequence_accuracy"


def complete(
    number: int, *values: float, steps: int = 100, parameters: float = 1000.0
) -> FrozenTrial:
    attributes = {STEPS: steps, METRICS: {"parameters": parameters}}
    trial = optuna.trial.create_trial(values=list(values), user_attrs=attributes)
    trial.number = number
    return trial


def ended(number: int, state: TrialState, **reached: float) -> FrozenTrial:
    metrics = {f"val/{name}": value for name, value in reached.items()}
    attributes = {STEPS: 50, METRICS: metrics}
    trial = optuna.trial.create_trial(state=state, user_attrs=attributes)
    trial.number = number
    return trial


def numbers(plan: Plan, trials: list[FrozenTrial]) -> list[int]:
    return [result.trial.number for result in rank(plan, trials)]


def test_ties_go_to_fewer_steps_then_to_fewer_parameters(tmp_path: Path):
    plan = stand_in.plan(tmp_path, "task=sort")
    trials = [
        complete(0, 1.0, steps=700, parameters=90_000),
        complete(1, 1.0, steps=300, parameters=90_000),
        complete(2, 1.0, steps=300, parameters=20_000),
        complete(3, 0.5, steps=10, parameters=10),
    ]
    results = rank(plan, trials)
    assert [result.trial.number for result in results] == [2, 1, 0, 3]
    assert [result.is_best for result in results] == [True, False, False, False]


def test_a_pruned_trial_stands_by_the_best_value_that_it_reached(tmp_path: Path):
    plan = stand_in.plan(tmp_path, "task=sort")
    trials = [
        complete(0, 0.39),
        ended(1, TrialState.PRUNED, sequence_accuracy=0.999, loss=0.1),
        ended(2, TrialState.PRUNED, sequence_accuracy=0.39, loss=0.1),
        ended(3, TrialState.FAIL),
    ]
    results = rank(plan, trials)
    assert [result.trial.number for result in results] == [1, 0, 2, 3]
    assert results[0].objectives == {ACCURACY: 0.999}
    winner = best(results)
    assert winner is not None
    assert winner.trial.number == 0, "only a complete trial can be best"


def test_a_pruned_trial_whose_objective_is_known_only_at_the_end_has_no_value(tmp_path: Path):
    plan = stand_in.plan(tmp_path, "task=sort", "sweep.objectives=[test/sequence_accuracy]")
    trials = [ended(0, TrialState.PRUNED, sequence_accuracy=1.0), complete(1, 0.1)]
    assert numbers(plan, trials) == [1, 0]
    assert rank(plan, trials)[1].objectives == {}


def test_the_table_says_what_a_pruned_trials_number_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    plan = stand_in.plan(tmp_path, "task=sort")
    sentence = "of a pruned trial, the best that it reached before it was stopped"
    pruned = ended(1, TrialState.PRUNED, sequence_accuracy=0.999, loss=0.1)
    for trials, is_said in (([complete(0, 0.39)], False), ([complete(0, 0.39), pruned], True)):
        show(plan, rank(plan, trials))
        assert (sentence in capsys.readouterr().out) == is_said


def test_with_several_objectives_best_is_what_no_other_beats(tmp_path: Path):
    plan = stand_in.plan(tmp_path, "task=sort", f"sweep.objectives=[{ACCURACY},seconds_to_solve]")
    trials = [complete(0, 1.0, 9.0), complete(1, 1.0, 5.0), complete(2, 0.5, 1.0)]
    results = rank(plan, trials)
    assert [result.trial.number for result in results] == [1, 0, 2]
    assert [result.is_best for result in results] == [True, False, True]


def test_without_a_complete_trial_none_is_best(tmp_path: Path):
    plan = stand_in.plan(tmp_path, "task=sort")
    assert best(rank(plan, [ended(0, TrialState.PRUNED, sequence_accuracy=0.9)])) is None


def test_a_pruned_trial_that_is_no_number_has_no_value_and_moves_no_other(tmp_path: Path):
    plan = stand_in.plan(tmp_path, "task=sort")
    trials = [
        ended(0, TrialState.PRUNED, sequence_accuracy=math.nan, loss=math.nan),
        complete(1, 0.3),
        ended(2, TrialState.PRUNED, sequence_accuracy=math.nan, loss=math.nan),
        complete(3, 0.7),
    ]
    assert numbers(plan, trials) == [3, 1, 0, 2]
    assert [result.objectives for result in rank(plan, trials)[2:]] == [{}, {}]


def unsolved(number: int, accuracy: float, parameters: float) -> FrozenTrial:
    trial = complete(number, math.inf, parameters=parameters)
    trial.user_attrs[METRICS][ACCURACY] = accuracy
    return trial


def test_among_trials_that_never_solved_the_task_accuracy_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    plan = stand_in.plan(tmp_path, "+experiment=sort", "sweep.objectives=[steps_to_solve]")
    trials = [unsolved(0, 0.2, 10), unsolved(1, 0.9, 99), complete(2, 700.0), unsolved(3, 0.9, 55)]
    assert numbers(plan, trials) == [2, 3, 1, 0]
    show(plan, rank(plan, trials))
    assert capsys.readouterr().out.count("unsolved") == 3


@pytest.mark.parametrize("objective", [ACCURACY, "val/loss"])
def test_trials_that_are_all_equal_stand_as_they_came(tmp_path: Path, objective: str):
    plan = stand_in.plan(tmp_path, "task=sort", f"sweep.objectives=[{objective}]")
    results = rank(plan, [complete(number, 0.5) for number in (2, 0, 1)])
    assert [(r.trial.number, r.is_best) for r in results] == [(0, True), (1, False), (2, False)]
