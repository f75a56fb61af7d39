"""Tables of a page: readable on a phone, and by those who hear them."""

import html as escapes
import re

LONG = 40
"""A cell of more letters has its sentences in lines that are not too short."""


def readable(html: str) -> str:
    """Mark cells of many letters as long, and make no header of what names nothing.

    Args:
        html: what a page holds.
    """
    html = re.sub(r"<th([^>]*)>\s*</th>", r"<td\1></td>", html)
    return re.sub(r"<td([^>]*)>(.*?)</td>", _cell, html, flags=re.DOTALL)


def _cell(found: re.Match[str]) -> str:
    text = escapes.unescape(re.sub(r"<[^>]*>", "", found[2]))
    is_long = len(text) > LONG and "class=" not in found[1]
    return f'<td{found[1]} class="long">{found[2]}</td>' if is_long else found[0]
