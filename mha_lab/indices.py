"""Which of several: how many, from the first, or a list of indices; checked, and told by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Which = int | Sequence[int] | None
"""How many, from the first, or which ones; None means all."""


class NotThereError(ValueError):
    """There are not so many that one of the chosen ones is among them."""


def check_count(argument: str, value: Any) -> None:
    """Refuse what is not a whole number of at least 1."""
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{argument}={value!r} must be an int, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{argument}={value} must be at least 1")


def check_indices(argument: str, value: Any) -> None:
    """Refuse what is neither None, nor a count, nor a list of different indices."""
    value = _plain(value)
    if value is None:
        return
    if not isinstance(value, Sequence) or isinstance(value, str):
        if isinstance(value, bool) or not isinstance(value, int):
            kind = type(value).__name__
            raise TypeError(f"{argument}={value!r} must be an int or a list of ints, not {kind}")
        check_count(argument, value)
        return
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in map(_plain, value)):
        raise TypeError(f"{argument}={value!r} must hold ints only")
    if not value or min(value) < 0 or len(set(value)) < len(value):
        raise ValueError(
            f"{argument}={value!r} must name at least one index, each once, counted from 0"
        )


def chosen_indices(argument: str, which: Which, size: int, *, of: str) -> list[int]:
    """Which of ``size`` samples or heads are meant.

    Args:
        argument: What they are called, such as "samples".
        which: All, the first so many, or those listed.
        size: How many there are.
        of: What they belong to, for the sentence that refuses.

    Raises:
        TypeError: If the choice is none.
        ValueError: If an index cannot be.
        NotThereError: If one is not there.
    """
    check_indices(argument, which)
    which = _plain(which)
    if not isinstance(which, Sequence):
        return list(range(size if which is None else min(which, size)))
    if max(which) >= size:
        there = f"{argument} 0 to {size - 1}" if size else f"no {argument}"
        raise NotThereError(f"{argument}={list(which)} are not in {of}: there are {there}")
    return [int(one) for one in which]


def _plain(value: Any) -> Any:
    """Numbers and lists of numpy and torch as Python's own."""
    return value.tolist() if hasattr(value, "tolist") else value
