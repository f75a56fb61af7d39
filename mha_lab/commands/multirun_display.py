"""The terminal of a multirun: a bar of runs above that of the run; elsewhere a line a run."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Override
from rich.console import Console
from rich.progress import TaskID

from mha_lab.callbacks.run_progress import bars
from mha_lab.config.words import parse_words
from mha_lab.terminal import relative, wrapped


class MultirunDisplay:
    """Shows how far a multirun is.

    Args:
        total: how many runs there are; None where their launcher alone knows.
        varying: the keys that differ between the runs.
        is_here: whether this process makes the runs; a launcher may start others for them, whose
            lines are then all there is.
    """

    def __init__(
        self, total: int | None = None, varying: Sequence[str] = (), *, is_here: bool = True
    ) -> None:
        self.varying = tuple(varying)
        self.console = Console()
        self.bars = bars(self.console) if is_here and self.console.is_terminal else None
        self._total = total
        self._counts: dict[str, int] = {}
        self._task: TaskID | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Meanwhile, the bar stands at the end of the terminal; other output passes above it."""
        if self.bars is None:
            yield
            return
        self._task = self.bars.add_task("runs", total=self._total, text="")
        with self.bars:
            yield

    def begins(self, overrides: Sequence[str]) -> None:
        """Say which run is under way."""
        if self.bars is not None and self._task is not None:
            differs = [word for word in overrides if word.partition("=")[0] in self.varying]
            self._update(0, f" · {' '.join(differs)}" if differs else "")

    def ends(self, folder: Path, summary: dict[str, Any]) -> None:
        """Count a run that has ended; a line tells of it where there is no bar."""
        status = summary.get("status", "failed")
        self._counts[status] = self._counts.get(status, 0) + 1
        if self.bars is not None and self._task is not None:
            self._update(1, "")
        elif status != "failed":
            print(line(folder, summary), flush=True)

    def _update(self, done: int, now: str) -> None:
        assert self.bars is not None
        assert self._task is not None
        counts = "".join(f" · {number} {status}" for status, number in self._counts.items())
        self.bars.update(self._task, advance=done, text=counts + now, refresh=True)


def opening(words: Sequence[str], folder: Path) -> str:
    """The lines that begin a multirun: how many runs, of what, and where they are kept."""
    items = parse_words([word for word in words if not word.lstrip("+~").startswith("hydra")])
    number = count_runs(items)
    shared = [item.input_line or "" for item in items if not item.is_sweep_override()]
    varied = [item.input_line or "" for item in items if item.is_sweep_override()]
    parts = ["many runs" if number is None else f"{number} {'run' if number == 1 else 'runs'}"]
    parts += [" ".join(some) for some in (varied, shared) if some]
    return f"{wrapped(' · '.join(parts), sys.stdout)}\n{relative(folder)}"


def line(folder: Path, summary: dict[str, Any]) -> str:
    """A run that has ended, in one line."""
    parts = [f"{folder.name}: {summary['status']}", f"{summary['steps']:,} steps"]
    if "test/sequence_accuracy" in summary:
        parts.append(f"accuracy {summary['test/sequence_accuracy']:.4f}")
    return " · ".join([*parts, f"{summary['wall_seconds']:.1f} s"])


def count_runs(items: Sequence[Override]) -> int | None:
    """How many runs a command line asks for; None where a sweeper decides."""
    sizes = [_size(item) for item in items if item.is_sweep_override()]
    if any(item.key_or_group == "hydra/sweeper" for item in items) or None in sizes:
        return None
    return reduce(lambda a, b: a * (b or 1), sizes, 1)


def _size(item: Override) -> int | None:
    try:
        return sum(1 for _ in item.sweep_iterator())
    except Exception:  # an interval, which a sweeper draws from
        return None
