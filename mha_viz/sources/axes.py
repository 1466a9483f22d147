"""Which axis of attention maps is which: spelled by letters, put in one order, and said in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from mha_viz.core.rules import Shape, Wrong

if TYPE_CHECKING:
    import numpy as np

LETTERS = ("layer", "N", "H", "L", "S")
GRID = ("L", "S")  # may be named for several axes: queries or keys of a grid, counted row by row
ONE = dict(zip(LETTERS, ("layer", "item", "head", "query", "key"), strict=True))
MANY = dict(zip(LETTERS, ("layers", "items", "heads", "queries", "keys"), strict=True))


def letters_of(axes: object, shape: Sequence[int]) -> tuple[str, ...]:
    """The LETTERS of ``axes``, such as "N H L S" or "NHLS", one for each axis of ``shape``.

    L and S may stand for several axes of a grid. Raises Wrong for other letters, another number of them, and without L or S.
    """
    letters = () if not isinstance(axes, str) else tuple(axes.split() if " " in axes else axes)
    fits = len(letters) == len(shape) and {*letters} <= {*LETTERS} and {*GRID} <= {*letters}
    if fits and all(letters.count(letter) == 1 for letter in letters if letter not in GRID):
        return letters
    usual = {2: ("L S",), 3: ("H L S", "N L S"), 4: ("N H L S", "H L L S"), 5: ("layer N H L S", "N H L L S")}
    rule = (
        f"must name each of the {len(shape)} axes of {Shape(shape)} once: layer, N items, H heads, L queries, S keys. L and S may stand "
        "for two, of a grid."
    )
    raise Wrong("axes", axes, rule, [{"axes": usual_axes} for usual_axes in usual.get(len(shape), ())])


def arranged(array: np.ndarray, letters: Sequence[str]) -> np.ndarray:
    """``array`` as [layers, N, H, L, S]; what ``letters`` do not name is an axis of 1."""
    order = sorted(range(len(letters)), key=lambda i: LETTERS.index(letters[i]))
    return array.transpose(order).reshape(counts(array.shape, letters))  # [layers, N, H, L, S]


def counts(shape: Sequence[int], letters: Sequence[str]) -> tuple[int, ...]:
    """(layers, N, H, L, S) of an array of this ``shape``."""
    return tuple(prod(size for size, own in zip(shape, letters, strict=True) if own == letter) for letter in LETTERS)


def in_words(shape: Sequence[int], letters: Sequence[str]) -> str:
    """What was taken for what: "2 items × 3 heads × 36 queries (6 × 6) × 77 keys"."""
    words = []
    for letter, count in zip(LETTERS, counts(shape, letters), strict=True):
        sizes = [size for size, own in zip(shape, letters, strict=True) if own == letter]
        if sizes:
            grid = f" ({' × '.join(map(str, sizes))})" if len(sizes) > 1 else ""
            words.append(f"{count:,} {(ONE if count == 1 else MANY)[letter]}{grid}")
    return " × ".join(words) + ("" if "H" in letters else ", of one head or averaged")


def looks_like_a_grid(shape: Sequence[int]) -> bool:
    """True where the axes before the last are equal and the last is another: queries of a grid, rather than heads and queries."""
    return len(shape) > 3 and shape[-3] == shape[-2] != shape[-1] and shape[-2] > 1
