"""What Hydra calls around runs: no run overwrites another, and a multirun ends with its table."""

import os
from pathlib import Path
from typing import Any, ClassVar

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from mha_lab.errors import UserError


class RunGuard(Callback):
    """Refuses a folder that already holds a run, before Hydra writes anything into it."""

    sweep_folder: ClassVar[Path | None] = None

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the folder of a single run."""
        folder = Path(config.hydra.run.dir)
        if "LOCAL_RANK" in os.environ:  # a further process of a distributed run joins its folder
            return
        if (folder / "config.yaml").exists():
            raise UserError(
                f"{str(folder)!r} already holds a run: choose another hydra.run.dir, "
                f"or go on with it by resume={folder}"
            )
        if folder.exists() and not folder.is_dir():
            raise UserError(f"hydra.run.dir={str(folder)!r} is a file, not a folder")

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the folder of a multirun, and remember it for the table at the end."""
        folder = Path(config.hydra.sweep.dir)
        if any(folder.glob("*/config.yaml")):
            raise UserError(
                f"{str(folder)!r} already holds runs: choose another hydra.sweep.dir"
            )
        RunGuard.sweep_folder = folder
