"""One run from config to summary: build, fit, test the best checkpoint, write what was found.

``train(cfg)`` is what the command line, the sweeps and the tests all call.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from lightning_fabric.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig
from pytorch_lightning.callbacks import Timer
from rich.progress import Progress

from mha_lab import config
from mha_lab.build import Parts, build_parts
from mha_lab.callbacks.run_progress import RunProgress
from mha_lab.errors import MachineError, UserError, as_machine_error
from mha_lab.run.beginning import begin
from mha_lab.run.opening import COMPILED_ON_CPU, describe, opening_lines
from mha_lab.run.trainer import (
    build_callbacks,
    build_loggers,
    build_trainer,
    log_hyperparameters,
    quieten,
)
from mha_lab.terminal import setting, tell
from mha_lab.training import run_folder
from mha_lab.training.checkpoint_files import (
    NAMES,
    checkpoint_path,
    load_checkpoint,
)
from mha_lab.training.checkpoints import Checkpoints
from mha_lab.training.stopping import Stopped, Stopping


def train(
    cfg: DictConfig,
    *,
    resume: bool = False,
    callbacks: Sequence[pl.Callback] = (),
    hparams: bool = True,
    among: Progress | None = None,
    says_what: bool = True,
) -> dict[str, Any]:
    """Train as configured and test the best checkpoint.

    Args:
        cfg: a composed config; ``cfg.run_dir`` is the run's folder.
        resume: go on from the folder's newest checkpoint, or begin again where it has none yet.
        callbacks: further ones, after the configured.
        hparams: fill TensorBoard's HPARAMS tab; a sweep does that itself, for all its runs.
        among: bars of which this run's becomes one.
        says_what: print what is trained, and where, before the first step.

    Returns:
        The summary that is also written as ``summary.json``: ``status`` (``solved``,
        ``finished`` or ``interrupted``), the options chosen, ``seed``, ``steps``,
        ``wall_seconds`` of this call, ``train_seconds`` of the whole run, ``parameters`` and the
        ``test/...`` metrics.

    Raises:
        UserError: something asked for cannot be done; nothing is written then.
        MachineError: the machine cannot do it; the last checkpoint is kept.
        TrainingDiverged: the validation loss is no longer a number.
        Stopped: a signal came before anything was written.
    """
    started = time.perf_counter()
    quieten()
    folder = Path(cfg.run_dir)
    with Stopping() as stopping, _machine_errors(folder):
        parts = build_parts(cfg)
        loggers = build_loggers(cfg)
        configured = build_callbacks(cfg, with_attention=parts.module.model.uses_attention)
        for bar in configured:
            if isinstance(bar, RunProgress):
                bar.among = among
        # Its time is in the checkpoints: a resumed run counts what went before.
        timer = Timer(duration=cfg.trainer.get("max_time"))
        trainer = build_trainer(cfg, logger=loggers, callbacks=[*configured, timer, *callbacks])

        def has_begun() -> bool:
            return resume or stopping.is_training or trainer.global_step > 0

        is_first = trainer.is_global_zero
        with (
            run_folder.claimed(folder) if is_first else nullcontext(),
            run_folder.undone_unless(has_begun, folder) if is_first else nullcontext(),
        ):
            summary = describe(cfg, parts)
            ckpt_path = begin(cfg, parts, trainer, resume=resume)
            try:
                _listen(trainer, parts, stopping)
                if trainer.is_global_zero and cfg.trainer.enable_progress_bar:
                    if says_what:
                        print(opening_lines(summary, trainer, folder), flush=True)
                    if cfg.compile and trainer.strategy.root_device.type == "cpu":
                        tell(COMPILED_ON_CPU)
                _fit(trainer, parts, ckpt_path, stopping)
                summary |= {"status": _status(trainer), **_test(trainer, parts, folder)}
            except (Stopped, SystemExit, OSError) as error:
                if stopping.signum is None or not _is_stop(error):
                    raise
                summary |= {"status": "interrupted", "exit_code": 128 + stopping.signum}
            summary["steps"] = trainer.global_step
            summary["train_seconds"] = round(timer.time_elapsed("train"), 3)
            summary["wall_seconds"] = round(time.perf_counter() - started, 3)
            if trainer.is_global_zero:
                if hparams:
                    # A signal may have fallen into the closing of the event file; Lightning turns
                    # some of the errors that follow into a ValueError.
                    is_stopped = "exit_code" in summary
                    with suppress(OSError, ValueError) if is_stopped else nullcontext():
                        log_hyperparameters(loggers, cfg, summary)
                run_folder.write_summary(folder, summary)
    return summary


def _is_stop(error: BaseException | None) -> bool:
    """Whether a signal stopped the run, or what went wrong did so while it was being stopped."""
    while error is not None:
        if isinstance(error, (Stopped, SystemExit)):  # Lightning makes the second of the first
            return True
        error = error.__context__
    return False


def _listen(trainer: pl.Trainer, parts: Parts, stopping: Stopping) -> None:
    """Let a signal stop the training between two steps."""
    for callback in trainer.checkpoint_callbacks:
        if isinstance(callback, Checkpoints):
            callback.stopping = stopping
            parts.data.between_steps = partial(callback.between_steps, trainer)


def _fit(trainer: pl.Trainer, parts: Parts, ckpt_path: Path | None, stopping: Stopping) -> None:
    try:
        trainer.fit(parts.module, datamodule=parts.data, ckpt_path=ckpt_path, weights_only=True)
    except MisconfigurationException as error:
        raise UserError(f"trainer: {config.first_line(error)}") from error
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        if ckpt_path is None or stopping.is_training or as_machine_error(error) is not None:
            raise  # it is not the checkpoint's fault
        raise UserError(
            f"{str(ckpt_path)!r} is no checkpoint that a run can go on from "
            f"({type(error).__name__}: {config.first_line(error)})"
        ) from error


def _status(trainer: pl.Trainer) -> str:
    is_solved = any(getattr(callback, "solved", False) for callback in trainer.callbacks)  # type: ignore[attr-defined]
    return "solved" if is_solved else "finished"


def _test(trainer: pl.Trainer, parts: Parts, folder: Path) -> dict[str, float]:
    """Test the best weights on the held-out test set, also by length.

    A run without checkpoints tests its last weights.
    """
    # A run that was resumed when it had no step left to do counts as one that has just ended.
    epochs = trainer.fit_loop.epoch_progress.current
    epochs.completed = epochs.ready
    trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step
    best = checkpoint_path(folder, "best")
    if best.exists():
        parts.module.load_state_dict(load_checkpoint(best)["state_dict"])
    metrics = trainer.test(parts.module, datamodule=parts.data, verbose=False, weights_only=True)[0]
    rows = parts.module.accuracy_by_length()
    if trainer.is_global_zero:
        run_folder.write_rows(folder / run_folder.LENGTHS, rows)
    return {key: float(value) for key, value in metrics.items()}


@contextmanager
def _machine_errors(folder: Path) -> Iterator[None]:
    """Tell what the machine could not do, and how to go on when it can again."""
    told = threading.excepthook
    # TensorBoard writes in a thread; what goes wrong there is raised again where one logs.
    threading.excepthook = lambda args: (
        None if args.exc_value and as_machine_error(args.exc_value) else told(args)
    )
    try:
        yield
    except Exception as error:
        known = as_machine_error(error)
        if known is None:
            raise
        has_begun = any(checkpoint_path(folder, name).exists() for name in NAMES)
        kept = (
            f"; its last checkpoint is kept: go on with {setting('resume', folder)}"
            if has_begun
            else ""
        )
        raise MachineError(f"the run could not go on: {known}{kept}") from error
    finally:
        threading.excepthook = told
