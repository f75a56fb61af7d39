"""What Hydra calls before runs: no run overwrites another."""

import os
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mha_lab.config import compose, explain, finish
from mha_lab.errors import UserError
from mha_lab.terminal import setting

_FEW = 64
"""Variants that are built before the first run begins."""


class RunGuard(Callback):
    """Refuses a folder that already holds a run, before Hydra writes anything into it.

    Hydra turns an exception of a callback into a warning, so the refusal is left in ``refusal``
    and the way out is ``SystemExit``, which Hydra lets pass.
    """

    sweep_folder: ClassVar[Path | None] = None
    was_there: ClassVar[Path | None] = None
    """The part of a single run's folder that nobody made for it."""
    refusal: ClassVar[UserError | None] = None

    @classmethod
    def forget(cls) -> None:
        """Before another command line in the same process."""
        cls.sweep_folder = cls.was_there = cls.refusal = None

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the folder of a single run."""
        if "LOCAL_RANK" in os.environ:  # a further process of a distributed run joins its folder
            return
        HydraConfig.instance().set_config(config)  # the folder's name may refer to it
        try:
            text = str(config.hydra.run.dir)
            _check_folder("hydra.run.dir", text)
            folder = Path(text).absolute()
            RunGuard.was_there = next(one for one in (folder, *folder.parents) if one.exists())
            _check_config(config, text)
        except UserError as error:
            _refuse(str(error))
        except (HydraException, OmegaConfBaseException) as error:
            _refuse(explain(error))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Look at the folder of a multirun, and remember it for the table at the end."""
        text = str(config.hydra.sweep.dir)
        folder = Path(text)
        if not text.strip() or (folder.exists() and not folder.is_dir()):
            _refuse(f"hydra.sweep.dir must be a folder, or a new one, got {text!r}")
        if any(folder.glob("*/config.yaml")):
            _refuse(f"{str(folder)!r} already holds runs: choose another hydra.sweep.dir")
        try:
            _check_jobs([str(word) for word in config.hydra.overrides.task])
        except UserError as error:
            _refuse(str(error))
        RunGuard.sweep_folder = folder


def _check_folder(key: str, text: str) -> None:
    folder = Path(text)
    if not text.strip() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{key} must be a folder, or a new one, got {text!r}")
    if (folder / "config.yaml").exists():
        raise UserError(
            f"{text!r} already holds a run: choose another {key}, "
            f"or go on with it by {setting('resume', folder)}"
        )


def _check_jobs(words: list[str]) -> None:
    """Check the runs of a multirun before its first begins.

    Where they are few, each is built once, but for those that differ in their seed alone. Of many,
    each value is checked once, with the first of all others: a mistake is one of a key, or of a
    key that an option does not take; what values only together make impossible is found when it is
    run, as building them all would take longer than anyone waits for a refusal.
    """
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from mha_lab.build import build_parts
    from mha_lab.validation import validate

    parsed = OverridesParser.create().parse_overrides(words)
    try:
        jobs = BasicSweeper.split_arguments(parsed, max_batch_size=None)[0]
    except HydraException:
        return  # values of another sweeper's kind; if there is none, Hydra will say so
    but_seeds = {tuple(w for w in job if not w.startswith("seed=")): job for job in jobs}
    variants = list(but_seeds.values())
    built = variants if len(variants) <= _FEW else []
    seen: set[str] = set()
    for job in jobs:
        try:
            if job in built:
                build_parts(compose(job, run_dir="RUN"), is_trial=True)
            elif not seen.issuperset(job):
                validate(compose(job, run_dir="RUN"))
        except UserError as error:
            raise UserError(f"{' '.join(job)}: {error}") from error
        seen.update(job)


def _check_config(config: DictConfig, folder: str) -> None:
    """Check every key before the folder is made."""
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from mha_lab.validation import validate

    checked = config.copy()
    OmegaConf.set_readonly(checked.hydra, False)
    checked.hydra.runtime.output_dir = folder
    HydraConfig.instance().set_config(checked)
    try:
        validate(finish(checked))
    finally:
        HydraConfig.instance().set_config(config)


def _refuse(sentence: str) -> NoReturn:
    RunGuard.refusal = UserError(sentence)
    raise SystemExit(2)
