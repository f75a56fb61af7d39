"""A report as one HTML page that needs nothing else: no script, no outside resource."""

import html
import re
from collections.abc import Sequence
from importlib import resources
from itertools import count

from mha_lab.reporting.document import Attached, Block, Document, Figures, Picture, Table, Text
from mha_lab.table_shape import short_lines

_LONG, _LONG_CELL = ' class="long"', 48  # a cell with more letters may have several lines


def to_page(document: Document) -> str:
    """The whole report as HTML."""
    tables, figures = count(1), count(1)

    def block(one: Block) -> str:
        if isinstance(one, Table):
            return _table(one, next(tables))
        if isinstance(one, Figures):
            return _figures(one, figures)
        if isinstance(one, Attached):
            return f'<p><a href="{html.escape(one.name)}">{_words(one.text)}</a></p>'
        return _text(one)

    sections = [
        f'<section id="{section.anchor}">\n<h2>{_words(section.title)}</h2>\n'
        + "\n".join(block(one) for one in section.blocks)
        + "\n</section>"
        for section in document.sections
    ]
    links = [
        f'<a href="#{section.anchor}">{_words(section.title)}</a>' for section in document.sections
    ]
    style = resources.files("mha_lab.reporting").joinpath("style.css").read_text(encoding="utf-8")
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(document.title)}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header>
<h1>{_words(document.title)}</h1>
<p class="subtitle">{_words(document.subtitle)}</p>
<div class="lead">
{chr(10).join(block(one) for one in document.lead)}
</div>
<nav aria-label="Contents">{"".join(links)}</nav>
</header>
<main>
{chr(10).join(sections)}
</main>
<footer>
{chr(10).join(f"<p>{_words(line)}</p>" for line in document.colophon)}
</footer>
</body>
</html>
"""


def _words(text: str) -> str:
    """Text as text, whatever is in it; words in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _text(one: Text) -> str:
    attribute = ' class="warning"' if one.kind == "warning" else ""
    return f"<p{attribute}>{_words(one.text)}</p>"


def _table(one: Table, number: int) -> str:
    first_numeric = len(one.columns) - one.numeric

    def row(cells: Sequence[str], tag: str) -> str:
        kinds = [
            ' class="number"' if i >= first_numeric else _LONG if len(cell) > _LONG_CELL else ""
            for i, cell in enumerate(cells)
        ]
        return "".join(f"<{tag}{k}>{_cell(c)}</{tag}>" for k, c in zip(kinds, cells, strict=True))

    # Where a header must be broken, it is into two lines and not after each word.
    names = [" ".join(line.replace(" ", "\xa0") for line in _lines(name)) for name in one.columns]
    head = row(names, "th")
    body = "\n".join(f"<tr>{row(cells, 'td')}</tr>" for cells in one.rows)
    caption = f"<b>Table {number}.</b> {_words(one.caption)}"
    kind = ' class="stacked"' if one.stacked else ""
    table = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table {number}">'
        f"<table{kind}><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )
    if one.folded:
        return f"<details><summary>{caption}</summary>\n{table}\n</details>"
    return f'<div class="table"><p class="caption">{caption}</p>\n{table}</div>'


def _lines(header: str) -> list[str]:
    """A header's words in short lines; a key, which has none, in one."""
    return short_lines(header) if " " in header else [header]


def _cell(text: str) -> str:
    """A cell; what follows ± is the lesser part of it."""
    mean, sign, rest = text.partition(" ± ")
    return f'{_words(mean)}<span class="sd"> ± {_words(rest)}</span>' if sign else _words(mean)


def _figures(one: Figures, numbers: "count[int]") -> str:
    return (
        '<div class="figures">\n'
        + "\n".join(_figure(picture, next(numbers)) for picture in one.pictures)
        + "\n</div>"
    )


def _figure(one: Picture, number: int) -> str:
    kind = ' class="wide"' if one.is_wide else ""
    size = (
        f'style="width:{one.width}px"'
        if one.is_wide
        else f'style="max-width:{one.width * 9 // 8}px"'
    )
    return (
        f"<figure{kind}>\n"
        f'<div class="scroll" tabindex="0" role="img" aria-label="{html.escape(one.alt)}">'
        f'<div class="drawing" {size}>{one.svg}</div></div>\n'
        f"<figcaption><b>Figure {number}.</b> {_words(one.caption)}</figcaption>\n</figure>"
    )
