"""A multirun that was broken off goes on: what is done stays, what had begun is resumed."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from omegaconf import OmegaConf

from mha_lab.errors import UserError
from mha_lab.terminal import relative, setting
from mha_lab.training.run_folder import COMPLETE, read_summary

_FOLDER = "hydra.sweep.dir"
_HYDRA = ".hydra"


def runs_below(folder: Path) -> list[Path]:
    """The runs' folders, whatever they are called, in the order of their jobs."""
    found = [file.parent.parent for file in folder.rglob(f"{_HYDRA}/overrides.yaml")]
    return sorted(found, key=lambda run: (job_number(run), run.name))


def job_number(run: Path) -> int:
    """Which job of its multirun a run is."""
    record = OmegaConf.load(run / _HYDRA / "hydra.yaml")
    return int(OmegaConf.select(record, "hydra.job.num", default=0) or 0)


def words_of(run: Path) -> list[str]:
    """The overrides of a run, those for Hydra left out."""
    return [str(word) for word in OmegaConf.load(run / _HYDRA / "overrides.yaml")]


def is_done(run: Path) -> bool:
    """Whether a run has ended as it should."""
    return read_summary(run).get("status") in COMPLETE


def check_same(folder: Path, jobs: Sequence[Sequence[str]]) -> None:
    """See that the runs in a folder, if there are any, are those that are asked for.

    Args:
        folder: of the multirun.
        jobs: the words of each run; none where another sweeper than Hydra's own decides.

    Raises:
        UserError: they are others.
    """
    for run in runs_below(folder):
        number = job_number(run)
        if number >= len(jobs) or sorted(words_of(run)) != sorted(jobs[number]):
            raise UserError(
                f"{str(folder)!r} already holds runs of another multirun ({run.name}): choose "
                f"another {_FOLDER}"
            )


def told_of_interrupt(arguments: Sequence[str], folder: Path, total: int | None) -> str:
    """What is done, and the command that goes on.

    Args:
        arguments: what followed ``train``.
        folder: of the multirun.
        total: how many runs there are; None where that is not known.
    """
    done = sum(is_done(run) for run in runs_below(folder))
    words = [word for word in arguments if not word.startswith(f"{_FOLDER}=")]
    command = f"python -m mha_lab train {shlex.join(words)} {setting(_FOLDER, folder)}"
    many = f"{done} of {total} runs are done" if total is not None else f"{done} runs are done"
    return f"\ninterrupted: {many}; go on with:\n  {command}\n{relative(folder)}"
