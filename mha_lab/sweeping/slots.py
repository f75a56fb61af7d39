"""Which process runs which trial: slots, and claims on them.

A sweep of n trials has the slots 0 to n-1. Each attempt at a slot is an Optuna trial that carries
the slot's number. The first attempt that was not lost is *in force*; all others are ignored. That
rule decides alone, from what the storage holds, so no process needs a lock: two that create an
attempt at the same slot at once agree on which one counts, and Optuna's storages let exactly one
process turn a waiting trial into a running one.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from mha_lab.sweeping.liveness import Worker

SLOT, LOST, REASON = "slot", "lost", "reason"
DIED, INTERRUPTED = "died", "interrupted"

MOST_DEATHS = 3
"""A trial whose process died so often (for want of memory, say) counts as failed."""


class Slots:
    """The trials of a study.

    Args:
        study: may hold attempts already, finished, running or lost.
        storage: of the study.
        size: how many trials are wanted.
    """

    def __init__(self, study: optuna.Study, storage: BaseStorage, size: int) -> None:
        self.study = study
        self.storage = storage
        self.size = size

    def trials(self) -> list[FrozenTrial]:
        """The attempts in force, by slot."""
        found: dict[int, FrozenTrial] = {}
        deaths: Counter[int] = Counter()
        for trial in self.study.get_trials(deepcopy=False):  # by number
            slot = trial.user_attrs.get(SLOT, self.size)
            if slot >= self.size or slot in found:
                continue
            if LOST in trial.user_attrs:
                deaths[slot] += trial.user_attrs[LOST] == DIED
                if deaths[slot] < MOST_DEATHS:
                    continue
            found[slot] = trial
        return [found[slot] for slot in sorted(found)]

    def are_finished(self) -> bool:
        """Whether nothing is left to do or to wait for."""
        trials = self.trials()
        return len(trials) == self.size and all(trial.state.is_finished() for trial in trials)

    def fill(self, point: Callable[[int], Mapping[str, Any]]) -> None:
        """Give every slot an attempt.

        Args:
            point: the values that a slot prescribes; those missing are left to the sampler.
        """
        taken = {trial.user_attrs[SLOT] for trial in self.trials()}
        for slot in range(self.size):
            if slot not in taken:
                self.study.enqueue_trial(dict(point(slot)), user_attrs={SLOT: slot})

    def claim(self) -> FrozenTrial | None:
        """Take the first waiting trial; None where none is waiting."""
        for trial in self.trials():
            if trial.state == TrialState.WAITING and self._is_ours(trial):
                return trial
        return None

    def _is_ours(self, trial: FrozenTrial) -> bool:
        try:
            return self.storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING)
        except UpdateFinishedTrialError:
            return False

    def release_lost(self, worker: Worker) -> None:
        """Free the slots of trials whose process died."""
        for trial in self.trials():
            if trial.state == TrialState.RUNNING and worker.has_lost(trial):
                self.give_up(trial, DIED)

    def give_up(self, trial: FrozenTrial, why: str) -> None:
        """Mark a running trial as lost, ``died`` or ``interrupted``; its slot becomes free."""
        try:
            self.storage.set_trial_user_attr(trial._trial_id, REASON, f"its process {why}")
            self.storage.set_trial_user_attr(trial._trial_id, LOST, why)
            self.storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        except UpdateFinishedTrialError:
            pass  # it finished after all, or another process was first
