"""The bar of a run: where it is, what it has reached, and, at the end, that it solved its task."""

from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

from mha_lab.ranges import Size
from mha_lab.terminal import clock

_WIDE, _NARROW = 100, 60  # columns of a terminal
_SHOWN = (
    ("val/sequence_accuracy", "accuracy {:.4f}"),
    ("train/loss", "loss {:.2g}"),
    ("val/loss", "val {:.2g}"),
)


def bars(console: Console, *, transient: bool = False) -> Progress:
    """Bars, each with its name, how far it is, what was reached, and the time that is left.

    Args:
        console: where they are shown.
        transient: leave nothing of them at their end.
    """
    drawn = [BarColumn(bar_width=20 if console.width >= _WIDE else 8)]
    return Progress(
        TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=8)),
        *(drawn if console.width >= _NARROW else ()),
        Reached(table_column=Column(no_wrap=True, overflow="ellipsis")),
        Left(),
        console=console,
        transient=transient,
    )


class Reached(ProgressColumn):
    """``450/1,500`` and what a task's ``text`` says."""

    def render(self, task: Task) -> Text:
        """The text of one bar."""
        of = f"/{task.total:,.0f}" if task.total is not None else ""
        return Text(f"{task.completed:,.0f}{of}{task.fields.get('text', '')}")


class Left(ProgressColumn):
    """``0:12 left``; nothing before that can be told, nor at the end."""

    max_refresh = 0.5  # seconds, or the last digit would flicker

    def render(self, task: Task) -> Text:
        """The text of one bar."""
        if task.finished or task.stop_time is not None or task.time_remaining is None:
            return Text("")
        return Text(f"{clock(task.time_remaining)} left", style="progress.remaining")


class RunProgress(pl.callbacks.ProgressBar):
    """A bar of training steps; nothing where the output is no terminal.

    A run that stops early because its task is solved ends with a full bar that says so: the steps
    that are left are not missing.

    Args:
        refresh_rate: Steps between two looks at the metrics. The terminal is written to at most
            ten times a second.
    """

    def __init__(self, refresh_rate: Size = 50) -> None:
        super().__init__()
        if refresh_rate < 1:
            raise ValueError(f"refresh_rate must be at least 1, got {refresh_rate}")
        self.refresh_rate = refresh_rate
        self._is_enabled = True
        self.among: Progress | None = None  # bars of others, of which this one is a line
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def disable(self) -> None:
        """Show nothing: Lightning asks all processes but the first."""
        self._is_enabled = False

    def enable(self) -> None:
        """Show the bar again."""
        self._is_enabled = True

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin, at the step where a resumed run goes on."""
        # Training without end has no share that is done; the bar runs to and fro.
        total = trainer.max_steps if trainer.max_steps > 0 else None
        self._start("training", total, trainer.global_step)

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Look at the metrics now and then."""
        if self._bar is not None and trainer.global_step % self.refresh_rate == 0:
            self._update(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show what the validation found."""
        if self._bar is not None and not trainer.sanity_checking:
            self._update(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """End the bar as the run ended."""
        if self._bar is None:
            return
        self._update(trainer)
        if any(getattr(callback, "solved", False) for callback in trainer.callbacks):  # type: ignore[attr-defined]
            step = trainer.global_step
            self._bar.update(self._task, description="[green]solved  ", total=step, completed=step)
        self._stop()

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show that there is something left to do, and how much."""
        self._start("testing ", sum(map(int, trainer.num_test_batches)), transient=True)

    def on_test_batch_end(self, *_: Any) -> None:
        """Count."""
        if self._bar is not None:
            self._bar.advance(self._task)

    def on_test_end(self, *_: Any) -> None:
        """Leave nothing of it: the summary follows."""
        self._stop()

    def on_exception(self, trainer: pl.Trainer, *_: Any) -> None:
        """End the bar where the run ended, and leave the terminal as it was."""
        if self._bar is not None:
            self._bar.update(self._task, description="[yellow]stopped ")
            if trainer.training:
                self._update(trainer)
            self._bar.stop_task(self._task)
        self._stop()

    def teardown(self, *_: Any, **__: Any) -> None:
        """Leave the terminal as it was, whatever ended the run."""
        self._stop()

    def _start(
        self, name: str, total: int | None, completed: int = 0, *, transient: bool = False
    ) -> None:
        console = Console()
        if not self._is_enabled or not (self.among or console.is_terminal):
            return
        self._bar = self.among or bars(console, transient=transient)
        self._task = self._bar.add_task(name, total=total, completed=completed)
        if self.among is None:
            self._bar.start()

    def _update(self, trainer: pl.Trainer) -> None:
        assert self._bar is not None
        metrics = trainer.callback_metrics
        parts = [text.format(float(metrics[key])) for key, text in _SHOWN if key in metrics]
        text = "".join(f" · {part}" for part in parts)
        self._bar.update(self._task, completed=trainer.global_step, text=text)

    def _stop(self) -> None:
        if self._bar is not None and self.among is None:
            self._bar.stop()
        elif self._bar is not None:
            self._bar.remove_task(self._task)
        self._bar = None
