"""A report as Markdown, for a repository or a README."""

import re

from mha_lab.reporting.document import Attached, Block, Document, Figures, Table, Text


def to_markdown(document: Document) -> str:
    """The whole report; its pictures are files beside it."""
    parts = [f"# {escape(document.title)}", escape(document.subtitle)]
    parts += [_block(block) for block in document.lead]
    for section in document.sections:
        parts += [f"## {escape(section.title)}", *(_block(block) for block in section.blocks)]
    parts += ["---", *(escape(line) for line in document.colophon)]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """One table, its columns aligned so that it can be read as it stands."""
    rows = [[escape(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    first_numeric = len(widths) - table.numeric
    lines = [_line(row, widths, first_numeric) for row in rows]
    rule = [
        "-" * (width - 1) + ":" if i >= first_numeric else "-" * width
        for i, width in enumerate(widths)
    ]
    return "\n".join([lines[0], _line(rule, widths, first_numeric), *lines[1:]])


def escape(text: str) -> str:
    """Text that Markdown shows as it is, but for words in backticks."""
    text = re.sub(r"([\\|*<])", r"\\\1", text)
    return " ".join(text.split())


def _line(cells: list[str], widths: list[int], first_numeric: int) -> str:
    padded = [
        cell.rjust(width) if i >= first_numeric else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _block(block: Block) -> str:
    if isinstance(block, Table):
        caption, table = escape(block.caption), markdown_table(block)
        if block.folded:
            return f"<details><summary>{caption}</summary>\n\n{table}\n\n</details>"
        return f"{caption}\n\n{table}"
    if isinstance(block, Figures):
        return "\n\n".join(
            f"![{escape(one.alt)}]({one.name}.png)\n\n{escape(one.caption)}"
            for one in block.pictures
        )
    if isinstance(block, Attached):
        return f"[{escape(block.text)}]({block.name})"
    assert isinstance(block, Text)
    return f"**Note.** {escape(block.text)}" if block.kind == "warning" else escape(block.text)
