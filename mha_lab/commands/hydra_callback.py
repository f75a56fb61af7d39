"""What Hydra calls before runs: no run overwrites another."""

import os
import sys
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mha_lab.commands.multirun_again import check_same
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
    told: ClassVar[set[str]] = set()
    """Why some runs of a multirun cannot be built: it is told once, before the first run."""

    @classmethod
    def forget(cls) -> None:
        """Before another command line in the same process."""
        cls.sweep_folder = cls.was_there = cls.refusal = None
        cls.told = set()

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
        words = [str(word) for word in config.hydra.overrides.task]
        try:
            jobs = _jobs(words)
            check_same(folder, jobs)
            _check_jobs(jobs)
        except UserError as error:
            _refuse(str(error))
        from mha_lab.commands.multirun_display import opening  # it needs Lightning

        print(opening(words, folder), flush=True)
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


def _jobs(words: list[str]) -> list[list[str]]:
    """The words of each run of a multirun; none where another sweeper draws them."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parsed = OverridesParser.create().parse_overrides(words)
    try:
        return [list(job) for job in BasicSweeper.split_arguments(parsed, max_batch_size=None)[0]]
    except HydraException:
        return []  # values of another sweeper's kind; if there is none, Hydra will say so


def _check_jobs(jobs: list[list[str]]) -> None:
    """Check the runs of a multirun before its first begins.

    Each value once, with the first of all others: a mistake is one of a key, or of a key that an
    option does not take. What values only together make impossible is told as well, where the
    variants are few enough to build each: a grid may hold such places, so the others are run.
    """
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from mha_lab.config.validation import validate

    seen: set[str] = set()
    for job in jobs:
        if seen.issuperset(job):
            continue
        seen.update(job)
        try:
            validate(compose(job, run_dir="RUN"))
        except UserError as error:
            raise UserError(f"{' '.join(job)}: {error}") from error
    variants = {tuple(w for w in job if not w.startswith("seed=")): job for job in jobs}
    if 0 < len(variants) <= _FEW:
        _tell_impossible(variants)


def _tell_impossible(variants: dict[tuple[str, ...], list[str]]) -> None:
    """Build each variant once.

    Raises:
        UserError: none of them can be.
    """
    from mha_lab.build import build_parts

    faults: dict[str, str] = {}
    for words, job in variants.items():
        try:
            build_parts(compose(job, run_dir="RUN"), is_trial=True)
        except UserError as error:
            faults[" ".join(words)] = str(error)
    if len(faults) == len(variants):
        raise UserError(": ".join(next(iter(faults.items()))))
    for shown, reason in faults.items():
        print(f"mha_lab: {shown} cannot be trained, only the others are: {reason}", file=sys.stderr)
    RunGuard.told = set(faults.values())


def _check_config(config: DictConfig, folder: str) -> None:
    """Check every key before the folder is made."""
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from mha_lab.config.validation import validate

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
