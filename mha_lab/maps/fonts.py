"""Fonts for tokens of every script: matplotlib's own, and of the machine what that lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

import matplotlib
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from mha_lab.maps.printable import printable

MISSING = "▯"
"""Drawn for a sign that no font here has; of an emoji that is joined of several, once."""

OWN = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
"""Comes with matplotlib; has Latin, Greek, Cyrillic, Arabic, Hebrew and many signs."""

_INVISIBLE = {0x200B, 0x200C, 0x200D, 0x2060, *range(0xFE00, 0xFE10)}
"""Joiners and choices of form need no glyph of their own."""

_ALTERED = "[\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]*"
_SIGN = re.compile(rf".{_ALTERED}(?:\u200d.{_ALTERED})*", re.DOTALL)
"""A character with what alters it and what is joined to it, as emoji are."""


@lru_cache(maxsize=4096)
def drawable(text: str) -> str:
    """The same text in one line, with ``MISSING`` in place of what has no glyph here."""
    text = printable(text)
    return text if text.isascii() else _SIGN.sub(_with_glyphs, text)


def families(texts: Iterable[str]) -> list[str]:
    """The names of the fonts that drawable texts need, in the order in which they are tried."""
    files = [OWN, *(font_of(sign) for sign in sorted(set("".join(texts))))]
    return [_name(file) for file in dict.fromkeys(files) if file is not None]


@lru_cache(maxsize=65_536)
def font_of(sign: str) -> Path | None:
    """The first font that has a glyph for a character; None where no font has."""
    code = ord(sign)
    if code in _INVISIBLE or sign.isspace() or code in _codes(OWN):
        return OWN
    return next((file for file in _others() if code in _codes(file)), None)


def _with_glyphs(found: re.Match[str]) -> str:
    signs = found[0]
    if font_of(signs[0]) is None:
        return MISSING
    return "".join(sign for sign in signs if font_of(sign) is not None)


@cache
def _others() -> list[Path]:
    """The machine's fonts: upright sans-serifs of usual weight first."""

    def rank(file: Path) -> tuple[int, str]:
        words = re.findall("[A-Z][a-z]+", file.stem)
        special = sum(word in words for word in ("Bold", "Italic", "Oblique", "Mono", "Light"))
        return 2 * special + ("Sans" not in words), file.name

    return sorted(map(Path, font_manager.findSystemFonts()), key=rank)


@cache
def _codes(file: Path) -> frozenset[int]:
    """The characters that a font has; none where it cannot be drawn at every size."""
    try:
        face = FT2Font(str(file))
        return frozenset(face.get_charmap()) if face.scalable else frozenset()
    except (RuntimeError, OSError):  # damaged, or of a kind that FreeType does not know
        return frozenset()


@cache
def _name(file: Path) -> str:
    """What matplotlib calls a font, which is made known to it."""
    font_manager.fontManager.addfont(str(file))
    return FT2Font(str(file)).family_name
