"""Signals that ask a run to stop: Ctrl-C, SIGTERM, SLURM's SIGUSR1, a terminal that closes.

While a run trains, a signal is noted, and the run stops between two steps, when everything that
belongs to the last one is kept (see :mod:`mha_lab.training.checkpoints`). At any other time, at a
second signal, and where no such moment comes within ``PATIENCE`` seconds, it ends at once.
"""

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

PATIENCE = 8.0  # seconds
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class Stopped(KeyboardInterrupt):
    """A signal asked the run to stop; ``exit_code`` is what a shell calls that."""

    exit_code = 128 + signal.SIGINT


class Stopping:
    """Listens for signals, as a context manager.

    Attributes:
        signum: the signal that asked to stop; None where none did.
        is_training: there will be a moment between two steps, which a signal can wait for.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.is_training = False
        self._before: dict[int, Any] = {}
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python allows it there only
            before = {one: signal.getsignal(one) for one in SIGNALS}
            # What is ignored stays so: a program under nohup shall outlive its terminal.
            self._before = {one: old for one, old in before.items() if old != signal.SIG_IGN}
            self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def listen(self) -> None:
        """Take the signals (again: Lightning's trainer takes SIGTERM for itself)."""
        for one in self._before:
            signal.signal(one, self._handle)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        is_first, self.signum = self.signum is None, self.signum or signum
        if not (is_first and self.is_training):
            stopped = Stopped()
            stopped.exit_code = 128 + self.signum
            raise stopped
        self._timer = threading.Timer(PATIENCE, os.kill, (os.getpid(), signum))
        self._timer.daemon = True
        self._timer.start()
