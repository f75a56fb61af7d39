"""Files of a run that only ever grow: event files, and the table of attention scores.

A checkpoint holds how long they were. A run that was broken off wrote on after its last
checkpoint, and what goes on from there writes the same again: so these files are first cut back
to the length of then, and every step is in them once, for any reader.
"""

from collections.abc import Mapping
from pathlib import Path

_PATTERNS = ("*tfevents*", "attention*/scores.csv")


def lengths(folder: Path) -> dict[str, int]:
    """How long they are now, in bytes, by their path within the run's folder."""
    return {file.relative_to(folder).as_posix(): file.stat().st_size for file in _files(folder)}


def cut_back(folder: Path, lengths: Mapping[str, int]) -> None:
    """Make them as long as they were; those that were not there yet are removed."""
    for file in _files(folder):
        length = lengths.get(file.relative_to(folder).as_posix(), 0)
        if length == 0:
            file.unlink()
        elif file.stat().st_size > length:
            with file.open("r+b") as stream:
                stream.truncate(length)


def _files(folder: Path) -> list[Path]:
    return [file for pattern in _PATTERNS for file in folder.glob(pattern) if file.is_file()]
