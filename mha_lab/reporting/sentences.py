"""Words for a report's sentences."""

from collections.abc import Iterable, Sequence

_MOST_NAMED = 4  # more groups than these are counted, not named


def count(number: int, word: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def named(labels: Sequence[str]) -> str:
    """Labels by name, or of many their number."""
    return listed(labels) if len(labels) <= _MOST_NAMED else f"{len(labels)} groups"


def listed(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
