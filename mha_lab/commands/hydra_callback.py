"""What Hydra calls before runs: no run overwrites another."""

import os
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from mha_lab.errors import UserError


class RunGuard(Callback):
    """Refuses a folder that already holds a run, before Hydra writes anything into it.

    Hydra turns an exception of a callback into a warning, so the refusal is left in ``refusal``
    and the way out is ``SystemExit``, which Hydra lets pass.
    """

    sweep_folder: ClassVar[Path | None] = None
    refusal: ClassVar[UserError | None] = None

    @classmethod
    def forget(cls) -> None:
        """Before another command line in the same process."""
        cls.sweep_folder = cls.refusal = None

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the folder of a single run."""
        if "LOCAL_RANK" in os.environ:  # a further process of a distributed run joins its folder
            return
        HydraConfig.instance().set_config(config)  # the folder's name may refer to it
        folder = Path(config.hydra.run.dir)
        if folder.exists() and not folder.is_dir():
            _refuse(f"hydra.run.dir={str(folder)!r} is a file, not a folder")
        if (folder / "config.yaml").exists():
            _refuse(
                f"{str(folder)!r} already holds a run: choose another hydra.run.dir, "
                f"or go on with it by resume={folder}"
            )

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the folder of a multirun, and remember it for the table at the end."""
        folder = Path(config.hydra.sweep.dir)
        if any(folder.glob("*/config.yaml")):
            _refuse(f"{str(folder)!r} already holds runs: choose another hydra.sweep.dir")
        RunGuard.sweep_folder = folder


def _refuse(sentence: str) -> NoReturn:
    RunGuard.refusal = UserError(sentence)
    raise SystemExit(2)
