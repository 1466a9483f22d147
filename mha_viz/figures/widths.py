"""How wide texts are in a picture, in the font that it is drawn in: so that what does not fit is said in fewer words.

Nobody has drawn anything yet when a picture is laid out. Of the usual font a table says about how wide its letters are; any other is
looked up among the fonts of this machine, where fontconfig knows them, as on Linux.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

from mha_viz.figures.theme import FONT

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

BOLD = 1.06  # times as wide are bold letters in the usual font
ROOMY = 1.2  # times as wide as in the usual font are letters of one that nobody can look up; DejaVu Serif's are
_NARROW, _WIDE = set("fijlrtI.,:;'|!()[]{}` "), set("mwMW@%—…⏎⇥")
_WORDS = "query asks, key is read, head 0.123456789"
_font: ContextVar[str | None] = ContextVar("font", default=None)  # a family as CSS spells it; None for the usual one


@contextmanager
def drawn_in(font: str | None) -> Iterator[None]:
    """Lays pictures out for another ``font``, a family or several as CSS spells them; None for the usual one."""
    before = _font.set(font)
    try:
        yield
    finally:
        _font.reset(before)


def width_of(text: str, size: float, bold: bool = False) -> float:
    """About how many px ``text`` takes at ``size`` px in the picture's font; of the usual one rather too many than too few."""
    return size * sum(em(c, bold) for c in text)


def widened(px: float) -> int:
    """``px`` that suit words of the usual font, and as many more as the picture's font is wider than that."""
    with drawn_in(None):
        usual = width_of(_WORDS, 1)
    return math.ceil(px * max(width_of(_WORDS, 1) / usual, 1) - 1e-9)


def em(c: str, bold: bool = False) -> float:
    """How wide one character is, to the size of its font."""
    return _em(c, _font.get(), bold)


@cache
def _em(c: str, font: str | None, bold: bool) -> float:
    if unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(c) in "WF":  # which few fonts have: what stands in for those that do not is alike
        return 1.05 if ord(c) < 0x1F000 else 1.4  # emoji are wider than ideographs
    if font is not None and (opened := _opened(font, bold)) is not None:
        return opened.getlength(c) / opened.size
    usual = 0.34 if c in _NARROW else 0.92 if c in _WIDE else 0.7 if c.isupper() else 0.57
    known = font is None or _bare(font).split(",")[0] in _bare(FONT).split(",")
    return usual * (BOLD if bold else 1) * (1 if known else ROOMY)


@cache
def _opened(font: str, bold: bool) -> FreeTypeFont | None:
    """A font of this machine, large enough to measure; None where nobody says which file it is in."""
    if shutil.which("fc-match") is None:
        return None
    from PIL import ImageFont

    escaped = "".join(f"\\{c}" if c in "\\-:" else c for c in _bare(font))
    asked = ["fc-match", "--format", "%{file}\n%{index}", escaped + (":bold" if bold else "")]
    try:
        path, index = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.splitlines()
        return ImageFont.truetype(path, 1000, int(index), layout_engine=ImageFont.Layout.BASIC)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _bare(families: str) -> str:
    """Families without quotes and spaces around them."""
    return ",".join(name.strip(" \"'") for name in families.split(","))
