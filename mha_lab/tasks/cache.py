"""Fixed sets kept as Hugging Face datasets: Arrow files that a later run maps into memory.

A folder of the cache is a dataset that ``datasets.load_from_disk`` reads, with the columns
``source`` and ``target``: lists of token ids, without padding. Reading the Arrow file directly
spares each run the second that ``import datasets`` takes.
"""

import hashlib
import json
import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks.batch import Batch, trim
from mha_lab.tasks.vocabulary import Vocabulary

_MARK = "key.json"


def default_cache_dir() -> Path:
    """The folder named by the environment variable MHA_LAB_CACHE, or ``~/.cache/mha_lab``."""
    return Path(os.environ.get("MHA_LAB_CACHE") or "~/.cache/mha_lab").expanduser()


def load_or_build(
    cache_dir: Path,
    key: Mapping[str, Any],
    build: Callable[[], Batch],
    is_right: Callable[[Batch], bool],
) -> Batch:
    """Read a set from the cache, or build it and keep it there.

    A folder that is damaged, that lacks rows, or whose content is no longer right, is built again.
    Several processes may do this at once: a set appears whole, by one rename. A cache that cannot
    be written costs a warning, nothing else.

    Args:
        cache_dir: the cache; made where missing.
        key: all that the set depends on, of JSON types.
        build: makes the set.
        is_right: tells whether a set that was read is still what ``build`` would make.
    """
    text = json.dumps(key, sort_keys=True)
    digest = _digest(text.encode())[:16]
    folder = cache_dir / f"{key['task']}-{key['split']}-{digest}"
    kept = _read(folder)
    if kept is not None and is_right(kept):
        return kept
    _remove(folder)  # whatever is there is of no use
    batch = build()
    try:
        _write(folder, batch, text)
    except OSError as error:
        warnings.warn(
            f"the cache folder {str(cache_dir)!r} cannot be written ({error.strerror}); choose "
            "another with data.cache_dir or MHA_LAB_CACHE",
            stacklevel=2,
        )
    return batch


def _read(folder: Path) -> Batch | None:
    """Read a cached set; None where there is none or it is damaged."""
    files = sorted(folder.glob("*.arrow"))
    if not files:
        return None
    import pyarrow as pa

    try:
        with pa.memory_map(str(files[0])) as stream:
            table = pa.ipc.open_stream(stream).read_all()
            table.validate(full=True)
            batch = Batch(_padded(table["source"]), _padded(table["target"]))
        kept = json.loads((folder / _MARK).read_text(encoding="utf-8"))["content"]
        return batch if kept == _content(batch) else None
    except Exception:  # a damaged file can make pyarrow raise anything
        return None


def _content(batch: Batch) -> str:
    """A checksum of all that a set holds."""
    parts = (f"{tuple(rows.shape)}".encode() + rows.numpy().tobytes() for rows in trim(batch))
    return _digest(*parts)


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _padded(column: Any) -> Int[Tensor, "N L"]:
    """Turn an Arrow column of lists into a tensor, padded on the right."""
    lists = column.combine_chunks()
    lengths = np.diff(lists.offsets.to_numpy())
    rows = np.full((len(lengths), lengths.max()), Vocabulary.PAD, dtype=np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = lists.flatten().to_numpy()
    return torch.from_numpy(rows)


def _write(folder: Path, batch: Batch, key: str) -> None:
    from datasets import Dataset

    columns = {name: _lists(rows) for name, rows in batch._asdict().items()}
    half = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    try:
        with quiet_progress_bars():
            Dataset.from_dict(columns).save_to_disk(half)
        mark = {"key": json.loads(key), "content": _content(batch)}
        (half / _MARK).write_text(json.dumps(mark, sort_keys=True) + "\n", encoding="utf-8")
        half.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was first, with the same sequences
            raise
    finally:
        _remove(half)


def _remove(path: Path) -> None:
    if path.is_file():
        path.unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


def _lists(rows: Int[Tensor, "N L"]) -> list[list[int]]:
    ends = (rows == Vocabulary.EOS).int().argmax(1).tolist()  # padding may stand before it
    return [row[: end + 1] for row, end in zip(rows.tolist(), ends, strict=True)]


@contextmanager
def quiet_progress_bars() -> Iterator[None]:
    """Keep the bars of ``datasets`` off the screen meanwhile."""
    from datasets.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
