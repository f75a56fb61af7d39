"""Write a report's files; a former report is replaced, and nothing else ever is."""

import csv
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mha_lab import __version__
from mha_lab.errors import UserError

# Lists the files of a report with their hashes, so that the next one knows what it may replace.
MANIFEST = "report.json"
_MADE_BY = "mha_lab report"


def check_out(out: Path) -> None:
    """See that a report may be written to a folder.

    Raises:
        UserError: it is a file, or holds something that is not an unchanged former report.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"out={str(out)!r} is a file, not a folder: choose another name")
    if not out.exists() or not any(out.iterdir()):
        return
    former = _former_files(out)
    if former is None:
        raise UserError(
            f"out={str(out)!r} holds files and is no former report (it has no {MANIFEST}); "
            "nothing was written: choose an empty or a new folder"
        )
    for file in sorted(out.iterdir()):
        if file.name == MANIFEST or (
            file.is_file() and former.get(file.name) == _hash(file.read_bytes())
        ):
            continue
        what = "was changed since" if file.name in former else "is not part of"
        raise UserError(
            f"out={str(out)!r} holds {file.name!r}, which {what} the former report; nothing was "
            "written: move it away, or choose another folder"
        )


def write_report(out: Path, files: Mapping[str, bytes], command: str) -> None:
    """Write files into a folder, in place of those of a former report.

    Raises:
        UserError: see :func:`check_out`; or the folder cannot be written.
    """
    check_out(out)
    about = {
        "made_by": _MADE_BY,
        "version": __version__,
        "command": command,
        "files": {name: _hash(content) for name, content in files.items()},
    }
    whole = {**files, MANIFEST: (json.dumps(about, indent=2) + "\n").encode()}
    try:
        out.mkdir(parents=True, exist_ok=True)
        # All files are written elsewhere first, so that a full disk leaves the former report.
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as staging:
            for name, content in whole.items():
                Path(staging, name).write_bytes(content)
            for name in set(_former_files(out) or ()) - set(whole):
                (out / name).unlink(missing_ok=True)
            for name in whole:
                os.replace(Path(staging, name), out / name)
    except OSError as error:
        raise UserError(f"cannot write the report to {str(out)!r}: {error.strerror}") from error


def to_csv(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Rows as CSV, the keys of all rows as columns in order of appearance."""
    rows = list(rows)
    stream = io.StringIO()
    columns = dict.fromkeys(key for row in rows for key in row)
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def _former_files(out: Path) -> dict[str, str] | None:
    try:
        about = json.loads((out / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    is_ours = isinstance(about, dict) and about.get("made_by") == _MADE_BY
    files = about.get("files") if is_ours else None
    return files if isinstance(files, dict) else None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
