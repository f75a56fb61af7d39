"""Tables and paths in the terminal."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def relative(path: Path) -> str:
    """A path as people type it: from the working folder, where it lies below that."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    numeric: int = 0,
) -> None:
    """Print a table whose words stay whole.

    Headers are broken into short lines, so that the columns are narrow. Where the terminal is
    narrower still, or is none, lines run over its edge and nothing is cut off.

    Args:
        columns: The headers.
        rows: The cells.
        title: Stands above the table.
        numeric: How many of the last columns hold numbers, which are set to the right.
    """
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for i, column in enumerate(columns):
        is_number = i >= len(columns) - numeric
        header = Text(_on_lines(column))
        table.add_column(header, justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    if title:
        print(title)
    console = Console()
    needed = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    Console(width=max(needed, console.width)).print(table)


def _on_lines(name: str) -> str:
    """``val/sequence_accuracy`` in three short lines, ``token accuracy`` in two."""
    return re.sub(r"([._]|/(?=\w\w))|(?<!,) +", lambda found: (found[1] or "") + "\n", name)
