"""Read pairs of sequences from JSONL or CSV, and say in which line they are wrong.

The lines come from ``datasets.load_dataset`` with its ``text`` reader; JSON and CSV are taken
apart here. Its ``json`` reader would turn text that looks like a date into a timestamp, its
``csv`` reader the token NA into a missing value, and neither knows the line of a bad row.
"""

import csv
import glob
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mha_lab.tasks.cache import quiet_progress_bars
from mha_lab.tasks.errors import DataFileError
from mha_lab.tasks.vocabulary import Vocabulary

COLUMNS = ("source", "target")
_EXAMPLE = ('"3 1 2"', '"1 2 3"')
Value = str | list[str]


class Pair(NamedTuple):
    """One row: text that is still to be cut, or a list of tokens."""

    source: Value
    target: Value


def read_pairs(path: str | Path, *, cache_dir: Path) -> list[Pair]:
    """Read a file of pairs.

    Args:
        path: a file that ends in ``.jsonl`` or ``.csv``, in UTF-8, with the columns ``source`` and
            ``target``; others are ignored. A value is text or, in JSONL, a list of tokens.
        cache_dir: where ``datasets`` keeps its Arrow copy of the file.

    Raises:
        DataFileError: missing, unreadable, empty or malformed, in one sentence.
    """
    file = Path(path).expanduser()
    parse = _PARSERS.get(file.suffix.lower())
    if file.is_dir():
        raise DataFileError(f"{file}: is a folder; name a .jsonl or .csv file in it")
    if parse is None:
        raise DataFileError(f"{file}: the name must end in {' or '.join(_PARSERS)}")
    if not file.is_file():
        raise DataFileError(f"{file}: no such file (looked in {file.absolute().parent})")
    pairs = [_pair(file, line, row) for line, row in parse(file, _lines(file, cache_dir))]
    if not pairs:
        raise DataFileError(f"{file}: holds no row; it needs at least one source and its target")
    return pairs


def _lines(file: Path, cache_dir: Path) -> list[str]:
    """The lines, each with a newline at its end, whichever kind of line break it had."""
    from datasets import DownloadMode, load_dataset
    from datasets.exceptions import DatasetGenerationError

    if file.stat().st_size == 0:
        return []
    modes = (DownloadMode.REUSE_DATASET_IF_EXISTS, DownloadMode.FORCE_REDOWNLOAD)
    for mode in modes:  # where the cached copy is damaged, or of another content, it is made again
        try:
            with quiet_progress_bars():
                rows = load_dataset(
                    "text",
                    data_files=glob.escape(str(file.absolute())),
                    split="train",
                    cache_dir=str(cache_dir),
                    download_mode=mode,
                    keep_linebreaks=True,
                    encoding="utf-8-sig",
                )
                lines = list(rows["text"])
            # ``datasets`` knows a file by its time, which a copy or an archive may keep.
            text = file.read_text(encoding="utf-8-sig")
            if mode is modes[-1] or "".join(lines).rstrip("\n") == text.rstrip("\n"):
                return lines
        except DatasetGenerationError as error:
            reason = error.__cause__ or error
            if isinstance(reason, UnicodeDecodeError):
                raise DataFileError(f"{not_utf8(file)} is not UTF-8") from error
        except Exception as error:  # whatever a damaged copy makes the reader raise
            reason = error
    raise DataFileError(f"{file}: cannot be read: {reason}") from reason


def not_utf8(file: Path) -> str:
    """Where a file is not UTF-8."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f"{file}, line {number}: byte {error.object[error.start]:#04x}"
    return str(file)


def parse_jsonl(
    file: Path, lines: Iterable[str], columns: Sequence[str] = COLUMNS
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows, each with the number of its line.

    Args:
        file: named in errors.
        lines: its lines.
        columns: what each row must have.

    Raises:
        DataFileError: a line is no JSON, or no object.
    """
    example = ", ".join(f'"{name}": {text}' for name, text in zip(columns, _EXAMPLE, strict=False))
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataFileError(f"{file}, line {number}: is not valid JSON: {error}") from error
        if not isinstance(row, dict):
            raise DataFileError(
                f"{file}, line {number}: must be an object like {{{example}}}, got {_shown(row)}"
            )
        yield number, row


def parse_csv(
    file: Path, lines: Iterable[str], columns: Sequence[str] = COLUMNS
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows, each with the number of the line where it begins; as ``parse_jsonl``.

    Raises:
        DataFileError: the header lacks a column, or a row has other than the header's.
    """
    csv.field_size_limit(sys.maxsize)  # a text may be of any length
    reader = csv.reader(lines, strict=True)
    header: list[str] | None = None
    while True:
        number = reader.line_num + 1  # where the row begins; a quoted value may span lines
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataFileError(f"{file}, line {number}: is not valid CSV: {error}") from error
        if not row:
            continue
        if header is None:
            header = _checked_header(file, number, row, columns)
        elif len(row) != len(header):
            raise DataFileError(
                f"{file}, line {number}: has {len(row)} values where the header names "
                f"{len(header)} columns; put a value with a comma in quotation marks"
            )
        else:
            yield number, dict(zip(header, row, strict=True))


def _checked_header(
    file: Path, number: int, row: Sequence[str], columns: Sequence[str]
) -> list[str]:
    header = [name.strip() for name in row]
    for column in columns:
        if header.count(column) != 1:
            raise DataFileError(
                f"{file}, line {number}: the header must name the column {column!r} once, "
                f"got {', '.join(header)}"
            )
    return header


_PARSERS = {".jsonl": parse_jsonl, ".csv": parse_csv}


def _pair(file: Path, number: int, row: Mapping[str, Any]) -> Pair:
    values = []
    for column in COLUMNS:
        if column not in row:
            raise DataFileError(f"{file}, line {number}: has no {column!r}")
        check_value(file, number, column, row[column])
        values.append(row[column])
    return Pair(*values)


def check_value(file: Path, number: int, column: str, value: Any) -> None:
    """A value is text or a list of tokens.

    Raises:
        DataFileError: it is not.
    """
    if fault := _fault(value):
        raise DataFileError(f"{file}, line {number}: {column!r} {fault}")


def _fault(value: Any) -> str | None:
    """What is wrong with a value, if anything is."""
    if not isinstance(value, str | list):
        return f"must be text or a list of tokens, got {_shown(value)}"
    tokens = value.split() if isinstance(value, str) else value
    if not tokens:
        return "is empty"
    for token in tokens:
        if not isinstance(token, str):
            return f'must list tokens as text, like ["3", "1"], got {_shown(token)} in it'
        if not token:
            return "lists an empty token"
        if token.encode(errors="replace").decode() != token:
            return f"holds half a character, {ascii(token)[:40]}: a surrogate needs its other half"
        if token in Vocabulary.SPECIAL:
            return f"uses {token!r}, which is a special token of the vocabulary"
    return None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:40] + "..."
