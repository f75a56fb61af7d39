"""What the values of a run's files can be: anything else was put there by hand, or by chance."""

import math
import sys
from typing import Any, TypeGuard

CHOICES = ("task", "attention", "model", "position", "experiment")
"""What a summary states as it took effect (a recurrent model has attention "none")."""

_COUNTS = ("steps", "parameters")
_SECONDS = ("train_seconds", "wall_seconds")


class UnreadableError(Exception):
    """A file of a run is damaged; the text names it and says how."""


def check_summary(file: str, summary: dict[str, Any]) -> None:
    """See that each value is of its kind; keys that we do not know may hold anything.

    Raises:
        UnreadableError: one is not, and the run would count with it.
    """
    _check(file, "status", summary["status"], "a word", isinstance(summary["status"], str))
    for key, value in summary.items():
        if key in _COUNTS:
            is_count = is_number(value) and value >= 0 and value % 1 == 0
            _check(file, key, value, "a whole number", is_count)
        elif key in _SECONDS:
            is_time = is_number(value) and 0 <= value < math.inf
            _check(file, key, value, "a number of seconds", is_time)
        elif key.startswith("test/"):
            check_metric(file, key, value)
    check_choices(file, summary)


def check_metric(file: str, key: str, value: Any) -> None:
    """See that a metric is a number, and an accuracy a share; a loss may be infinite.

    Raises:
        UnreadableError: it is not.
    """
    _check(file, key, value, "a number", is_number(value))
    if "accuracy" in key:
        _check(file, key, value, "a number from 0 to 1", 0 <= value <= 1 or math.isnan(value))


def check_choices(file: str, choices: dict[str, Any]) -> None:
    """See that choices are words, or null where nothing was chosen.

    Raises:
        UnreadableError: one is not.
    """
    for key in CHOICES:
        value = choices.get(key)
        _check(file, key, value, "the name of an option", value is None or isinstance(value, str))


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is one that a float can hold; truth values are none, though Python's are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) <= sys.float_info.max


def _check(file: str, key: str, value: Any, kind: str, is_right: bool) -> None:
    if not is_right:
        raise UnreadableError(f"{file} is damaged: {key} is {value!r}, not {kind}")
