"""The progress of a sweep: one line a finished trial, and a bar with counts and time left."""

import statistics
import threading
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.results import Result, best, number, rank, reached, seconds
from mha_lab.sweeping.slots import REASON, Slots
from mha_lab.sweeping.storage import FAULTS
from mha_lab.sweeping.worker import SECONDS, STEPS
from mha_lab.terminal import clock, wrapped

SECONDS_BETWEEN_LOOKS = 1.0


class Display:
    """Shows what the storage holds, so trials of other processes and machines too.

    Args:
        plan: the sweep.
        slots: the trials.
        console: where to print.
    """

    def __init__(self, plan: Plan, slots: Slots, console: Console) -> None:
        self.plan = plan
        self.slots = slots
        self.console = console
        self.told: set[int] = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:.0f}/{task.total:.0f}{task.fields[text]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(plan.name, total=slots.size, text="")

    def __enter__(self) -> Self:
        earlier = [t for t in self.slots.trials() if t.state.is_finished()]
        self.told |= {trial.number for trial in earlier}
        if earlier:
            self.console.print(f"{self.plan.name}: {len(earlier)} trials are finished already")
        self._progress.start()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        self._progress.stop()

    def _watch(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._done.wait(SECONDS_BETWEEN_LOOKS)
            try:
                self._update(self.slots.trials())
            except FAULTS:
                continue  # the worker will tell, if the storage stays away

    def _update(self, trials: list[FrozenTrial]) -> None:
        results = rank(self.plan, trials)
        finished = [r for r in results if r.trial.state.is_finished()]
        for result in sorted(finished, key=lambda result: result.trial.number):
            if result.trial.number not in self.told:
                self.told.add(result.trial.number)
                text = wrapped(line(self.plan, result), self.console.file, indent=19)
                self.console.print(text, highlight=False, soft_wrap=True)
        text = status(self.plan, results, self.slots.size)
        self._progress.update(self._task, completed=len(finished), text=text)


def line(plan: Plan, result: Result) -> str:
    """A finished trial in one line."""
    found = [f"{name} {reached(name, value)}" for name, value in result.objectives.items()]
    names = _short_names(result.trial.params)
    values = [f"{names[key]}={number(value)}" for key, value in result.trial.params.items()]
    cost = f"{result.attribute(STEPS, 0)} steps, {seconds(result.attribute(SECONDS, 0.0))} s"
    parts = (cost, *found, result.attribute(REASON), " ".join(values))
    return f"trial {result.trial.number:>3} {result.state:<8} " + "  ".join(p for p in parts if p)


def _short_names(keys: Iterable[str]) -> dict[str, str]:
    """Each key's last word, where no other key ends in it: the table below has them whole."""
    last = {key: key.rpartition(".")[2] for key in keys}
    counts = Counter(last.values())
    return {key: word if counts[word] == 1 else key for key, word in last.items()}


def status(plan: Plan, results: list[Result], size: int) -> str:
    """The text beside the bar."""
    counts = Counter(result.state for result in results)
    parts = [
        f" · {counts[s]} {s}" for s in ("complete", "running", "pruned", "failed") if counts[s]
    ]
    winner = best(results)
    if winner is not None:
        values = " ".join(reached(name, value) for name, value in winner.objectives.items())
        parts.append(f" · best {values} (trial {winner.trial.number})")
    left = seconds_left(results, size)
    if left is not None:
        parts.append(f" · {clock(left)} left")
    return "".join(parts)


def seconds_left(results: list[Result], size: int) -> float | None:
    """An estimate from the mean time of the trials so far; None before there is one."""
    finished = [r.trial for r in results if r.trial.state.is_finished() and r.trial.duration]
    running = sum(result.trial.state == TrialState.RUNNING for result in results)
    unfinished = size - sum(result.trial.state.is_finished() for result in results)
    if not finished or not unfinished:
        return None
    mean = statistics.fmean(t.duration.total_seconds() for t in finished if t.duration)
    return mean * unfinished / max(1, running)
