"""What the average of the heads hides, said with a number."""

import math
from dataclasses import dataclass

import numpy as np

from mha_viz.analysis.decimals import DIGITS, in_decimals
from mha_viz.analysis.difference import real_queries
from mha_viz.analysis.statistics import silent


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


def what_average_hides(trace, item):
    """The Hidden of one batch item, in the weights that the maps show, over real queries.

    None where the average hides nothing: a single head, no real query, or heads that agree to six digits; and of a part of a longer
    sequence, which says nothing about all of its queries.
    """
    if trace.tokens.sight is not None:
        return None
    queries = np.flatnonzero(real_queries(trace, item))  # [R]
    weights, average = trace.weights[item][:, queries], trace.mean_weights[item][queries]  # [H, R, S], [R, S]
    if weights.size == 0:
        return None
    gap = np.abs(weights - average)  # [H, R, S]
    gap[silent(trace)] = 0  # a head that is off says nothing that could be hidden
    head, row, key = (int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
    weight, mean = float(weights[head, row, key]), float(average[row, key])
    digits = next((n for n in range(2, DIGITS + 1) if in_decimals(weight, n) != in_decimals(mean, n)), None)
    if digits is None:
        return None
    rows, favourite = np.arange(len(queries)), average.argmax(axis=-1)  # [R] each
    overruled = int((weights[:, rows, favourite] < weights.max(axis=-1)).all(axis=0).sum())
    query = int(queries[row])
    sentence = f"In head {head} query {query} gives {_written(weight, digits)} to key {key}; the average says {_written(mean, digits)}."
    if overruled:
        of = f"{overruled} of {len(queries)} queries" if len(queries) > 1 else "the one query"
        sentence += f" In {of} the average's largest weight is on a key that is the largest of no head."
    return Hidden(head, query, key, weight, mean, overruled, len(queries), sentence)


def _written(weight, digits):
    """``weight`` with so many decimals, a small one with as many as show two of its digits."""
    if 0 < weight < 10**-DIGITS:
        return f"less than {10**-DIGITS:.{DIGITS}f}"
    return in_decimals(weight, max(digits, 1 - math.floor(math.log10(weight))) if 0 < weight < 0.01 else digits)
