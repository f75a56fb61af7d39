"""How workers know of each other whether they live.

Optuna's own heartbeat exists only for databases and only inside ``Study.optimize``. Here every
worker renews a *beat* among its running trial's attributes, which works with every storage.
Whoever sees no new beat for the length of a lease, by its own clock, takes the worker for dead; so
the clocks of machines need not agree. On the same machine nobody waits for that: a worker holds a
lock file, and the system lets go of it when the worker dies, however that happened.
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

from mha_lab.sweeping.storage import FAULTS

WORKER, BEAT = "worker", "beat"
BEATS_A_LEASE = 6


class Worker:
    """One process that runs trials.

    Args:
        storage: of the study.
        folder: where the lock files of all workers lie.
        lease: seconds without a beat after which a worker counts as dead.
    """

    def __init__(self, storage: BaseStorage, folder: Path, *, lease: float) -> None:
        self.storage = storage
        self.folder = folder
        self.lease = lease
        self.name = f"{_machine()}{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._seen: dict[int, tuple[object, float]] = {}  # trial: its last beat, when it was new

    @contextmanager
    def present(self) -> Iterator[None]:
        """Hold this worker's lock file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._lock_file(self.name)
        try:
            with FileLock(file):
                yield
        finally:
            file.unlink(missing_ok=True)

    @contextmanager
    def beating(self, trial_id: int) -> Iterator[None]:
        """Renew a running trial's beat in the background."""
        done = threading.Event()
        self.storage.set_trial_user_attr(trial_id, WORKER, self.name)

        def beat() -> None:
            count = 0
            while not done.wait(self.lease / BEATS_A_LEASE):
                count += 1
                try:
                    self.storage.set_trial_user_attr(trial_id, BEAT, count)
                except UpdateFinishedTrialError:
                    return
                except FAULTS:
                    continue  # a storage that is away for a moment: the lease outlasts that

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def has_lost(self, trial: FrozenTrial) -> bool:
        """Whether the worker that runs a trial is dead, as far as this one can tell."""
        owner = trial.user_attrs.get(WORKER)
        if owner == self.name:
            return False
        if owner is not None and self._let_go(owner):
            return True
        beat, now = trial.user_attrs.get(BEAT), time.monotonic()
        seen = self._seen.get(trial._trial_id)
        if seen is None or seen[0] != beat:
            self._seen[trial._trial_id] = (beat, now)
            return False
        return now - seen[1] > self.lease

    def _let_go(self, name: str) -> bool:
        """Whether a worker of this machine no longer holds its lock file."""
        file = self._lock_file(name)
        if not name.startswith(_machine()) or not file.exists():
            return False
        try:
            with FileLock(file, timeout=0):
                return True
        except Timeout:
            return False

    def _lock_file(self, name: str) -> Path:
        return self.folder / f"{name}.lock"


def _machine() -> str:
    return f"{socket.gethostname()}-"
