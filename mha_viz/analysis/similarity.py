"""Which heads do alike: distances between the maps of heads, within a layer and across layers.

A distance is the Jensen–Shannon divergence between two heads' rows, in parts of ln 2, its mean over the queries that are real in
both: 0 for equal maps, 1 for maps without a key in common (``jensen_shannon``; distances between heads: Clark et al., What Does
BERT Look At?, 2019, section 6). A row with a single key is equal in all heads and draws the mean towards 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.difference import real_queries
from mha_viz.analysis.information import jensen_shannon
from mha_viz.analysis.layers import Traces, traces_of
from mha_viz.core.rules import whole

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.trace import Trace


AT_ONCE = 2**18  # numbers in a piece of work: memory stays small, and what fits into a cache is done soonest


@dataclass(frozen=True)
class Alike:
    """A head and how far it is: its ``trace`` by its place among those that were given, the ``name`` of that, the ``head``, and the
    ``distance`` from 0 to 1, a part of ln 2."""

    trace: int
    name: str
    head: int
    distance: float


@dataclass(frozen=True)
class HeadsLike:
    """``heads``, Alike each, the nearest first; ``notes``, sentences on what was passed over, and on what to keep in mind."""

    heads: tuple[Alike, ...]
    notes: tuple[str, ...]


def head_distances(trace: Trace, item: int) -> Float[np.ndarray, "H H"]:
    """The distance of every head from every other in batch item ``item``, 0 to 1; NaN where it has no real query."""
    rows = trace.probabilities[item][:, real_queries(trace, item)]  # [H, R, S]
    H = len(rows)
    distances = np.zeros((H, H))
    for head in range(H):
        distances[head, head + 1 :] = distances[head + 1 :, head] = _distances(rows[head], rows[head + 1 :])
    return distances if rows.shape[1] else np.full((H, H), np.nan)


def heads_like(traces: Traces, trace: int, head: int, item: int, count: int = 10) -> HeadsLike:
    """The ``count`` heads that are nearest to head ``head`` of ``traces[trace]`` in batch item ``item``, as HeadsLike.

    ``traces`` is a Recording or a sequence of Traces. Of equally near heads the first by Trace and head come first. Traces without
    such an item, with maps of another size, or without a query that is real in both are passed over and noted. Raises Wrong for a
    ``trace``, ``head`` or ``item`` that there is not.
    """
    traces = traces_of(traces)
    own = traces[whole("trace", trace, 0, len(traces) - 1)]
    N, H, L, S = own.probabilities.shape
    whole("head", head, 0, H - 1)
    whole("item", item, 0, N - 1)
    found, notes, renamed = [], [], []
    for i, other in enumerate(traces):
        if item >= len(other.probabilities) or other.probabilities.shape[2:] != (L, S):
            size = " × ".join(map(str, other.probabilities.shape[2:]))
            has_no = f"no {own.tokens.item_name(item)}" if item >= len(other.probabilities) else f"maps of another size, {size}"
            notes.append(f"{other.name} ({i}) has {has_no}.")
            continue
        queries = real_queries(own, item) & real_queries(other, item)  # [L]
        if not queries.any():
            notes.append(f"{other.name} ({i}) has no query that is real, with finite weights, in both.")
            continue
        if (other.query_tokens[item], other.key_tokens[item]) != (own.query_tokens[item], own.key_tokens[item]):
            renamed.append(f"{other.name} ({i})")
        far = _distances(own.probabilities[item, head][queries], other.probabilities[item][:, queries])  # [H]
        found += [Alike(i, other.name, h, d) for h, d in enumerate(far.tolist()) if (i, h) != (trace, head)]
    if renamed:
        notes.append(f"Other tokens stand in {', '.join(renamed)}: rows and keys are compared by position.")
    return HeadsLike(tuple(sorted(found, key=lambda alike: alike.distance)[:count]), tuple(notes))


def _distances(row: Float[np.ndarray, "R S"], rows: Float[np.ndarray, "K R S"]) -> Float[np.ndarray, " K"]:
    """The distances of one head's rows [R, S] from those of K heads [K, R, S], a few queries at a time."""
    R, S = row.shape
    step = max(AT_ONCE // max(S * len(rows), 1), 1)
    total = sum(
        jensen_shannon(rows[:, start : start + step], row[start : start + step]).sum(axis=1, dtype=np.float64)
        for start in range(0, R, step)
    )  # [K]
    return np.clip(total / R, 0, 1) if R else np.full(len(rows), np.nan)
