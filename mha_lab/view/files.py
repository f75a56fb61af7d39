"""Where a file is to be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def file_to_write(path: str | Path, suffixes: Sequence[str]) -> Path:
    """The path of a file that is about to be written, with ``~`` for the user's folder.

    Args:
        path: Where.
        suffixes: What it may end in, in small letters; the path may have large ones.

    Raises:
        ValueError: If it ends otherwise.
        FileNotFoundError: If its folder does not exist.
        IsADirectoryError: If it is a folder itself.
    """
    file = Path(path).expanduser()
    if file.suffix.lower() not in suffixes:
        ending = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise ValueError(f"path={str(path)!r} must end in {ending}")
    if not file.parent.is_dir():
        raise FileNotFoundError(
            f"path={str(path)!r}: the folder {str(file.parent)!r} does not exist; make it first"
        )
    if file.is_dir():
        raise IsADirectoryError(f"path={str(path)!r} is a folder; give the name of a file in it")
    return file
