"""The Trainer of a run as configured, its loggers and callbacks, and what is logged of them."""

import logging
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import Checkpoint
from pytorch_lightning.loggers import Logger, TensorBoardLogger

from mha_lab import config
from mha_lab.build import build
from mha_lab.errors import UserError
from mha_lab.training.checkpoint_files import CheckpointFiles
from mha_lab.training.metrics_file import MetricsFile
from mha_lab.training.run_events import RunEvents, grouped


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
    has_checkpoints = any(isinstance(one, Checkpoint) for one in callbacks or [])
    own = {"plugins": [CheckpointFiles()], "enable_checkpointing": has_checkpoints}
    try:
        trainer: pl.Trainer = build(
            cfg,
            "trainer",
            logger=logger,
            callbacks=callbacks,
            default_root_dir=cfg.run_dir,
            **{key: value for key, value in own.items() if key not in cfg.trainer},
        )
    except MisconfigurationException as error:
        raise UserError(f"trainer: {config.first_line(error)}") from error
    return trainer


def _check_limits(cfg: DictConfig) -> None:
    for key in ("max_steps", "val_check_interval", "log_every_n_steps", "accumulate_grad_batches"):
        value = cfg.trainer.get(key)
        if value is not None and value < 1:
            raise UserError(f"trainer.{key} must be at least 1, got {value}")
    if cfg.trainer.val_check_interval > cfg.trainer.max_steps:
        # Without a validation there would be no checkpoint to test.
        cfg.trainer.val_check_interval = cfg.trainer.max_steps


def build_loggers(cfg: DictConfig) -> list[Logger]:
    """The logger chosen, and metrics.csv always."""
    folder = Path(cfg.run_dir)
    loggers: list[Logger] = [MetricsFile(folder)]
    if cfg.logger is not None and "_target_" in cfg.logger:
        factory = build(cfg, "logger")
        if factory.func is TensorBoardLogger:  # named so by the configs of all runs there are
            factory = partial(RunEvents, **factory.keywords)
        loggers.insert(0, factory(save_dir=str(folder), name="", version=""))
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


def log_hyperparameters(
    loggers: list[Logger], cfg: DictConfig, summary: dict[str, Any] | None = None
) -> None:
    """Keep what was chosen; with a summary, fill TensorBoard's HPARAMS tab with what came of it."""
    tree = OmegaConf.to_container(cfg)
    assert isinstance(tree, dict)
    wanted = ("model", "position", "task", "optimizer", "data", "seed")
    # What people vary: how a run is watched and kept is no hyperparameter.
    # An experiment is a name of choices that are told themselves. Five columns are open at first.
    unvaried = ("callbacks", "experiment", "logger", "trainer")
    choices = {name: chosen for name, chosen in tree["choices"].items() if name not in unvaried}
    flat = _flatten({"choices": choices} | {key: tree[key] for key in wanted if key in tree})
    for logger in loggers:
        if not isinstance(logger, TensorBoardLogger):
            continue
        if summary is None:
            logger.log_hyperparams(flat)
        else:
            numbers = {k: v for k, v in summary.items() if isinstance(v, int | float)}
            numbers.pop("seed", None)
            columns = dict(sorted(grouped(numbers).items()))  # what the test found comes first
            logger.log_hyperparams(flat, columns, step=summary["steps"])
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
    # Both names of Lightning: the one that was imported last speaks.
    for name in ("pytorch_lightning", "lightning_fabric", "lightning.pytorch", "lightning.fabric"):
        logging.getLogger(f"{name}.utilities.rank_zero").setLevel(logging.WARNING)
    for pattern in (
        ".*Checkpoint directory .* exists and is not empty.*",
        ".*You are using the plain ModelCheckpoint callback.*",
        ".*TensorFloat32 tensor cores.*",
        ".*callbacks used to create the checkpoint need to be provided.*",  # of earlier versions
        ".*isinstance\\(treespec, LeafSpec\\).*",
        ".*The number of training batches.*",
    ):
        warnings.filterwarnings("ignore", pattern)
