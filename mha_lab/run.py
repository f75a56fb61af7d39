"""One run from config to summary: build, fit, test the best checkpoint, write what was found.

``train(cfg)`` is what the command line, the sweeps and the tests all call.
"""

import logging
import signal
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import Timer
from pytorch_lightning.loggers import Logger, TensorBoardLogger

from mha_lab import config
from mha_lab.build import Parts, build, build_parts
from mha_lab.errors import UserError
from mha_lab.training import run_folder
from mha_lab.training.metrics_file import MetricsFile


def train(
    cfg: DictConfig,
    *,
    resume: bool = False,
    callbacks: Sequence[pl.Callback] = (),
    hparams: bool = True,
) -> dict[str, Any]:
    """Train as configured and test the best checkpoint.

    Args:
        cfg: a composed config; ``cfg.run_dir`` is the run's folder.
        resume: go on from the folder's ``last.ckpt``.
        callbacks: further ones, after the configured.
        hparams: fill TensorBoard's HPARAMS tab; a sweep does that itself, for all its runs.

    Returns:
        The summary that is also written as ``summary.json``: ``status`` (``solved``,
        ``finished`` or ``interrupted``), the options chosen, ``seed``, ``steps``,
        ``wall_seconds`` of this call, ``train_seconds`` of the whole run, ``parameters`` and the
        ``test/...`` metrics.

    Raises:
        UserError: something asked for cannot be done; nothing is written then.
        TrainingDiverged: the validation loss is no longer a number.
    """
    started = time.perf_counter()
    quieten()
    folder = Path(cfg.run_dir)
    parts = build_parts(cfg)
    checkpoint = _last_checkpoint(folder) if resume else None
    loggers = build_loggers(cfg, checkpoint["global_step"] if checkpoint else None)
    configured = build_callbacks(cfg, with_attention=parts.module.model.uses_attention)
    timer = Timer()  # its time is in the checkpoints, so a resumed run counts what went before
    trainer = build_trainer(cfg, logger=loggers, callbacks=[*configured, timer, *callbacks])
    if trainer.is_global_zero:
        folder.mkdir(parents=True, exist_ok=True)
        config.save(cfg, folder)
        parts.task.vocabulary.save(folder / run_folder.VOCABULARY)
        _log_hyperparameters(loggers, cfg)

    is_interrupted = _fit(trainer, parts, folder, resume=resume)
    summary = {
        **_description(cfg, parts),
        "status": _status(trainer, is_interrupted=is_interrupted),
        "steps": trainer.global_step,
        "train_seconds": round(timer.time_elapsed("train"), 3),
    }
    if not is_interrupted:
        summary |= _test(trainer, parts, folder)
    summary["wall_seconds"] = round(time.perf_counter() - started, 3)
    if trainer.is_global_zero:
        if hparams:
            _log_hyperparameters(loggers, cfg, summary)
        run_folder.write_summary(folder, summary)
    return summary


def build_trainer(
    cfg: DictConfig, *, logger: list[Logger] | bool, callbacks: list[pl.Callback] | None = None
) -> pl.Trainer:
    """The configured Trainer.

    Raises:
        UserError: a value that Lightning refuses, or a GPU where there is none.
    """
    if cfg.trainer.accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
        raise UserError(
            "trainer.accelerator=gpu needs a GPU, and PyTorch finds none on this machine; "
            "choose trainer=auto or trainer=cpu"
        )
    _check_limits(cfg)
    try:
        trainer: pl.Trainer = build(
            cfg, "trainer", logger=logger, callbacks=callbacks, default_root_dir=cfg.run_dir
        )
    except MisconfigurationException as error:
        raise UserError(f"trainer: {config.first_line(error)}") from error
    return trainer


def build_loggers(cfg: DictConfig, resumed_at: int | None = None) -> list[Logger]:
    """The logger chosen, and metrics.csv always."""
    folder = Path(cfg.run_dir)
    loggers: list[Logger] = [MetricsFile(folder, resumed_at=resumed_at)]
    if cfg.logger is not None and "_target_" in cfg.logger:
        # Events after the checkpoint are hidden: the resumed run writes them again.
        purge = {} if resumed_at is None else {"purge_step": resumed_at}
        factory = build(cfg, "logger")
        loggers.insert(0, factory(save_dir=str(folder), name="", version="", **purge))
    return loggers


def build_callbacks(cfg: DictConfig, *, with_attention: bool = True) -> list[pl.Callback]:
    """The callbacks chosen, without those that the run has no use for.

    Args:
        cfg: the whole config.
        with_attention: the model has attention, so there are maps to log.
    """
    useless = set()
    if not cfg.trainer.enable_progress_bar:
        useless.add("progress_bar")
    if not with_attention:
        useless.add("attention_maps")
    chosen = (name for name, node in cfg.callbacks.items() if node and name not in useless)
    return [build(cfg, f"callbacks.{name}") for name in chosen]


def _check_limits(cfg: DictConfig) -> None:
    for key in ("max_steps", "val_check_interval", "log_every_n_steps", "accumulate_grad_batches"):
        value = cfg.trainer.get(key)
        if value is not None and value < 1:
            raise UserError(f"trainer.{key} must be at least 1, got {value}")
    if cfg.trainer.val_check_interval > cfg.trainer.max_steps:
        # Without a validation there would be no checkpoint to test.
        cfg.trainer.val_check_interval = cfg.trainer.max_steps


def _last_checkpoint(folder: Path) -> dict[str, Any]:
    return run_folder.load_checkpoint(run_folder.checkpoint_file(folder, "last"))


def _fit(trainer: pl.Trainer, parts: Parts, folder: Path, *, resume: bool) -> bool:
    """Train; tell whether it was interrupted by Ctrl-C."""
    handler = signal.getsignal(signal.SIGINT)
    ckpt_path = str(run_folder.checkpoint_file(folder, "last")) if resume else None
    try:
        trainer.fit(parts.module, datamodule=parts.data, ckpt_path=ckpt_path, weights_only=True)
        last = _last_checkpoint(folder)
    except SystemExit:  # Lightning leaves this way after Ctrl-C
        signal.signal(signal.SIGINT, handler)
        return True
    except MisconfigurationException as error:
        raise UserError(f"trainer: {config.first_line(error)}") from error
    if last["global_step"] < trainer.global_step:
        # The steps after the last validation must not be lost to a later resume.
        trainer.save_checkpoint(folder / "checkpoints" / "last.ckpt")
    return False


def _status(trainer: pl.Trainer, *, is_interrupted: bool) -> str:
    if is_interrupted:
        return "interrupted"
    is_solved = any(getattr(callback, "solved", False) for callback in trainer.callbacks)  # type: ignore[attr-defined]
    return "solved" if is_solved else "finished"


def _test(trainer: pl.Trainer, parts: Parts, folder: Path) -> dict[str, float]:
    """Test the best weights on the held-out test set, also by length."""
    best = run_folder.load_checkpoint(run_folder.checkpoint_file(folder, "best"))
    parts.module.load_state_dict(best["state_dict"])
    metrics = trainer.test(parts.module, datamodule=parts.data, verbose=False, weights_only=True)[0]
    rows = parts.module.accuracy_by_length()
    if trainer.is_global_zero:
        run_folder.write_rows(folder / run_folder.LENGTHS, rows)
    return {key: float(value) for key, value in metrics.items()}


def _description(cfg: DictConfig, parts: Parts) -> dict[str, Any]:
    uses_attention = parts.module.model.uses_attention
    return {
        "task": cfg.choices.task,
        "attention": cfg.choices.attention if uses_attention else "none",
        "model": cfg.choices.model,
        "position": cfg.choices.position if uses_attention else "none",
        "experiment": cfg.choices.get("experiment"),
        "seed": cfg.seed,
        "parameters": parts.parameters,
    }


def _log_hyperparameters(
    loggers: list[Logger], cfg: DictConfig, summary: dict[str, Any] | None = None
) -> None:
    """Keep what was chosen; with a summary, fill TensorBoard's HPARAMS tab with what came of it."""
    tree = OmegaConf.to_container(cfg)
    assert isinstance(tree, dict)
    wanted = ("choices", "model", "position", "task", "optimizer", "data", "seed")
    flat = _flatten({key: tree[key] for key in wanted if key in tree})
    for logger in loggers:
        if not isinstance(logger, TensorBoardLogger):
            continue
        if summary is None:
            logger.log_hyperparams(flat)
        else:
            numbers = {k: v for k, v in summary.items() if isinstance(v, int | float)}
            numbers.pop("seed", None)
            logger.log_hyperparams(flat, numbers, step=summary["steps"])
            logger.finalize("success")


def _flatten(tree: dict[Any, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= _flatten(value, f"{name}/")
        elif not str(key).startswith("_") and value is not None:
            flat[name] = value if isinstance(value, int | float | bool | str) else str(value)
    return flat


def quieten() -> None:
    """Silence what Lightning says on every start; real warnings still come through."""
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(f"{name}.utilities.rank_zero").setLevel(logging.WARNING)
    for pattern in (
        ".*Checkpoint directory .* exists and is not empty.*",
        ".*You are using the plain ModelCheckpoint callback.*",
        ".*TensorFloat32 tensor cores.*",
        ".*isinstance\\(treespec, LeafSpec\\).*",
        ".*The number of training batches.*",
    ):
        warnings.filterwarnings("ignore", pattern)
