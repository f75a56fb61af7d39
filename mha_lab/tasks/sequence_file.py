"""Files of sequences to be answered, and of the answers: text, JSON lines or CSV."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mha_lab.tasks.errors import DataFileError
from mha_lab.tasks.pair_file import Value, check_value, not_utf8, parse_csv, parse_jsonl

SUFFIXES = (".txt", ".jsonl", ".csv")
OUTPUT = "output"
_SOURCE = "source"
_PARSERS = {".jsonl": parse_jsonl, ".csv": parse_csv}


@dataclass(frozen=True)
class Row:
    """One sequence of a file.

    Attributes:
        place: the file and the line, for what is said of it.
        source: text, or a list of tokens.
        others: what else the file says in that row.
    """

    place: str
    source: Value
    others: Mapping[str, Any] = field(default_factory=dict)


def read_rows(file: Path) -> list[Row]:
    """Read a file: a sequence a line in text; the key or column ``source`` in JSON lines and CSV.

    Raises:
        DataFileError: missing, unreadable, empty or malformed, in one sentence.
    """
    check_suffix(file)
    if not file.is_file():
        raise DataFileError(f"{file}: no such file (looked in {file.absolute().parent})")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(f"{not_utf8(file)} is not UTF-8") from error
    except OSError as error:
        raise DataFileError(f"{file}: cannot be read: {error.strerror}") from error
    lines = io.StringIO(text)
    parse = _PARSERS.get(file.suffix.lower())
    found = parse(file, lines, (_SOURCE,)) if parse else _parse_text(file, lines)
    rows = [_row(file, number, row) for number, row in found]
    if not rows:
        raise DataFileError(f"{file}: holds no sequence")
    return rows


def written(rows: Sequence[Row], outputs: Sequence[Sequence[str]], suffix: str) -> str:
    """The text of a file of answers.

    Args:
        rows: what was read.
        outputs: the tokens of each row's answer.
        suffix: which kind of file. Text holds the answers alone, a line each; the others what was
            read too.
    """
    text = _written(rows, outputs, suffix)
    # Half a character, which JSON may hold and UTF-8 not, is spelled as JSON spells it.
    return text.encode(errors="backslashreplace").decode()


def _written(rows: Sequence[Row], outputs: Sequence[Sequence[str]], suffix: str) -> str:
    if suffix == ".txt":
        return "".join(" ".join(tokens) + "\n" for tokens in outputs)
    content = [
        {_SOURCE: row.source, **row.others, OUTPUT: _like(row.source, tokens)}
        for row, tokens in zip(rows, outputs, strict=True)
    ]
    if suffix == ".jsonl":
        return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in content)
    stream = io.StringIO()
    columns = list(dict.fromkeys(key for one in content for key in one))
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in one.items()} for one in content)
    return stream.getvalue()


def check_suffix(file: Path) -> None:
    """A file's kind is told by its ending.

    Raises:
        DataFileError: by another one.
    """
    if file.suffix.lower() not in SUFFIXES:
        raise DataFileError(f"{file}: the name must end in one of {', '.join(SUFFIXES)}")


def _parse_text(file: Path, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    empty: int | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            empty = empty or number
            continue
        if empty is not None:  # at the end of a file, empty lines mean nothing
            raise DataFileError(f"{file}, line {empty}: is empty; each line must hold a sequence")
        yield number, {_SOURCE: line.rstrip("\n")}


def _row(file: Path, number: int, row: dict[str, Any]) -> Row:
    if _SOURCE not in row:
        raise DataFileError(f"{file}, line {number}: has no {_SOURCE!r}")
    check_value(file, number, _SOURCE, row[_SOURCE])
    others = {key: value for key, value in row.items() if key not in (_SOURCE, OUTPUT)}
    return Row(f"{file}, line {number}", row[_SOURCE], others)


def _like(source: Value, tokens: Sequence[str]) -> Value:
    """An answer in the form of its question."""
    return " ".join(tokens) if isinstance(source, str) else list(tokens)


def _cell(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
