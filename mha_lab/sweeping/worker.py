"""The loop of a worker: claim a trial, run it, tell the storage."""

import gc
import shutil
import time
from dataclasses import asdict

import optuna
from omegaconf import DictConfig
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from mha_lab.sweeping.hparams import write_session
from mha_lab.sweeping.liveness import Worker
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.run_trial import Outcome, Train, run_trial, trial_folder
from mha_lab.sweeping.slots import INTERRUPTED, LOST, REASON, SLOT, Slots
from mha_lab.sweeping.space import Space, grid_point
from mha_lab.sweeping.storage import open_storage
from mha_lab.sweeping.study import open_study, sampler

METRICS, STEPS, SECONDS = "metrics", "steps", "seconds"
SECONDS_BETWEEN_LOOKS = 0.5


def join(plan: Plan, base: DictConfig, size: int) -> Slots:
    """Make the plan's study of so many trials, or join it."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = open_storage(plan.settings.storage, plan.folder)
    return Slots(open_study(plan, base, storage), storage, size)


def work(plan: Plan, space: Space, slots: Slots, *, train: Train | None = None) -> None:
    """Run trials until every one is finished, here or elsewhere.

    Args:
        plan: the sweep.
        space: what varies.
        slots: the trials.
        train: a stand-in for ``mha_lab.run.train``.
    """
    if train is None:
        from mha_lab.run import train as train_fully

        train = train_fully
    gc.freeze()  # what is imported stays: not to be searched for garbage after each trial
    worker = Worker(slots.storage, plan.folder / "workers", lease=plan.settings.lease)
    is_grid = plan.settings.sampler == "grid"
    with worker.present():
        while not slots.are_finished():
            slots.release_lost(worker)
            slots.fill(lambda slot: grid_point(space, slot) if is_grid else {})
            trial = slots.claim()
            if trial is None:
                time.sleep(SECONDS_BETWEEN_LOOKS)
                continue
            with worker.beating(trial._trial_id):
                _attempt(plan, space, slots, trial, train)


def _attempt(plan: Plan, space: Space, slots: Slots, claimed: FrozenTrial, train: Train) -> None:
    slot = claimed.user_attrs[SLOT]
    _remove_lost_runs(plan, slots, slot)
    brackets = getattr(slots.study.pruner, "brackets", 1)
    slots.study.sampler = sampler(plan.settings, slot, brackets)
    try:
        trial = optuna.Trial(slots.study, claimed._trial_id)
        outcome = run_trial(plan, space, trial, train)
        write_session(plan, space, trial.number, trial.params, outcome)
        _tell(plan, slots.study, trial, outcome)
    except UpdateFinishedTrialError:
        pass  # it was taken for lost, and another worker has it now
    except KeyboardInterrupt:
        slots.give_up(claimed, INTERRUPTED)
        raise


def _tell(plan: Plan, study: optuna.Study, trial: optuna.Trial, outcome: Outcome) -> None:
    for key in (REASON, METRICS, STEPS, SECONDS):
        trial.set_user_attr(key, asdict(outcome)[key])
    is_complete = outcome.state == TrialState.COMPLETE
    values = [outcome.metrics[name] for name in plan.settings.objectives] if is_complete else None
    study.tell(trial, values, outcome.state)


def _remove_lost_runs(plan: Plan, slots: Slots, slot: int) -> None:
    """What an attempt left behind whose process died is of no use, and no run."""
    for trial in slots.study.get_trials(deepcopy=False):
        if trial.user_attrs.get(SLOT) == slot and LOST in trial.user_attrs:
            shutil.rmtree(trial_folder(plan, trial.number), ignore_errors=True)
