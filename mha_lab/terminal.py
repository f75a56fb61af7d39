"""Tables and paths in the terminal."""

import re
import shlex
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.table import Table


def relative(path: Path) -> str:
    """A path as people type it: from the working folder, where it lies below that."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def wrapped(text: str, stream: TextIO, *, indent: int = 0) -> str:
    """A text in lines as wide as a terminal, with its words whole; as it is where there is none.

    Args:
        text: One line.
        stream: Where it will be printed.
        indent: Spaces before all lines but the first.
    """
    if not stream.isatty():
        return text
    width = max(indent + 20, shutil.get_terminal_size().columns)
    return textwrap.fill(
        text,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )


def setting(name: str, folder: Path) -> str:
    """``name=FOLDER`` to be typed again: as people type it, in quotes where a shell needs them."""
    return shlex.quote(f"{name}={relative(folder)}")


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    numeric: int = 0,
    spare: Sequence[str] = (),
) -> None:
    """Print a table whose words stay whole.

    Headers are broken into short lines, so that the columns are narrow. Where the terminal is
    narrower still, or is none, lines run over its edge and nothing is cut off.

    Args:
        columns: The headers.
        rows: The cells.
        title: Stands above the table.
        numeric: How many of the last columns hold numbers, which are set to the right.
        spare: Columns that are left out, one after the other, while a terminal is too narrow.
    """
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    cells = [list(row) for row in rows]
    shown = list(range(len(columns)))
    left_out = [i for name in spare for i in shown if columns[i] == name]
    while True:
        table = _table(columns, cells, shown, len(columns) - numeric)
        needed = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
        if needed <= console.width or not console.is_terminal or not left_out:
            break
        shown.remove(left_out.pop(0))
    if title:
        print(title)
    Console(width=max(needed, console.width)).print(table)


def _table(
    columns: Sequence[str], cells: list[list[str]], shown: Sequence[int], first_number: int
) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for i in shown:
        header = Text(_on_lines(columns[i]))
        table.add_column(header, justify="right" if i >= first_number else "left", no_wrap=True)
    for row in cells:
        table.add_row(*(Text(row[i]) for i in shown))
    return table


def _on_lines(name: str) -> str:
    """``val/sequence_accuracy`` in three short lines, ``token accuracy`` in two."""
    return re.sub(r"([._]|/(?=\w\w))|(?<!,) +", lambda found: (found[1] or "") + "\n", name)
