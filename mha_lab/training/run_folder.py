"""The files of one run: where they lie, and how none is ever left half written."""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from mha_lab.errors import UserError

SUMMARY = "summary.json"
METRICS = "metrics.csv"
LENGTHS = "accuracy_by_length.csv"
VOCABULARY = "vocabulary.json"


def write_atomically(file: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    half = file.with_name(f".{file.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(file)


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
    half = file.with_name(f".{file.name}.{os.getpid()}")
    with half.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    half.replace(file)


def checkpoint_file(folder: Path, name: str) -> Path:
    """The path of ``best.ckpt`` or ``last.ckpt`` of a run.

    Raises:
        UserError: it is not there.
    """
    file = folder / "checkpoints" / f"{name}.ckpt"
    if not file.is_file():
        raise UserError(
            f"no checkpoint at {str(file)!r}: the run did not reach its first validation, "
            "or the file was removed"
        )
    return file


def load_checkpoint(file: Path) -> dict[str, Any]:
    """Read a checkpoint, with ``weights_only=True``: a checkpoint can run no code.

    Raises:
        UserError: missing or corrupt.
    """
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise UserError(f"no checkpoint at {str(file)!r}") from error
    except Exception as error:  # a damaged file fails in the zip reader, the unpickler or torch
        raise UserError(
            f"the checkpoint {str(file)!r} cannot be read ({type(error).__name__}): it is corrupt "
            "or not a checkpoint; use another one, or train again"
        ) from error
    if not isinstance(content, dict) or "state_dict" not in content:
        raise UserError(f"{str(file)!r} is not a checkpoint of a run: it has no 'state_dict'")
    return content
