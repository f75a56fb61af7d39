"""Which run is meant: a run's folder, the newest in a folder of runs, or the latest of all."""

import os
import re
from glob import glob, has_magic
from pathlib import Path

from mha_lab.config import CONFIG_FILE
from mha_lab.errors import UserError
from mha_lab.terminal import relative, tell
from mha_lab.training.run_folder import METRICS, SUMMARY

_EVENTS = re.compile(r"events\.out\.tfevents\.(\d+)")
LATEST = "latest"
OUTPUTS = "outputs"
"""Where runs are kept unless they are told otherwise."""


def which_run(key: str, text: str, *, with_weights: bool = True) -> Path:
    """The run that a setting names; says which, where the setting leaves that open.

    Args:
        key: the setting's name.
        text: a run's folder; a folder that holds runs anywhere below, of which the newest is
            taken; a pattern of such folders, as a shell knows them; or ``latest``, the newest below
            ``outputs/``.
        with_weights: whether only runs with a checkpoint count.

    Raises:
        UserError: no such run is there.
    """
    folder = Path(text).expanduser()
    is_latest = text == LATEST and not folder.exists()
    if folder.is_file():
        raise UserError(f"{key}={text} is a file: name the run's folder, in which it lies")
    if (
        not is_latest
        and not _matching(text)
        and (not folder.is_dir() or (folder / CONFIG_FILE).is_file())
    ):
        return folder  # a run, or what is no folder: that is said where it is read
    try:
        run = newest_run(text, with_weights=with_weights)
    except UserError as error:
        raise UserError(f"{key}={text}: {error}") from error
    if int(os.environ.get("LOCAL_RANK", "0")) == 0:
        tell(f"{key}={text} is {relative(run)}")
    return run


def newest_run(text: str, *, with_weights: bool) -> Path:
    """The run that was trained last, of those below a folder; arguments as ``which_run``.

    Raises:
        UserError: there is none.
    """
    from mha_lab.reporting.finding import natural_key, search

    folder = Path(text).expanduser()
    folder = Path(OUTPUTS) if text == LATEST and not folder.exists() else folder
    # One that was refused left no config.
    found = [run for place in _matching(text) or [folder] for run in search(place)]
    runs = [run for run in found if (run / CONFIG_FILE).is_file()]
    if not runs:
        raise UserError(
            f"there is no run in or below {str(folder)!r} (no {CONFIG_FILE}); train one first "
            "(python -m mha_lab train +experiment=copy), or name another folder"
        )
    kept = [run for run in runs if not with_weights or _checkpoints(run)]
    if not kept:
        raise UserError(
            f"no run in or below {str(folder)!r} has a checkpoint yet: one is written at the first "
            "validation"
        )
    return max(sorted(kept, key=natural_key), key=_last_trained)


def _matching(text: str) -> list[Path]:
    """The folders that a pattern means: after ``run=`` a shell leaves it as it is."""
    path = Path(text).expanduser()
    if path.exists() or not has_magic(text):
        return []
    return sorted(place for place in map(Path, glob(str(path))) if place.is_dir())


def _checkpoints(run: Path) -> list[Path]:
    return list((run / "checkpoints").glob("*.ckpt"))


def _last_trained(run: Path) -> tuple[float, float]:
    """When a run was last trained; what is evaluated later lies in a folder of its own."""
    files = [*(run / name for name in (CONFIG_FILE, SUMMARY, METRICS)), *_checkpoints(run)]
    written = max(file.stat().st_mtime for file in files if file.exists())
    # A copy of a run has other times; the names of its event files keep the seconds.
    named = [_EVENTS.match(file.name) for file in run.glob("events.out.tfevents.*")]
    return max((float(match[1]) for match in named if match), default=written), written
