"""What a sweep found: trials in order of merit, ``sweep.csv``, and the table in the terminal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.run_trial import trial_folder
from mha_lab.sweeping.settings import MAXIMIZE
from mha_lab.sweeping.slots import REASON
from mha_lab.sweeping.worker import METRICS, SECONDS, STEPS
from mha_lab.terminal import show_table
from mha_lab.training.run_folder import write_rows

CSV = "sweep.csv"
MOST_ROWS = 40


@dataclass(frozen=True)
class Result:
    """One trial, as the tables show it."""

    trial: FrozenTrial
    objectives: dict[str, float]
    is_best: bool = False

    @property
    def state(self) -> str:
        """``complete``, ``pruned``, ``failed``, ``running`` or ``waiting``."""
        return {TrialState.FAIL: "failed"}.get(self.trial.state, self.trial.state.name.lower())

    @property
    def is_complete(self) -> bool:
        """Whether it ran to its end."""
        return self.trial.state == TrialState.COMPLETE

    def attribute(self, name: str, default: Any = "") -> Any:
        """What the worker noted of the trial."""
        return self.trial.user_attrs.get(name, default)


def rank(plan: Plan, trials: list[FrozenTrial]) -> list[Result]:
    """Trials by the first objective, best first; those that reached no value come last.

    Ties are settled by the next objectives, then by fewer steps, then by fewer parameters; among
    trials that never solved the task, where the time to solve it is asked, by accuracy first.
    A pruned trial stands where the best value that it reached puts it, but only a complete one can
    be *best*: with several objectives, each that no other beats in all of them (the Pareto front).
    """
    results = [_result(plan, trial) for trial in trials]
    valued = sorted((r for r in results if r.objectives), key=lambda r: _order(plan, r))
    complete = [result for result in valued if result.is_complete]
    winners = {result.trial.number for result in _best(plan, complete)}
    ranked = [replace(r, is_best=r.trial.number in winners) for r in valued]
    return ranked + [result for result in results if not result.objectives]


def best(results: Sequence[Result]) -> Result | None:
    """The first of the best trials; None where no trial was completed."""
    return next((result for result in results if result.is_best), None)


def write_csv(plan: Plan, results: list[Result]) -> None:
    """Write ``sweep.csv``: a row a trial, best first."""
    rows = []
    for result in results:
        trial = result.trial
        rows.append(
            {
                "trial": trial.number,
                "state": result.state,
                "best": result.is_best,
                **trial.params,
                **{f"objective/{name}": value for name, value in result.objectives.items()},
                "steps": result.attribute(STEPS),
                "seconds": result.attribute(SECONDS),
                **{k: v for k, v in result.attribute(METRICS, {}).items() if k != "steps"},
                "reason": result.attribute(REASON),
                "folder": trial_folder(plan, trial.number).relative_to(plan.folder).as_posix(),
            }
        )
    write_rows(plan.folder / CSV, rows)


def show(plan: Plan, results: list[Result]) -> None:
    """Print the table: words to the left, numbers to the right."""
    objectives = plan.settings.objectives
    words = [key for key in plan.space if _holds_words(key, results)]
    numbers = [key for key in plan.space if key not in words]
    rows = [
        (
            f"{result.trial.number}{' ★' if result.is_best else ''}",
            result.state,
            *(number(result.trial.params.get(key)) for key in (*words, *numbers)),
            *(reached(name, result.objectives.get(name)) for name in objectives),
            number(result.attribute(STEPS, None)),
            seconds(result.attribute(SECONDS, None)),
        )
        for result in results[:MOST_ROWS]
    ]
    reached_names = [name.replace("_", " ") for name in objectives]
    columns = ("trial", "state", *words, *numbers, *reached_names, "steps", "seconds")
    numeric = len(numbers) + len(objectives) + 2
    title = f"sweep {plan.name}"
    show_table(columns, rows, title=title, numeric=numeric, spare=("seconds", "steps"))
    if any(result.trial.state == TrialState.PRUNED for result in results[:MOST_ROWS]):
        print("of a pruned trial, the best that it reached before it was stopped")
    if len(results) > MOST_ROWS:
        print(f"{len(results) - MOST_ROWS} more in {plan.folder / CSV}")


def _holds_words(key: str, results: Sequence[Result]) -> bool:
    values = (result.trial.params.get(key) for result in results)
    return any(isinstance(value, str | bool) for value in values)


def number(value: Any) -> str:
    """A value, short."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "" if value is None else str(value)


def reached(name: str, value: float | None) -> str:
    """The value of an objective; accuracies with four digits, as everywhere."""
    if value == math.inf:
        return "unsolved"
    return f"{value:.4f}" if value is not None and name.endswith("accuracy") else number(value)


def seconds(value: float | None) -> str:
    """A time, to a tenth."""
    return "" if value is None else f"{value:.1f}"


def _result(plan: Plan, trial: FrozenTrial) -> Result:
    """A trial with its objectives: told by a complete one, read off the metrics of a pruned one."""
    names = plan.settings.objectives
    if trial.state == TrialState.COMPLETE:
        return Result(trial, dict(zip(names, trial.values, strict=True)))
    best = trial.user_attrs.get(METRICS, {}) if trial.state == TrialState.PRUNED else {}
    is_known = all(not math.isnan(best.get(name, math.nan)) for name in names)
    return Result(trial, {name: best[name] for name in names} if is_known else {})


def _costs(plan: Plan, result: Result) -> tuple[float, ...]:
    """The objectives, lower better."""
    pairs = zip(result.objectives.values(), plan.settings.directions, strict=True)
    return tuple(-value if direction == MAXIMIZE else value for value, direction in pairs)


def _order(plan: Plan, result: Result) -> tuple[float, ...]:
    """What decides the place of a trial, the weightiest first."""
    # A pruned trial's few steps are no merit: at the same value, a complete one stands before it.
    is_pruned = result.trial.state == TrialState.PRUNED
    metrics, costs = result.attribute(METRICS, {}), _costs(plan, result)
    # Of trials that never solved the task none was quicker: the more accurate is the better one.
    accuracy = metrics.get("val/sequence_accuracy", 0.0) if math.inf in costs else 0.0
    cost = (result.attribute(STEPS, 0), metrics.get("parameters", 0), result.trial.number)
    return (*costs, is_pruned, -accuracy, *cost)


def _best(plan: Plan, complete: list[Result]) -> list[Result]:
    """Of trials in order, the first; of several objectives, all of the Pareto front."""
    if len(plan.settings.objectives) == 1:
        return complete[:1]
    costs = [_costs(plan, result) for result in complete]
    pairs = zip(complete, costs, strict=True)
    return [r for r, cost in pairs if not any(_beats(other, cost) for other in costs)]


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
