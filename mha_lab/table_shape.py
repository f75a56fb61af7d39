"""A table as narrow as a terminal asks: which columns it keeps, and where its cells go on."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.table import Table

_GAP = 2
_SHORT = 9  # letters of a line of a header that cost no width: numbers are as long
_WHOLE, _COUNTS, _SPREADS = (), (" (",), (" (", " ±")  # where numbers go on in a line below


def fitted(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: int,
    spare: Sequence[str],
    width: int | None,
) -> tuple["Table", int]:
    """The widest form of a table that fits, and how wide it is; if none does, the narrowest.

    What can be told in another line goes there first (``825 ± 66`` above ``(3 of 7)``, a title's
    last words), then the spare columns are left out one after the other. A name goes on after its
    underscore where nothing else helps.

    Args:
        columns: The headers.
        rows: The cells.
        numeric: How many of the last columns hold numbers.
        spare: Columns that may be left out, the first one first.
        width: Of the terminal; None where there is none: then each row is one line.
    """
    first_number = len(columns) - numeric
    if width is None:
        return _table(columns, rows, first_number, None)
    for names in (set(spare[:n]) for n in range(len(spare) + 1)):
        shown = [i for i, name in enumerate(columns) if name not in names]
        headers = [columns[i] for i in shown]
        first = sum(i < first_number for i in shown)
        for marks in (_WHOLE, _COUNTS):
            cells = [[_on_lines(row[i], marks, i >= first_number) for i in shown] for row in rows]
            table, needed = _table(headers, cells, first, width if marks else None)
            if needed <= width:
                return table, needed
    cells = [[_on_lines(row[i], _SPREADS, i >= first_number) for i in shown] for row in rows]
    table, needed = _table(headers, cells, first, width)
    if needed <= width:
        return table, needed
    return _table([header.replace("_", "_\n") for header in headers], cells, first, width)


def _table(
    headers: Sequence[str], cells: Sequence[Sequence[str]], first: int, width: int | None
) -> tuple["Table", int]:
    """A table and its width; with a width, its text is broken between words to keep to it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    heads = ["\n".join(short_lines(header)) for header in headers]
    texts = [[head, *(row[i] for row in cells)] for i, head in enumerate(heads)]
    widest = [_longest(text.splitlines() for text in column) for column in texts]
    least = [
        most if i >= first else _longest(text.split() for text in column)
        for i, (column, most) in enumerate(zip(texts, widest, strict=True))
    ]
    if width is not None:
        widest = _shared(widest, least, width - _GAP * (len(heads) - 1))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for i, head in enumerate(heads):
        side: Literal["left", "right"] = "right" if i >= first else "left"
        table.add_column(Text(head), justify=side, width=widest[i])
    for row in cells:
        table.add_row(*map(Text, row))
    return table, sum(widest) + _GAP * (len(heads) - 1)


def _shared(widest: list[int], least: list[int], room: int) -> list[int]:
    """Widths in the room: what lacks is taken from the widest column that has some to give."""
    widths = list(widest)
    while sum(widths) > room:
        giving = [i for i in range(len(widths)) if widths[i] > least[i]]
        if not giving:
            break
        widths[max(giving, key=lambda i: widths[i])] -= 1
    return widths


def _longest(pieces: Iterable[Sequence[str]]) -> int:
    return max((len(piece) for some in pieces for piece in some), default=0)


def _on_lines(cell: str, marks: Sequence[str], is_number: bool) -> str:
    """A number that goes on below at each of these marks."""
    for mark in marks if is_number else ():
        cell = cell.replace(mark, f"\n{mark.strip()}")
    return cell


def short_lines(name: str) -> list[str]:
    """``model.embed_dim`` and ``accuracy up to 2×`` in two short lines; a word stays whole."""
    words = re.sub(r"(\.|/(?=\w\w))|(?<!,) +", lambda found: (found[1] or "") + "\n", name)
    lines: list[str] = []
    room = max(_SHORT, _longest([words.splitlines()]))
    for word in words.splitlines():
        begun = lines[-1] + ("" if lines[-1][-1:] in "./_" else " ") + word if lines else word
        lines[-1:] = [begun] if len(begun) <= room else [*lines[-1:], word]
    return lines
