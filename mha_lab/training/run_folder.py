"""The files of one run: where they lie, and how none is ever left half written."""

import csv
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mha_lab.errors import UserError

SUMMARY = "summary.json"
METRICS = "metrics.csv"
LENGTHS = "accuracy_by_length.csv"
VOCABULARY = "vocabulary.json"
LOCK = ".lock"
COMPLETE = ("solved", "finished")
"""The status in the summary of a run that has ended as it should."""
_HALF_WRITTEN = re.compile(r"\..+\.\d+")


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Be the only one that writes into a run's folder; made where missing.

    The system lets go of the lock when its process ends, however that happens. What a process
    that was killed had half written is removed.

    Raises:
        UserError: another process writes there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            f"another process is writing into {str(folder)!r}: wait for its end, or choose "
            "another hydra.run.dir"
        ) from None
    except NotImplementedError:  # a network's filesystem without locks
        yield
        return
    try:
        for where in (folder, folder / "checkpoints"):
            for file in where.glob(".*"):
                if _HALF_WRITTEN.fullmatch(file.name):
                    file.unlink()
        yield
    finally:
        lock.release()


@contextmanager
def undone_unless(has_begun: Callable[[], bool], folder: Path) -> Iterator[None]:
    """Take back what was written into a folder, if an error comes before the run has begun.

    What is left would count as a run, and be in the way of the next try.

    Args:
        has_begun: asked when there is an error.
        folder: the run's; what lies there already stays.
    """
    before = set(folder.iterdir())
    try:
        yield
    except Exception:
        if not has_begun():
            for made in set(folder.iterdir()) - before:
                shutil.rmtree(made) if made.is_dir() else made.unlink()
        raise


@contextmanager
def replacing(*files: Path) -> Iterator[tuple[Path, ...]]:
    """Places beside files, to write to; afterwards they take the files' names, all or none.

    What was written is removed where anything goes wrong, such as a full disk.
    """
    halves = tuple(file.with_name(f".{file.name}.{os.getpid()}") for file in files)
    try:
        yield halves
        for half, file in zip(halves, files, strict=True):
            half.replace(file)
    except BaseException:
        for half in halves:
            half.unlink(missing_ok=True)
        raise


def write_atomically(file: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    with replacing(file) as (half,):
        half.write_text(text, encoding="utf-8")


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write ``summary.json``."""
    write_atomically(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")


def read_summary(folder: Path) -> dict[str, Any]:
    """Read ``summary.json``; empty where there is none yet or it is unreadable."""
    try:
        content = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_rows(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV, the keys of all rows as columns in order of appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with replacing(file) as (half,), half.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
