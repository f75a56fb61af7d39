"""The checkpoints of a run as files: never torn, never read when they are damaged.

A file is written beside its place, on the same filesystem, forced to the disk and then renamed, so
that the one before it is there until the new one is whole. A checkpoint is a zip archive, as
PyTorch writes it; the archive's comment is the SHA-256 of all that stands before it.
"""

import hashlib
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from lightning_fabric.plugins import TorchCheckpointIO

from mha_lab.errors import UserError

NAMES = ("last", "best")
_MARK = b"sha256:"
_COMMENT_BYTES = len(_MARK) + 2 * hashlib.sha256().digest_size


class CheckpointFiles(TorchCheckpointIO):
    """How a Trainer writes checkpoints."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any = None
    ) -> None:
        """Write one so that it is whole, or not there."""
        content = io.BytesIO()
        torch.save(checkpoint, content)  # in memory: an error while it writes to a disk is obscure
        _sign(content)
        _replace(Path(path), lambda stream: stream.write(content.getbuffer()))


def _sign(archive: io.BytesIO) -> None:
    """Append the checksum as the archive's comment, whose length is an archive's last number."""
    archive.seek(-2, io.SEEK_END)
    archive.write(_COMMENT_BYTES.to_bytes(2, "little"))
    digest = hashlib.sha256(archive.getbuffer()).hexdigest()
    archive.write(_MARK + digest.encode())


def _is_whole(file: Path) -> bool:
    """Compare the checksum; a checkpoint that another program wrote has none."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        stream.seek(max(0, size - _COMMENT_BYTES))
        comment = stream.read()
        if not comment.startswith(_MARK):
            return True
        stream.seek(0)
        digest, left = hashlib.sha256(), size - _COMMENT_BYTES
        while left and (part := stream.read(min(left, 1 << 20))):
            digest.update(part)
            left -= len(part)
    return comment == _MARK + digest.hexdigest().encode()


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
        if not _is_whole(file):
            raise ValueError("its checksum is another")
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


def newest_checkpoint(folder: Path) -> tuple[Path | None, dict[str, Any], list[Path]]:
    """The whole checkpoint of a run that is of the latest step.

    Returns:
        Its file and content, None and empty where the run has no checkpoint at all; and those
        that cannot be read.

    Raises:
        UserError: there are checkpoints, but none can be read.
    """
    found: list[tuple[Path, dict[str, Any]]] = []
    damaged: dict[Path, UserError] = {}
    for file in (checkpoint_path(folder, name) for name in NAMES):
        if not file.exists():
            continue
        try:
            found.append((file, load_checkpoint(file)))
        except UserError as error:
            damaged[file] = error
    if damaged and not found:
        raise next(iter(damaged.values()))
    if not found:
        return None, {}, []
    return *max(found, key=lambda pair: pair[1].get("global_step", 0)), list(damaged)
