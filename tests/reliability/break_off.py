"""A small run, and callbacks that break it off at a chosen moment."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytorch_lightning as pl

SMALL = (
    "task=copy", "model.embed_dim=6", "model.num_heads=2", "model.dropout=0.2",
    "data.batch_size=3", "data.validation_size=5", "data.test_size=7", "trainer=cpu",
    "trainer.max_steps=13", "trainer.val_check_interval=5", "trainer.log_every_n_steps=1",
    "trainer.enable_progress_bar=false", "task.max_length=5",
)  # fmt: skip


def small(*words: str) -> list[str]:
    """The words of a small run, with others in place of those that set the same."""
    given = {word.partition("=")[0] for word in words}
    return [*(word for word in SMALL if word.partition("=")[0] not in given), *words]


class At(pl.Callback):
    """Does something once, at a hook of a step.

    Args:
        hook: the name of a hook of Lightning's callbacks.
        step: the trainer's ``global_step`` then.
        act: what to do.
    """

    def __init__(self, hook: str, step: int, act: Callable[[], Any]) -> None:
        self.done = False

        def once(trainer: pl.Trainer, *_: Any, **__: Any) -> None:
            if not self.done and trainer.global_step == step:
                self.done = True
                act()

        setattr(self, hook, once)


def signal_at(hook: str, step: int, signum: int = signal.SIGTERM) -> At:
    """A signal that arrives then."""
    return At(hook, step, lambda: signal.raise_signal(signum))


def copy_at(hook: str, step: int, run: Path, copy: Path) -> At:
    """Copies the run's folder: what is on the disk then is what kill -9 would leave."""
    return At(hook, step, lambda: shutil.copytree(run, copy))
