"""Tokens as texts in a figure: exactly what was typed, made visible and harmless."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.tokens import Tokens
from mha_viz.figures.theme import Theme
from mha_viz.figures.widths import em, width_of

if TYPE_CHECKING:
    from jaxtyping import Bool

SIZE = 13  # px of a token beside a map
_JOINERS = {"\u200c", "\u200d"}  # these shape letters and emoji, and so must stay as they are
_PICTURES = {"\n": "⏎", "\t": "⇥", "\x7f": "␡"}


def visible(text: str) -> str:
    """``text`` with everything that would be invisible, or would rearrange its surroundings, spelled out: ⏎, ⇥, ‹U+202E›."""
    if text.isascii() and text.isprintable() and text == text.strip() and text:
        return text
    if not text:
        return "∅"
    before, after = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    shown = "␣" * before + "".join(map(_visible, text.strip(" "))) + "␣" * (after if before < len(text) else 0)
    right_to_left = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in shown)
    return f"\u2068{shown}\u2069" if right_to_left else shown  # isolated, so that numbers and arrows beside it stay in place


def _visible(c: str) -> str:
    category = unicodedata.category(c)
    if category == "Cc":
        return _PICTURES.get(c) or (chr(0x2400 + ord(c)) if ord(c) < 32 else f"‹U+{ord(c):04X}›")
    if category == "Zs" and c != " ":
        return "␣"
    if category in ("Cf", "Cs", "Zl", "Zp") and c not in _JOINERS:
        return f"‹U+{ord(c):04X}›"
    return c


def numbered(i: int, token: str, room: float = math.inf) -> str:
    """Token ``i`` in plain words: 6 “because”, its text shortened to ``room`` px, or 6 alone where its name says nothing else."""
    name = shorten(visible(token), room, 14)
    return str(i) if name == str(i) else f"{i} “{name}”"


def name_of(tokens: Tokens, side: int, item: int, i: int, room: float = math.inf) -> str:
    """Row (``side`` 0) or column (1) ``i`` of an item's maps in plain words: 6 “because”.

    Its text is shortened to ``room`` px. A block is called by the numbers of its tokens, 128–255.
    """
    text = (tokens.queries, tokens.keys)[side][item][i]
    if tokens.sight is not None and tokens.sight.several[side]:
        return text
    return numbered(tokens.place(side, i), text, room)


def escape(text: str) -> str:
    """``text`` for Plotly, which reads tags and entities, and hands $…$ to MathJax where a page has it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")


def shorten(text: str, room: float, size: float) -> str:
    """``text``, or as much of its beginning as fits into ``room`` px with an ellipsis."""
    if width_of(text, size) <= room:
        return text
    isolated = text.startswith("\u2068")
    room -= width_of("…", size)
    kept = 0
    for c in text:
        room -= size * em(c)
        if room < 0:
            break
        kept += 1
    while 0 < kept < len(text) and (em(text[kept]) == 0 or text[kept - 1] == "\u200d"):
        kept -= 1  # never between the parts of one letter or emoji
    return text[:kept] + "…" + ("\u2069" if isolated else "")


class Names:
    """The tokens along one side of a map, ``texts``, as ``exact`` names on hover and as short ``drawn`` ones.

    ``widest`` is what the widest of those takes, in px at SIZE; ``numbered`` are tokens that only say their place.
    """

    def __init__(
        self,
        tokens: Iterable[str],
        room: float,
        hidden: Bool[np.ndarray, " tokens"],
        first: int = 0,
        blocks: bool = False,
        of_more: bool = False,
    ) -> None:
        """``room`` px for a drawn name; ``hidden`` [tokens] bool, True for names that step back. The tokens are those from number
        ``first`` on; of ``blocks`` each is the numbers of several, "128–255", and drawn as the first of them. They are part ``of_more``
        than is ever there whole."""
        self.of_more = of_more
        self.texts, self.hidden, self.first, self.blocks = list(tokens), hidden.tolist(), first, blocks
        seen = [visible(token) for token in tokens]
        self.exact = [escape(token if blocks else numbered(first + i, token)) for i, token in enumerate(tokens)]
        self.short = [text.partition("–")[0] if blocks else shorten(text, room, SIZE) for text in seen]
        self.numbered = blocks or self.texts == [str(first + i) for i in range(len(seen))]
        self.widest = max(width_of(text, SIZE) for text in self.short)

    @classmethod
    def along(cls, tokens: Tokens, side: int, item: int, room: float, hidden: Bool[np.ndarray, " tokens"]) -> Names:
        """The Names of the rows (``side`` 0) or columns (1) of an item's maps."""
        texts, sight = (tokens.queries, tokens.keys)[side][item], tokens.sight
        if sight is None:
            return cls(texts, room, hidden)
        return cls(texts, room, hidden, first=sight.spans[side][0], blocks=sight.several[side], of_more=True)

    def drawn(self, step: int, theme: Theme) -> tuple[list[int], list[str]]:
        """Tick values and texts of every ``step``-th name."""
        room = step // 2 if self.blocks else 0  # the long number of a last block would reach into the next map's
        places = list(range(0, max(len(self.short) - room, 1), step))
        names = [escape(self.short[i]) for i in places]
        return places, [
            f"<span style='color:{theme.soft}'>{name}</span>" if self.hidden[i] else name
            for i, name in zip(places, names, strict=True)
        ]
