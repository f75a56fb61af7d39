"""Which folders are runs: from the words of a command line to run folders."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mha_lab.config import CONFIG_FILE
from mha_lab.errors import UserError
from mha_lab.reporting.run_files import HYDRA, SUMMARY

SWEEP_TABLE = "sweep.csv"
# What a run keeps below its folder; an evaluation there has a summary.json of its own.
_INSIDE_A_RUN = ("checkpoints", "evaluations")


@dataclass(frozen=True)
class Found:
    """The runs that some paths name.

    Attributes:
        folders: the run folders, each once, in natural order (2 before 10).
        common: the folder that they all lie in.
        ignored: given paths that hold no run, such as the files that a shell's ``*`` matched.
    """

    folders: list[Path]
    common: Path
    ignored: list[str]


def find_runs(paths: Sequence[str]) -> Found:
    """Find the run folders that paths name.

    Args:
        paths: run folders, folders to be searched with all below them, or globs of such.

    Raises:
        UserError: a path does not exist, a glob matches nothing, or no run is found at all.
    """
    folders: dict[Path, Path] = {}
    starts: list[Path] = []
    ignored = []
    for word in paths:
        for start in _expand(word):
            below = search(start)
            if not below:
                ignored.append(str(start))
                continue
            starts += [start.parent] if below == [start] else [start]
            for folder in below:
                folders.setdefault(folder.resolve(), folder)
    if not folders:
        raise UserError(
            f"no runs in {', '.join(repr(word) for word in paths)}: a run is a folder that holds "
            f"{CONFIG_FILE} or {SUMMARY}, as `train` writes it"
        )
    common = Path(os.path.commonpath([start.resolve() for start in starts]))
    return Found(sorted(folders.values(), key=natural_key), common, ignored)


def search(start: Path) -> list[Path]:
    """Every run folder below a folder, itself included; hidden folders are not entered.

    Links to folders are followed after all else, so that a run that is found both ways has its own
    name; one that leads back leads nowhere.
    """
    found: list[Path] = []
    seen: set[Path] = set()
    waiting = [start]
    for top in waiting:  # grows by the links that are found
        for folder, subfolders, files in os.walk(top):
            here = Path(folder)
            if here.resolve() in seen:
                subfolders.clear()
                continue
            seen.add(here.resolve())
            is_sweep = SWEEP_TABLE in files
            if not is_sweep and (
                CONFIG_FILE in files
                or SUMMARY in files
                or (here / HYDRA / "overrides.yaml").is_file()
            ):
                found.append(here)
                subfolders[:] = [name for name in subfolders if name not in _INSIDE_A_RUN]
            subfolders[:] = [name for name in subfolders if not name.startswith(".")]
            waiting += [here / name for name in subfolders if (here / name).is_symlink()]
    return found


def natural_key(path: Path | str) -> list[tuple[int, str]]:
    """A key that sorts numbers inside names by their value: ``run/2`` before ``run/10``."""
    digits = "".join(c if c.isdigit() else f"\0{c}\0" for c in str(path)).split("\0")
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in digits if part]


def _expand(word: str) -> list[Path]:
    path = Path(word).expanduser()
    if path.exists():
        return [path]
    if not glob.has_magic(word):
        raise UserError(f"no runs at {word!r}: the folder does not exist")
    matches = [Path(match) for match in glob.glob(str(path), recursive=True)]
    if not matches:
        raise UserError(f"no runs at {word!r}: nothing matches this pattern")
    # A pattern such as outputs/** matches the insides of runs too; those are found from their run.
    return [match for match in matches if match.is_dir()] or matches
