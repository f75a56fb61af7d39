"""Tokens and names as text that can be drawn."""

import re

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, among them line breaks, and halves of surrogate pairs."""

WRITES = " → "
"""Stands in the label of a row between the token that is read there and the one that is written."""


def printable(text: str) -> str:
    """The same text in one line, with a sign in place of what has no glyph anywhere."""
    return _UNPRINTABLE.sub("␣", text)
