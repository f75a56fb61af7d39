"""What a sweep found: trials in order of merit, ``sweep.csv``, and the table in the terminal."""

from dataclasses import dataclass
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

    def attribute(self, name: str, default: Any = "") -> Any:
        """What the worker noted of the trial."""
        return self.trial.user_attrs.get(name, default)


def rank(plan: Plan, trials: list[FrozenTrial]) -> list[Result]:
    """Complete trials, best first, then the others.

    With several objectives the first one decides the order, and *best* are all trials that no
    other beats in every objective (the Pareto front).
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    complete.sort(key=lambda trial: (_costs(plan, trial), trial.number))
    others = [trial for trial in trials if trial.state != TrialState.COMPLETE]
    costs = [_costs(plan, trial) for trial in complete]
    results = []
    for trial, cost in zip(complete, costs, strict=True):
        named = dict(zip(plan.settings.objectives, trial.values, strict=True))
        results.append(Result(trial, named, not any(_beats(other, cost) for other in costs)))
    return results + [Result(trial, {}) for trial in others]


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
    """Print the table."""
    objectives = plan.settings.objectives
    rows = [
        (
            f"{result.trial.number}{' ★' if result.is_best else ''}",
            *(number(result.trial.params.get(key)) for key in plan.space),
            *(number(result.objectives.get(name)) for name in objectives),
            number(result.attribute(STEPS, None)),
            number(result.attribute(SECONDS, None)),
            result.state,
        )
        for result in results[:MOST_ROWS]
    ]
    columns = ("trial", *plan.space, *objectives, "steps", "seconds", "state")
    show_table(columns, rows, title=f"sweep {plan.name}")
    if len(results) > MOST_ROWS:
        print(f"{len(results) - MOST_ROWS} more in {plan.folder / CSV}")


def number(value: Any) -> str:
    """A value, short."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "" if value is None else str(value)


def _costs(plan: Plan, trial: FrozenTrial) -> tuple[float, ...]:
    """The objectives, lower better."""
    directions = plan.settings.directions
    return tuple(-v if d == MAXIMIZE else v for v, d in zip(trial.values, directions, strict=True))


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
