"""Tables and paths in the terminal."""

import shlex
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TypeVar

_Item = TypeVar("_Item")


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
