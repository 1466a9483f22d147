"""The rows of a Trace that statistics read: those of real queries, and which keys they may see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.difference import real_queries
from mha_viz.analysis.parts import in_parts

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from mha_viz.core.tokens import Tokens
    from mha_viz.core.trace import Trace

HIDING = -10_000  # an added bias below this, −1e9 or the smallest float, is a hidden key spelled as a number


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one ``item``'s real ``queries`` [R], all of them or some, whose names are in ``tokens``.

    p [H, R, S] probabilities; seen [H, R, S] bool, the keys that a row may see; reachable [S without extra] bool, the positions that
    any real query may see.
    """

    tokens: Tokens
    item: int
    queries: Int[np.ndarray, " R"]
    p: Float[np.ndarray, "H R S"]
    seen: Bool[np.ndarray, "H R S"]
    reachable: Bool[np.ndarray, " S-extra"]

    @classmethod
    def of(cls, trace: Trace, item: int, heads: slice = slice(None)) -> Rows:
        """All rows of these ``heads``, a slice of them, at once."""
        queries = np.flatnonzero(real_queries(trace, item))  # [R]
        return cls._of(trace, item, heads, queries, _reachable(trace, item))

    @classmethod
    def parts(cls, trace: Trace, item: int) -> Iterator[Rows]:
        """All rows of all heads, as many at once as are read at a time."""
        queries, reachable = np.flatnonzero(real_queries(trace, item)), _reachable(trace, item)
        for some in in_parts(queries, trace.probabilities[item, :, 0].size):
            yield cls._of(trace, item, slice(None), some, reachable)

    @classmethod
    def _of(
        cls, trace: Trace, item: int, heads: slice, queries: Int[np.ndarray, " R"], reachable: Bool[np.ndarray, " S-extra"]
    ) -> Rows:
        return cls(
            trace.tokens,
            item,
            queries,
            trace.probabilities[item, heads][:, queries],
            _seen(trace, item, heads, queries),
            reachable,
        )

    @cached_property
    def choice(self) -> Bool[np.ndarray, "H R"]:
        """Rows that see more than one key."""
        several: Bool[np.ndarray, "H R"] = self.seen.sum(axis=-1) > 1
        return several

    @property
    def num_keys(self) -> int:
        """How many columns are positions, the extra ones not."""
        return len(self.reachable)

    @property
    def position(self) -> Int[np.ndarray, " R"] | None:
        """The key at which each query stands; None where queries and keys share no positions."""
        return None if self.tokens.positions is None else self.tokens.positions[self.queries]


def _seen(trace: Trace, item: int, heads: slice, queries: Int[np.ndarray, " R"]) -> Bool[np.ndarray, "H R S"]:
    """The keys that these queries may see in these heads, a slice of them."""
    seen = ~trace.mask[item, heads][:, queries]  # [H, R, S]
    if trace.mask_bias is not None:
        seen &= trace.mask_bias[item, heads][:, queries] > HIDING
    return seen


def _reachable(trace: Trace, item: int) -> Bool[np.ndarray, " S-extra"]:
    """Positions that any real query may see."""
    queries, found = np.flatnonzero(real_queries(trace, item)), np.zeros(trace.num_positions, bool)
    for some in in_parts(queries, trace.probabilities[item, :, 0].size):
        found |= _seen(trace, item, slice(None), some)[..., : trace.num_positions].any(axis=(0, 1))
    return found
