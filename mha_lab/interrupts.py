"""Ctrl-C that is not lost."""

import os
import signal
import sys
import threading
from typing import Any

SECONDS_UNTIL_AGAIN = 0.1


def keep_interrupts() -> None:
    """Send an interrupt again that Python has ignored.

    Python ignores what is raised while an object is deleted (``__del__``), a KeyboardInterrupt too:
    a sweep that collects garbage when Ctrl-C comes would go on for all its trials.
    """
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
