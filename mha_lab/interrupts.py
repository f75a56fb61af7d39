"""Ctrl-C that is not lost."""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

SECONDS_UNTIL_AGAIN = 0.1


_noted: list[int] = []


def were_interrupted() -> bool:
    """Whether an interrupt came, whatever was made of it."""
    return bool(_noted)


def _note(signum: int, frame: FrameType | None) -> None:
    _noted.append(signum)
    signal.default_int_handler(signum, frame)


def keep_interrupts() -> None:
    """Note an interrupt, and send one again that Python has ignored.

    Python ignores what is raised while an object is deleted (``__del__``), a KeyboardInterrupt too:
    a sweep that collects garbage when Ctrl-C comes would go on for all its trials. And a library
    that Ctrl-C meets while it is imported may raise an error of its own instead.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note)
    others = sys.unraisablehook

    def again_if_interrupt(ignored: Any) -> None:
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            others(ignored)
            return
        # Later, and not from here: what this function raises would be ignored as well.
        timer = threading.Timer(SECONDS_UNTIL_AGAIN, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = again_if_interrupt
