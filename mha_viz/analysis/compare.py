"""Two Traces, A and B, cell by cell: where they can be compared, and where they differ most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.difference import real_queries
from mha_viz.core.rules import Shape, Wrong, whole
from mha_viz.core.sight import Sight

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace


@dataclass(frozen=True)
class Common:
    """What two Traces have in common: the number of batch ``items``, the ``heads`` whose maps can be compared cell by cell, and
    whether the ``average`` can. ``notes`` are sentences: what cannot be compared and why, and what to keep in mind."""

    items: int
    heads: tuple[int, ...]
    average: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """One cell: weight ``a`` in A, ``b`` in B, ``change`` = b − a. ``head`` is None in the average of all heads."""

    head: int | None
    query: int
    key: int
    a: float
    b: float
    change: float


def common(a: Trace, b: Trace) -> Common:
    """The Common of two Traces. Maps of other sizes, or other parts and blocks of longer ones, share no cells, those of other
    quantities no numbers; other head counts leave the heads of both, and the averages."""
    (items_a, heads_a, *size_a), (items_b, heads_b, *size_b) = a.plain.shape, b.plain.shape
    items, heads, notes = min(items_a, items_b), min(heads_a, heads_b), []
    if items_a != items_b:
        notes.append(f"A has {items_a} batch items and B {items_b}: those from 0 to {items - 1} are in both.")
    if a.quantity != b.quantity:
        notes.append(f"A's cells are {a.quantity}s and B's {b.quantity}s: numbers of two kinds, which no difference relates.")
        return Common(items, (), False, tuple(notes))
    if not same_cells(a, b):
        notes.append(
            f"A's maps are {_size(size_a)} and B's {_size(size_b)} (queries × keys): their cells are not the same pairs of "
            "tokens. The statistics of heads can still be compared."
        )
        return Common(items, (), False, tuple(notes))
    if heads_a != heads_b:
        notes.append(
            f"A has {_count(heads_a)} and B {heads_b}: the average can be compared with the average, and heads from 0 to {heads - 1} "
            "by their number, which says nothing about what they do."
        )
    differing = [n for n in range(items) if (a.query_tokens[n], a.key_tokens[n]) != (b.query_tokens[n], b.key_tokens[n])]
    if differing:
        notes.append(f"The tokens differ in {len(differing)} of {items} batch items: cells are compared by position.")
    return Common(items, tuple(range(heads)), True, tuple(notes))


def same_cells(a: Trace, b: Trace) -> bool:
    """True where each row and column of two Traces' maps stands for the same queries and keys, by their number."""
    return _cells(a) == _cells(b)


def _cells(trace: Trace) -> Sight:
    L, S = trace.weights.shape[2:]
    return trace.tokens.sight or Sight.of(L, S, shape=(L, S))


def largest_changes(a: Trace, b: Trace, item: int, heads: Sequence[int] | None = None, count: int = 10) -> list[Change]:
    """The ``count`` largest changes from A's weights to B's, a list of Change, largest first; equal ones by head, query, key.

    Only queries that are real in both count, and only cells that changed. ``heads`` are indices, None the average against the
    average. Raises Wrong where the two cannot be compared so, with the reason.
    """
    shared = common(a, b)
    whole("item", item, 0, shared.items - 1)
    if not shared.average:
        raise Wrong("B", Shape(b.weights.shape), shared.notes[-1])
    if heads is None:
        maps = a.mean_weights[item][None], b.mean_weights[item][None]  # [1, L, S] each
    else:
        heads = [whole("heads", head, 0, len(shared.heads) - 1) for head in heads]
        maps = a.weights[item, heads], b.weights[item, heads]  # [heads, L, S] each
    queries = np.flatnonzero(real_queries(a, item) & real_queries(b, item))  # [R]
    before, after = (weights[:, queries].astype(np.float64) for weights in maps)  # [heads, R, S] each
    change = after - before  # [heads, R, S]
    size = np.where(np.isfinite(change), np.abs(change), 0).ravel()
    floor = np.partition(size, -count)[-count] if 0 < count < size.size else 0  # ties with the last one are sorted out below
    cells = np.flatnonzero((size >= floor) & (size > 0))
    cells = cells[np.argsort(-size[cells], kind="stable")][:count]
    return [
        Change(
            None if heads is None else heads[head],
            int(queries[row]),
            int(key),
            float(before[head, row, key]),
            float(after[head, row, key]),
            float(change[head, row, key]),
        )
        for head, row, key in zip(*np.unravel_index(cells, change.shape), strict=True)
    ]


def output_change(a: Trace, b: Trace, item: int) -> tuple[float, float] | None:
    """How far a query's output vector moves from A to B, and how long it is in A, each the mean over the queries that are real in both.

    None where an output is not known, or cannot be compared, or no query of this item is real in both.
    """
    if not (a.has("output") and b.has("output")) or a.output.shape != b.output.shape or item >= len(a.output):
        return None
    rows = real_queries(a, item) & real_queries(b, item)  # [L]
    if not rows.any():
        return None
    before, after = (trace.output[item][rows].astype(np.float64) for trace in (a, b))  # [R, E] each
    return float(np.linalg.norm(after - before, axis=1).mean()), float(np.linalg.norm(before, axis=1).mean())


def _count(heads: int) -> str:
    return f"{heads} head{'' if heads == 1 else 's'}"


def _size(size: Iterable[int]) -> str:
    return " × ".join(map(str, size))
