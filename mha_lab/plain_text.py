"""Where only ASCII can be written: our few other characters become such as are like them."""

import codecs
import io
import sys

_PLAIN = {
    "·": "-", "–": "-", "…": "...", "±": "+-", "×": "x", "→": "->", "★": "*", "━": "=", "─": "-",
    "╸": "=", "╺": " ", "≥": ">=", "≤": "<=", "√": "sqrt ", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
_NAME = "mha_lab.plain"


def write_plainly() -> None:
    """Let nothing that is printed fail for its characters, whatever PYTHONIOENCODING says."""
    codecs.register_error(_NAME, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors=_NAME)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    asked = error.object[error.start : error.end]
    known = "".join(_PLAIN.get(one, f"\\u{ord(one):04x}") for one in asked)
    return known, error.end
