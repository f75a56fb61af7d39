"""How a run begins: in a new folder, or in the state of its newest checkpoint."""

from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from omegaconf import DictConfig

from mha_lab import config
from mha_lab.build import Parts
from mha_lab.errors import UserError
from mha_lab.run.trainer import log_hyperparameters
from mha_lab.terminal import tell
from mha_lab.training import growing_files, run_folder
from mha_lab.training.checkpoint_files import checkpoint_path, load_checkpoint, newest_checkpoint
from mha_lab.training.metrics_file import MetricsFile
from mha_lab.training.module import SequenceModule


def begin(cfg: DictConfig, parts: Parts, trainer: pl.Trainer, *, resume: bool) -> Path | None:
    """Put the run's folder into the state of its newest checkpoint.

    Returns:
        The checkpoint; None for a run that begins.
    """
    folder = Path(cfg.run_dir)
    if not trainer.is_global_zero:
        return newest_checkpoint(folder)[0] if resume else None
    if not resume and (folder / config.CONFIG_FILE).exists():
        raise UserError(f"{str(folder)!r} already holds a run: choose another hydra.run.dir")
    file, checkpoint = _newest(folder) if resume else (None, {})
    if file is not None:
        _check_fits(file, checkpoint, parts.module)
        _tell_of_an_end(folder, checkpoint)
    if file is None or "growing_files" in checkpoint:
        growing_files.cut_back(folder, checkpoint.get("growing_files", {}))
    for logger in trainer.loggers:
        if isinstance(logger, MetricsFile):
            logger.go_on(step=checkpoint.get("global_step", 0))
    parts.task.vocabulary.save(folder / run_folder.VOCABULARY)
    log_hyperparameters(trainer.loggers, cfg)
    config.save(cfg, folder)  # last: with it, the folder is a run that one can go on with
    return file


def _tell_of_an_end(folder: Path, checkpoint: dict[str, Any]) -> None:
    """A run that had ended may have no step left, and would seem to do nothing."""
    status = run_folder.read_summary(folder).get("status")
    if status in run_folder.COMPLETE:
        tell(
            f"the run had ended ({status} at step {checkpoint['global_step']:,}): what its "
            "settings leave to train, if anything, is trained, and it is tested again"
        )


def _newest(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """The checkpoint to go on from; says so where that is not what one would expect."""
    file, checkpoint, damaged = newest_checkpoint(folder)
    for other in damaged:
        aside = other.replace(other.with_suffix(".ckpt.damaged"))
        tell(
            f"{str(other)!r} is corrupt and now called {aside.name}; going on from "
            f"{file and file.name}, of step {checkpoint['global_step']}"
        )
    if file is None:
        if run_folder.read_summary(folder).get("status") in run_folder.COMPLETE:
            load_checkpoint(checkpoint_path(folder, "last"))  # says that it is not there
        tell("the run has no checkpoint yet: it begins again")
    return file, checkpoint


def _check_fits(file: Path, checkpoint: dict[str, Any], module: SequenceModule) -> None:
    """Refuse the checkpoint of another model, or only of weights, before anything is changed."""
    for key in ("loops", "optimizer_states", "global_step"):
        if key not in checkpoint:
            raise UserError(
                f"{str(file)!r} is no checkpoint that a run can go on from: it has no {key!r}"
            )
    kept = {
        name: tuple(getattr(tensor, "shape", ()))
        for name, tensor in checkpoint["state_dict"].items()
    }
    made = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    for name in dict.fromkeys([*made, *kept]):
        if kept.get(name) != made.get(name):
            raise UserError(
                f"{str(file)!r} does not fit the model: {name} is {kept.get(name, 'no')} there, "
                f"{made.get(name, 'no')} in the model, so it is of another run, or an override "
                "changes the model; a run goes on with the model that it began with"
            )
