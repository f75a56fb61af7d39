"""Tables and paths in the terminal."""

import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, TypeVar

_Item = TypeVar("_Item")
_NO_BREAK = "\0"
_FEWEST, _DEEP = 12, 6  # columns that what goes on needs; where it goes on without them
_NARROW = 36  # columns of what is told, below which it stands on lines of its own


def relative(path: Path) -> str:
    """A path as people type it: from the working folder, where it lies below that."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def wrapped(text: str, stream: IO[str], *, indent: int = 0) -> str:
    """A text in lines as wide as a terminal, with its words whole; as it is where there is none.

    Args:
        text: One line.
        stream: Where it will be printed.
        indent: Spaces before all lines but the first.
    """
    if not stream.isatty():
        return text
    width = max(indent + _FEWEST, shutil.get_terminal_size().columns)
    # A command in backticks is one word, to be copied.
    text = re.sub(r"`[^`]+`", lambda command: command[0].replace(" ", _NO_BREAK), text)
    lines = textwrap.fill(
        text,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )
    return lines.replace(_NO_BREAK, " ")


def tell(sentence: str) -> None:
    """Say something beside a command's output: what went wrong, or what the user must know."""
    print(wrapped(f"mha_lab: {sentence}", sys.stderr), file=sys.stderr)


def wrapped_help(text: str, stream: IO[str]) -> str:
    """A help text as wide as a terminal: what is told of a word goes on below where it begins.

    Where that would leave a column of few words, what is told stands below its word.
    """
    if not stream.isatty():
        return text
    lines = [""]
    for line in text.splitlines():
        before, indent = lines[-1], _indent(line)
        # Lines of one sentence are one, or each would end in a short line of its own.
        tells = bool(before) and (_tells(before) or not _indent(before))
        goes_on = tells and line and not before.endswith(":") and indent == _told_at(before)
        lines[-1:] = [f"{before} {line.lstrip()}"] if goes_on else [before, line]
    blocks = groupby(lines[1:], lambda line: line.startswith(" "))
    return "\n".join(shown for _, block in blocks for shown in _block(list(block), stream))


def _block(lines: list[str], stream: IO[str]) -> list[str]:
    """Lines of one paragraph: sentences, or words with what is told of each."""
    most = shutil.get_terminal_size().columns
    column = max((_told_at(line) for line in lines if _tells(line)), default=0)
    if not column or column + _NARROW <= most or max(map(len, lines)) <= most:
        return [wrapped(line, stream, indent=_below(line)) for line in lines]
    shown = []
    for line in lines:
        at = _told_at(line) if _tells(line) or _indent(line) == column else len(line)
        parts = (line[:at].rstrip(), line[at:] and " " * _DEEP + line[at:])
        shown += [wrapped(part, stream, indent=_DEEP) for part in parts if part]
    return shown


def _tells(line: str) -> bool:
    return _told_at(line) > _indent(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _told_at(line: str) -> int:
    """Where a line begins to tell: at its description, if it has one."""
    found = re.match(r" +\S.*?\S {2,}| *", line)
    return len(found[0]) if found else 0


def _below(line: str) -> int:
    """Where it goes on: at its description, if the words of that have the room."""
    at, most = _told_at(line), shutil.get_terminal_size().columns
    longest = max(map(len, line[at:].split()), default=0)
    has_room = at + max(longest, _FEWEST) <= most
    is_told_nothing_of = at == _indent(line) and 0 < at < _DEEP
    return at if has_room and not is_told_nothing_of else _DEEP


def setting(name: str, folder: Path) -> str:
    """``name=FOLDER`` to be typed again: as people type it, in quotes where a shell needs them."""
    return shlex.quote(f"{name}={relative(folder)}")


def clock(seconds: float) -> str:
    """``0:12``, or ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    numeric: int = 0,
    spare: Sequence[str] = (),
) -> None:
    """Print a table whose words stay whole.

    Headers are broken into short lines, so that the columns are narrow. In a terminal that is
    narrower still, cells are broken between words; where there is none, each row is one line.

    Args:
        columns: The headers.
        rows: The cells.
        title: Stands above the table.
        numeric: How many of the last columns hold numbers, which are set to the right.
        spare: Columns that are left out, one after the other, while a terminal is too narrow.
    """
    from rich.console import Console

    from mha_lab.table_shape import fitted

    console = Console()
    table, needed = fitted(
        columns,
        list(rows),
        numeric=numeric,
        spare=spare,
        width=console.width if console.is_terminal else None,
    )
    if title:
        print(title)
    Console(width=max(needed, console.width)).print(table)


def tracked(items: Sequence[_Item], text: str) -> Iterable[_Item]:
    """The items one after the other, with a bar in a terminal while there are some left."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    is_many = len(items) > 1
    shown = console.is_terminal and is_many
    return track(items, text, console=console, transient=True, disable=not shown)
