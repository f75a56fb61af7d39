"""Read the records of event files, as far as they are whole.

An event file is a row of records: length (8 bytes), its checksum (4), the data, and the data's
checksum (4). TensorBoard's reader checks the data with a CRC in pure Python, at about 5 MB/s; maps
are compressed with a checksum of their own, so this one checks only the lengths.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

PLUGIN_NAME = "mha_lab_attention"
"""What the summaries of attention maps are marked with."""

_LENGTH = struct.Struct("<QI")
_DATA_CHECKSUM_BYTES = 4


def find_event_files(logdir: Path) -> list[tuple[str, Path]]:
    """Find every event file below a folder.

    Args:
        logdir: A folder, or one event file.

    Returns:
        (run, path) pairs sorted by run, then by file name, which begins with the file's time and
        goes on with numbers that count up. A run is the folder relative to ``logdir``, "." for
        itself, as TensorBoard names it.
    """
    if logdir.is_file():
        return [(".", logdir)]
    return sorted(_files_below(logdir, logdir, frozenset()), key=_by_run_and_age)


def files_of(run: Path) -> list[Path]:
    """The event files of one run alone, oldest first.

    Args:
        run: A run's folder, or one event file.
    """
    if run.is_file():
        return [run]
    try:
        names = [path for path in run.iterdir() if "tfevents" in path.name and path.is_file()]
    except OSError:  # vanished, or not ours to read
        return []
    return sorted(names, key=lambda path: _by_run_and_age(("", path)))


def _by_run_and_age(file: tuple[str, Path]) -> tuple[str, Path, list[tuple[int, str]]]:
    """A key that sorts the tenth file of a second after its ninth."""
    run, path = file
    parts = re.split(r"(\d+)", path.name)
    return run, path.parent, [(int(p), "") if p.isdigit() else (-1, p) for p in parts]


def _files_below(folder: Path, logdir: Path, above: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """The files of a folder and of those below it; a link counts under its own name.

    Only a link to a folder that it lies in is not followed, which would never end.
    """
    real = os.path.realpath(folder)
    if real in above:
        return
    try:
        entries = list(os.scandir(folder))
    except OSError:  # vanished, or not ours to read: TensorBoard passes it over too
        return
    for entry in entries:
        if entry.is_dir():
            yield from _files_below(Path(entry.path), logdir, above | {real})
        elif "tfevents" in entry.name:
            yield os.path.relpath(folder, logdir), Path(entry.path)


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a file up to the first record that is not whole.

    A file that is still being written, was cut off or is damaged ends early, without an error.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while True:
            head = file.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                return
            length, checksum = _LENGTH.unpack(head)
            if checksum != masked_crc32c(head[:8]) or length > size - file.tell():
                return
            data = file.read(length)
            if len(file.read(_DATA_CHECKSUM_BYTES)) < _DATA_CHECKSUM_BYTES:
                return
            try:
                yield Event.FromString(data)
            except DecodeError:
                return
