"""What pictures of an opened number call its tokens, its heads and its values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.number import Derivation
from mha_viz.core.cells import word
from mha_viz.core.decimals import prose
from mha_viz.core.trace import Trace
from mha_viz.figures.labels import Names, name_of

if TYPE_CHECKING:
    from jaxtyping import Bool

Undefined = bool | np.bool_ | None  # whether a row has no key left; None where the source does not know


def tokens_of(trace: Trace, d: Derivation, room: float = math.inf) -> tuple[str, str]:
    """The query and the key as a person reads them, 6 “because”, each text shortened to ``room`` px."""
    query, key = (name_of(trace.tokens, side, d.item, i, room) for side, i in enumerate((d.query, d.key)))
    return query, key


def names_of(trace: Trace, d: Derivation, side: str) -> Names:
    """The Names of all queries, or of all keys."""
    if side == "query":
        return Names.along(trace.tokens, 0, d.item, 96, trace.query_padding[d.item])
    return Names.along(trace.tokens, 1, d.item, 96, np.all(mask_of(trace, d), axis=(0, 1)))


def mask_of(trace: Trace, d: Derivation) -> Bool[np.ndarray, "H L S"]:
    """[H, L, S] bool; all False where the source does not know of masks."""
    return trace.mask[d.item] if trace.has("mask") else np.zeros(trace.weights.shape[1:], bool)


def all_heads(H: int) -> str:
    """So many heads in words."""
    return {1: "the only head", 2: "both heads"}.get(H, f"all {H} heads")


def spelled(value: float, undefined: Undefined = False) -> str:
    """A value to four digits, or in words: 0.2936, 1.044e−11, −∞, NaN; "undefined" for NaN in an ``undefined`` row."""
    if words := word(value, bool(undefined)):
        return words
    return prose(value, ".4f" if abs(value) >= 0.1 else ".4g")
