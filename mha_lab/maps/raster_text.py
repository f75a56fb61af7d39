"""Lines of text as palette indices, drawn once and kept."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from mha_lab.maps.fonts import OWN, drawable, font_of
from mha_lab.maps.raster import BLACK, WHITE

FONT_SIZE = 11
LINE = 16
_LONGEST = 160
_PLAIN = re.compile("[\x20-\x7e·…×]*")
_PIECES = re.compile(r"\d|\s+|[^\d\s]+")


@lru_cache(maxsize=4096)
def draw_text(text: str) -> NDArray[np.uint8]:
    """A line of text."""
    text = drawable(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
    if not _PLAIN.fullmatch(text):  # marks combine, and some scripts run to the left: only whole
        return draw_whole(text)
    # Titles change from step to step in their numbers only, so digits are drawn one by one: they
    # are equally wide. The rest is drawn a word at a time, with its kerning.
    return np.hstack([draw_whole(piece) for piece in _PIECES.findall(text)] or [draw_whole("")])


@lru_cache(maxsize=4096)
def draw_whole(text: str) -> NDArray[np.uint8]:
    """A digit, a word, a gap, or a line in a script of its own."""
    runs = _runs(text)
    widths = [round(_font(file).getlength(run)) for file, run in runs]
    image = Image.new("L", (max(1, sum(widths)), FONT_SIZE + 3), 255)
    left = 0
    for (file, run), width in zip(runs, widths, strict=True):
        # All stand on one line, however high their letters are.
        ImageDraw.Draw(image).text((left, FONT_SIZE), run, fill=0, font=_font(file), anchor="ls")
        left += width
    greys = np.asarray(image, dtype=np.uint16) * (WHITE - BLACK) // 255
    return (BLACK + greys).astype(np.uint8)


def _runs(text: str) -> list[tuple[Path, str]]:
    """The text in pieces of one font each: as few as there are fonts that have all their signs."""
    pairs = [(font_of(sign) or OWN, sign) for sign in text]
    return [
        (file, "".join(sign for _, sign in signs))
        for file, signs in groupby(pairs, key=lambda pair: pair[0])
    ]


@lru_cache(maxsize=64)
def _font(file: Path) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(file), FONT_SIZE)
