"""One trial: its runs, one a seed, and what came of them."""

import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
import torch
from optuna.trial import TrialState

from mha_lab import config
from mha_lab.errors import MachineError, UserError
from mha_lab.sweeping.observer import Observer
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.settings import DIRECTIONS
from mha_lab.sweeping.space import Space, override
from mha_lab.training.module import TrainingDiverged
from mha_lab.training.run_folder import write_summary

Train = Callable[..., dict[str, Any]]


@dataclass
class Outcome:
    """What came of a trial.

    Args:
        state: complete, pruned or failed.
        reason: why it was pruned or failed.
        metrics: means over the seeds.
        steps: training steps of all its runs together.
        seconds: it took.
    """

    state: TrialState = TrialState.COMPLETE
    reason: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0


def run_trial(plan: Plan, space: Space, trial: optuna.Trial, train: Train) -> Outcome:
    """Choose the trial's values and train with them, once a seed.

    The pruner decides on the first seed; a trial that survives it runs the others too.

    Args:
        plan: the sweep.
        space: what varies.
        trial: a running trial.
        train: ``mha_lab.run.train``, or a stand-in for it.

    Returns:
        The outcome. What a run raises is in it, except KeyboardInterrupt.
    """
    started = time.perf_counter()
    params = {key: parameter.suggest(trial) for key, parameter in space.items()}
    words = [*plan.overrides, *(override(key, value) for key, value in params.items())]
    outcome, found = Outcome(), []
    try:
        for index, folder in enumerate(run_folders(plan, trial.number)):
            observer = _observer(plan, trial if index == 0 else None)
            try:
                found.append(_run(words, index, folder, observer, train))
            finally:
                outcome.steps += observer.steps
        outcome.metrics = {key: statistics.fmean(each[key] for each in found) for key in found[0]}
        _require_numbers([outcome.metrics[name] for name in plan.settings.objectives])
    except optuna.TrialPruned as pruned:
        outcome.state, outcome.reason, outcome.metrics = (
            TrialState.PRUNED,
            str(pruned),
            observer.best,
        )
    except Exception as error:
        outcome.state, outcome.reason = TrialState.FAIL, explain(error)
    _clean_up()
    outcome.seconds = round(time.perf_counter() - started, 3)
    return outcome


def trial_folder(plan: Plan, number: int) -> Path:
    """The folder of a trial."""
    return plan.folder / "trials" / f"{number:03d}"


def run_folders(plan: Plan, number: int) -> list[Path]:
    """The folders of a trial's runs: the trial's own, or one a seed in it."""
    folder, seeds = trial_folder(plan, number), plan.settings.seeds
    return [folder] if seeds == 1 else [folder / f"seed_{index}" for index in range(seeds)]


def explain(error: BaseException) -> str:
    """Why a run failed, in one sentence."""
    text = config.first_line(error)
    if isinstance(error, UserError | MachineError | TrainingDiverged):
        return text
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in text:
        return f"out of memory: {text}"
    return f"{type(error).__name__}: {text}"


def _run(
    words: Sequence[str], index: int, folder: Path, observer: Observer, train: Train
) -> dict[str, float]:
    """One run, as ``train`` makes it from the same words, but without its progress bar."""
    try:
        cfg = config.compose(words, run_dir=folder)
        if index:
            cfg = config.compose([*words, f"seed={cfg.seed + index}"], run_dir=folder)
        cfg.trainer.enable_progress_bar = False
        cfg.callbacks.pop("progress_bar", None)
        summary = train(cfg, callbacks=[observer], hparams=False)
    except SystemExit as error:  # how Lightning ends after Ctrl-C
        raise KeyboardInterrupt from error
    except Exception as error:
        is_pruned = isinstance(error, optuna.TrialPruned)
        folder.mkdir(parents=True, exist_ok=True)
        write_summary(
            folder,
            {
                "status": "pruned" if is_pruned else "failed",
                "reason": str(error) if is_pruned else explain(error),
                "steps": observer.steps,
                "overrides": list(words),
            },
        )
        raise
    if summary["status"] == "interrupted":
        raise KeyboardInterrupt
    is_solved = summary["status"] == "solved"
    numbers = {k: float(v) for k, v in summary.items() if isinstance(v, int | float)}
    return {
        **numbers,
        **observer.best,
        "steps_to_solve": float(summary["steps"]) if is_solved else math.inf,
        "seconds_to_solve": summary["train_seconds"] if is_solved else math.inf,
    }


def _observer(plan: Plan, trial: optuna.Trial | None) -> Observer:
    """Ask the pruner only where there is one; it assumes the direction of the objective."""
    settings = plan.settings
    same = settings.directions[0] == DIRECTIONS[settings.prune_by]
    asked = None if settings.pruner == "none" else trial
    return Observer(asked, settings.prune_by, sign=1 if same else -1)


def _require_numbers(values: Sequence[float]) -> None:
    if any(math.isnan(value) for value in values):
        raise TrainingDiverged("an objective is not a number")


def _clean_up() -> None:
    """Leave nothing of a trial to the next one."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()  # compiled code is kept by source line, and few versions of it
