"""What the average of the heads hides, said with a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.difference import real_queries
from mha_viz.analysis.parts import in_parts
from mha_viz.analysis.statistics import silent
from mha_viz.core.decimals import DIGITS, in_decimals

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace


@dataclass(frozen=True)
class Hidden:
    """Where one head and the average differ most in one item: ``head``, ``query``, ``key``, the head's ``weight`` there and the
    ``average``; and of its real ``queries`` (a count) in how many, ``overruled``, the average's largest weight falls on a key that is
    the largest of no head. ``sentence`` says it."""

    head: int
    query: int
    key: int
    weight: float
    average: float
    overruled: int
    queries: int
    sentence: str


def what_average_hides(trace: Trace, item: int, heads: Sequence[int] | None = None) -> Hidden | None:
    """The Hidden of one batch item, in the weights that the maps show, over real queries, and in one of ``heads``, all where None.

    None where the average hides nothing: a single head, no real query, or heads that agree to six digits; and of a part of a longer
    sequence, which says nothing about all of its queries.
    """
    if trace.tokens.sight is not None:
        return None
    queries = np.flatnonzero(real_queries(trace, item))  # [R]
    maps, average = trace.weights[item], trace.mean_weights[item]  # [H, L, S], [L, S]
    if len(queries) == 0 or 0 in maps.shape:
        return None
    among = range(len(maps)) if heads is None else heads
    largest, (head, query, key), off = -1.0, (among[0], int(queries[0]), 0), silent(trace)
    overruled = np.ones(
        len(queries), bool
    )  # [R] whether the average's largest weight is less than the largest of each head so far
    for one, weights in enumerate(maps):  # [L, S]
        below = []
        for some in in_parts(queries, maps.shape[2]):
            own, mean = weights[some], average[some]  # [some of R, S] each
            favourite = mean.argmax(axis=-1)  # [some of R]
            below.append(own[np.arange(len(some)), favourite] < own.max(axis=-1))
            told = one in among and one not in off  # a head that is off says nothing that could be hidden
            gap = np.abs(own - mean) if told else np.zeros(1)
            place = int(gap.argmax())
            if gap.flat[place] > largest:
                row, column = divmod(place, maps.shape[2])
                largest, (head, query, key) = gap.flat[place], (one, int(some[row]), column)
        overruled &= np.concatenate(below)
    weight, mean = float(maps[head, query, key]), float(average[query, key])
    digits = next((n for n in range(2, DIGITS + 1) if in_decimals(weight, n) != in_decimals(mean, n)), None)
    if digits is None:
        return None
    count = int(overruled.sum())
    sentence = f"In head {head} query {query} gives {_written(weight, digits)} to key {key}; the average says {_written(mean, digits)}."
    if count:
        of = f"{count} of {len(queries)} queries" if len(queries) > 1 else "the one query"
        sentence += f" In {of} the average's largest weight is on a key that is the largest of no head."
    return Hidden(head, query, key, weight, mean, count, len(queries), sentence)


def _written(weight: float, digits: int) -> str:
    """``weight`` with so many decimals, a small one with as many as show two of its digits."""
    if 0 < weight < 10**-DIGITS:
        return f"less than {10**-DIGITS:.{DIGITS}f}"
    return in_decimals(weight, max(digits, 1 - math.floor(math.log10(weight))) if 0 < weight < 0.01 else digits)
