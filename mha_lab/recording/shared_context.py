"""A context that many may be in at once, and leave in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import RLock


class SharedContext:
    """Entered for the first who joins, left after the last one who leaves.

    Args:
        make: Makes the context.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        self._make = make
        self._lock = RLock()
        self._inside = 0
        self._stack = ExitStack()

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Be inside for a while."""
        with self._lock:
            if self._inside == 0:
                self._stack.enter_context(self._make())
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._stack.close()
