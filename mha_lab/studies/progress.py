"""One bar over the runs of a study, whichever process they run in; a line for each that ended."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mha_lab.studies.study import Job
from mha_lab.training.run_folder import read_summary

_SECONDS_BETWEEN_LOOKS = 1.0


class Bar:
    """Watches the runs' folders.

    Args:
        name: of the study.
        jobs: those that are not done yet.
        done: how many are.
        folder: where the runs lie.
        is_done: whether a run's folder is finished.
        console: where to print.
    """

    def __init__(
        self,
        name: str,
        jobs: Sequence[Job],
        done: int,
        folder: Path,
        is_done: Callable[[Path], bool],
        console: Console,
    ) -> None:
        self.waiting = {job.name: job for job in jobs}
        self.folder = folder
        self.is_done = is_done
        self.console = console
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(),
            TextColumn("runs"), TimeElapsedColumn(),
            console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._progress.add_task(name, total=done + len(jobs), completed=done)

    def __enter__(self) -> Self:
        self._progress.start()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._progress.stop()

    def _watch(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop.wait(_SECONDS_BETWEEN_LOOKS)
            for name in [name for name in self.waiting if self.is_done(self.folder / name)]:
                job = self.waiting.pop(name)
                self._progress.advance(self._task)
                self.console.print(_line(job, self.folder / name), highlight=False, soft_wrap=True)


def _line(job: Job, folder: Path) -> str:
    summary = read_summary(folder)
    levels = " ".join([*(f"{axis}={level}" for axis, level in job.levels.items())])
    accuracy = summary.get("test/sequence_accuracy", float("nan"))
    return (
        f"{levels} seed={job.seed}: {summary['status']} after {summary['steps']} steps, "
        f"test sequence accuracy {accuracy:.4f}, {summary['train_seconds']:.1f} s"
    )
