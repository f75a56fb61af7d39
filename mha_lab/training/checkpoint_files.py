"""The checkpoints of a run as files: never torn, never read when they are damaged.

A file is written beside its place, on the same filesystem, forced to the disk and then renamed, so
that the one before it is there until the new one is whole. A checkpoint is a zip archive with a
CRC-32 of every record; PyTorch does not look at them when it reads, this module does.
"""

import io
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from lightning_fabric.plugins import TorchCheckpointIO

from mha_lab.errors import UserError

NAMES = ("last", "best")


class CheckpointFiles(TorchCheckpointIO):
    """How a Trainer writes checkpoints."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any = None
    ) -> None:
        """Write one so that it is whole, or not there."""
        content = io.BytesIO()
        torch.save(checkpoint, content)  # in memory: an error while it writes to a disk is obscure
        _replace(Path(path), lambda stream: stream.write(content.getbuffer()))


def copy_checkpoint(source: Path, target: Path) -> None:
    """Write another checkpoint with the same content."""
    with source.open("rb") as content:
        _replace(target, lambda stream: shutil.copyfileobj(content, stream))


def _replace(file: Path, write: Callable[[IO[bytes]], Any]) -> None:
    file.parent.mkdir(exist_ok=True)  # not the run's folder: where that vanished, all is lost
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with half.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        half.replace(file)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    _sync_folder(file.parent)


def _sync_folder(folder: Path) -> None:
    """Force the new name to the disk, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def checkpoint_path(folder: Path, name: str) -> Path:
    """Where ``best.ckpt`` or ``last.ckpt`` of a run lies."""
    return folder / "checkpoints" / f"{name}.ckpt"


def load_checkpoint(file: Path) -> dict[str, Any]:
    """Read a checkpoint, with ``weights_only=True``: a checkpoint can run no code.

    Raises:
        UserError: missing or corrupt.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise zipfile.BadZipFile(f"wrong checksum of {damaged!r}")
        content = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise UserError(
            f"no checkpoint at {str(file)!r}: the run did not reach its first validation, "
            "or the file was removed"
        ) from error
    except PermissionError as error:
        raise UserError(f"the checkpoint {str(file)!r} cannot be read: {error.strerror}") from error
    except Exception as error:  # a damaged file fails in the zip reader, the unpickler or torch
        raise UserError(
            f"the checkpoint {str(file)!r} cannot be read ({type(error).__name__}): it is corrupt "
            "or not a checkpoint; use another one, or train again"
        ) from error
    if not isinstance(content, dict) or "state_dict" not in content:
        raise UserError(f"{str(file)!r} is not a checkpoint of a run: it has no 'state_dict'")
    return content


def newest_checkpoint(folder: Path) -> tuple[Path | None, dict[str, Any], list[str]]:
    """The whole checkpoint of a run that is of the latest step.

    Returns:
        Its file and content, None and empty where the run has no checkpoint at all; and a
        sentence about each that cannot be read.

    Raises:
        UserError: there are checkpoints, but none can be read.
    """
    found: list[tuple[Path, dict[str, Any]]] = []
    faults: list[str] = []
    for file in (checkpoint_path(folder, name) for name in NAMES):
        if not file.exists():
            continue
        try:
            found.append((file, load_checkpoint(file)))
        except UserError as error:
            faults.append(str(error))
    if faults and not found:
        raise UserError(faults[0])
    if not found:
        return None, {}, []
    return *max(found, key=lambda pair: pair[1].get("global_step", 0)), faults
