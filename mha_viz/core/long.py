"""Attention maps of sequences too long to be kept whole: pooled, or some rows of them, without an L × S matrix ever being made.

One pass over blocks of query rows, which ``mha_viz.core.rows`` makes: what is wanted of them is taken, and the next block overwrites
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from mha_viz.core.arrays import as_array, read_only
from mha_viz.core.attend import call_of
from mha_viz.core.call import Call
from mha_viz.core.mask import Mask
from mha_viz.core.rows import Block, Maps, Read, averages, blocks
from mha_viz.core.rules import Shape, Wrong, listed, of_kind, whole
from mha_viz.core.sight import CELLS, Sight
from mha_viz.core.trace import Trace

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.arrays import Numbers
    from mha_viz.core.intervention import Off

MOST = 512  # blocks along a side of a pooled map


@dataclass(frozen=True, eq=False)
class Pooled:
    """The map of one ``head`` (None: the average of all) of batch item ``item`` by the blocks of what is in ``sight``, read-only.

    ``largest`` and ``mean`` are of the weights in each block, those of undefined rows left out. NaN where all rows of a
    block are ``undefined``, and where one of them is not finite though its query has a key.
    ``hidden`` is True where no query of the block may see any key of it. Where the sight is exact a block is one
    cell, and both are its weight.
    """

    item: int
    head: int | None
    sight: Sight
    largest: Float[np.ndarray, "rows columns"]
    mean: Float[np.ndarray, "rows columns"]
    hidden: Bool[np.ndarray, "rows columns"]
    undefined: Bool[np.ndarray, " rows"]


@dataclass(frozen=True)
class Step:
    """How far a map has come: ``done``, 0 to 1, of the ``head`` (None: the average), and the Pooled map once it is ``found``."""

    head: int | None
    done: float
    found: Pooled | None = None


class Looked(TypedDict, total=False):
    """What is looked at of a map, and in how many blocks: the options of ``pooling``."""

    item: int
    shape: tuple[int, int]
    rows: tuple[int, int] | None
    columns: tuple[int, int] | None
    lengths: Numbers | None
    read: Read | None


def pooled(attention: Call | Trace, heads: Iterable[int] | None = None, **how: Unpack[Looked]) -> Iterator[Pooled]:
    """The Pooled maps of ``heads``, all of them where None, one after another: stop iterating, and no more is computed.

    Equal to pooling the softmax of the whole, to 1e-6 in float32. ``attention`` is a Call, or a Trace that holds q and k. ``how`` is as
    in ``pooling``: the batch ``item``, the ``shape`` of the pooled map, and the ``rows`` and ``columns`` that are in sight of it.
    Raises Wrong for what there is not.

    >>> import mha_viz as mv
    >>> trace = mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=64, padding=()))
    >>> for found in mv.pooled(trace, shape=(4, 4)):
    ...     print(found.head, found.largest.shape, bool(found.largest.max() == trace.weights[0, found.head].max()))
    0 (4, 4) True
    1 (4, 4) True
    """
    return (step.found for step in pooling(attention, heads, **how) if step.found is not None)


def pooling(
    attention: Call | Trace,
    heads: Iterable[int] | None = None,
    *,
    item: int = 0,
    shape: tuple[int, int] = (CELLS, CELLS),
    rows: tuple[int, int] | None = None,
    columns: tuple[int, int] | None = None,
    lengths: Numbers | None = None,
    read: Read | None = None,
) -> Iterator[Step]:
    """The Steps to the Pooled maps of ``heads``, one after every block of rows: whoever stops in between may go on later.

    ``attention`` is a Call, or a Trace that holds q and k; ``shape`` how many blocks a map has at most, down and across. ``rows`` and
    ``columns``, (start, stop) of each, are the queries and keys in sight, all where None, the extra columns among them: no others are
    computed, and where they are no more than blocks each cell is exact. ``lengths`` [H, S] multiply the weights of each row, which
    then is divided by its sum. ``read(head, block)`` hears every Block of rows on the way, for what else is wanted of them.

    Raises Wrong, at once, for an item, a head, rows or a shape that there is not.
    """
    maps, sight = _looked_at(attention, item, shape, rows, columns, lengths)
    H = maps.call.num_heads
    chosen = [whole("heads", head, 0, H - 1) for head in _listed("heads", range(H) if heads is None else heads)]
    return (step for head in chosen for step in _steps(maps, sight, head, blocks(maps, head, *sight.rows, read)))


def averaging(
    attention: Call | Trace,
    *,
    item: int = 0,
    shape: tuple[int, int] = (CELLS, CELLS),
    rows: tuple[int, int] | None = None,
    columns: tuple[int, int] | None = None,
    lengths: Numbers | None = None,
    read: Read | None = None,
) -> Iterator[Step]:
    """The Steps to the Pooled map of the average of all heads; all of them are computed once more for it, rows by rows.

    ``read(None, block)`` hears every Block with the rows of all heads, p [H, rows, seen]. The rest is as in ``pooling``.
    """
    maps, sight = _looked_at(attention, item, shape, rows, columns, lengths)
    return _steps(maps, sight, None, averages(maps, *sight.rows, read))


def _steps(maps: Maps, sight: Sight, head: int | None, rows: Iterable[Block]) -> Iterator[Step]:
    """The Steps to the Pooled map that these rows, Blocks, make."""
    sums, (start, stop) = Sums(sight, partial(maps.keyless, head)), sight.rows
    for block in rows:
        sums.add(block)
        end = block.start + len(block.p)
        if end < stop:
            yield Step(head, (end - start) / (stop - start))
    hidden = _hidden(maps.mask if head is None else maps.mask.alone(0, head), sight)
    largest, mean = sums.pooled()
    yield Step(head, 1.0, Pooled(maps.item, head, sight, largest, mean, read_only(hidden), sums.undefined))


class Sums:
    """What is taken of rows on their way into the blocks of a Sight. ``keyless(start, stop)`` tells which of these have no key."""

    def __init__(self, sight: Sight, keyless: Callable[[int, int], Bool[np.ndarray, " rows"]]) -> None:
        self.sight, self.keyless, shape = sight, keyless, (sight.pool.rows, sight.pool.columns)
        self.largest, self.total = (np.zeros(shape) for _ in range(2))  # [rows, columns] each
        self.defined = np.zeros(shape[0], int)  # how many rows of each block have a distribution
        self.nonfinite = np.zeros(shape[0], bool)  # blocks with a row that has a key and no distribution
        self.reduced: np.ndarray | None = None

    def add(self, block: Block) -> None:
        """Take what is wanted of these rows."""
        pool, (top, (left, right)) = self.sight.pool, (self.sight.rows[0], self.sight.columns)
        blank = block.blank  # [n]
        if blank.any():
            block.p[blank] = 0
        down, bounds = pool.touched(0, block.start - top, block.start - top + len(block.p))
        self.defined[down] += np.diff(bounds) if not blank.any() else np.add.reduceat(~blank, bounds[:-1], dtype=int)
        if blank.any():
            odd = blank & ~self.keyless(block.start, block.start + len(blank))  # [n]
            self.nonfinite[down] |= np.logical_or.reduceat(odd, bounds[:-1])
        n = len(bounds) - 1
        for keys, p in block.parts():
            low, high = max(keys.start, left), min(keys.stop, right)
            if low >= high:
                continue
            p = p[:, low - keys.start : high - keys.start]  # [n, columns in sight]
            across, edges = pool.touched(1, low - left, high - left)
            if (
                self.reduced is None or self.reduced.shape[1] < n
            ):  # fresh memory for each block of rows costs as much as what is done
                self.reduced = np.empty((2, n + 1, pool.S), p.dtype)
            most, sums = self.reduced[:, :n, : p.shape[1]]  # [blocks down, columns] each
            for i, (first, last) in enumerate(pairwise(bounds.tolist())):
                np.maximum.reduce(p[first:last], axis=0, out=most[i])
                np.add.reduce(p[first:last], axis=0, out=sums[i])
            largest, total = self.largest[down, across], self.total[down, across]
            np.maximum(largest, np.maximum.reduceat(most, edges[:-1], axis=1), out=largest)
            total += np.add.reduceat(sums, edges[:-1], axis=1)

    @property
    def undefined(self) -> Bool[np.ndarray, " rows"]:
        """Blocks in which no row has a key."""
        return read_only((self.defined == 0) & ~self.nonfinite)

    def pooled(self) -> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, "rows columns"]]:
        """(largest, mean), float32."""
        with np.errstate(invalid="ignore"):  # 0 / 0 where no row is defined
            mean = self.total / (self.defined[:, None] * np.diff(self.sight.pool.starts(1)))
        self.largest[(self.defined == 0) | self.nonfinite] = mean[self.nonfinite] = np.nan
        return read_only(self.largest.astype(np.float32)), read_only(mean.astype(np.float32))


def rows_of(attention: Call | Trace, start: int, stop: int) -> Call:
    """A Call of the queries ``start`` to ``stop`` alone, which sees every key as they do in ``attention``: nothing of it is pooled."""
    call = _call(attention)
    L = call.q.shape[2]
    start, stop = _span("rows", (start, stop), L)
    mask, tokens = call.mask, call.tokens
    bias = mask.added(start, stop)
    dense = mask.hidden(start, stop)[..., : mask.num_keys]  # [1|N, 1|H, rows, S without extra]
    own = Mask(stop - start, mask.num_keys, mask.extra, dense=dense, bias=bias)
    sight = Sight.of(L, call.k.shape[2], rows=(start, stop), shape=(stop - start, call.k.shape[2]))
    return replace(call, q=call.q[:, :, start:stop], mask=own, tokens=tokens.seen(sight))


def _hidden(mask: Mask, sight: Sight) -> Bool[np.ndarray, "rows columns"]:
    """Blocks of which every cell is hidden by a Mask in all of its heads."""
    down, across = (sight.starts(side) for side in (0, 1))
    if mask.dense is not None or mask.may_spare:
        rows = np.stack([mask.hidden(*ends)[0].all(axis=(0, 1)) for ends in pairwise(down)])  # [rows, S]
        return np.logical_and.reduceat(rows[:, slice(*sight.columns)], across[:-1] - across[0], axis=1)
    visible = np.ones(mask.num_keys, bool) if mask.padded is None else ~mask.padded[0]  # [S without extra]
    before = np.append(0, np.cumsum(visible))  # [S without extra + 1]
    first, last = (keys[:, None] for keys in mask.reach(down[:-1], down[1:]))  # [rows, 1] each
    low = np.minimum(np.maximum(across[:-1], first), last)  # [rows, columns]
    high = np.minimum(np.maximum(across[1:], first), last)  # [rows, columns]
    hidden: np.ndarray = (before[high] == before[low]) & (across[1:] <= mask.num_keys)
    return hidden


def _looked_at(
    attention: Call | Trace,
    item: int,
    shape: tuple[int, int],
    rows: tuple[int, int] | None,
    columns: tuple[int, int] | None,
    lengths: Numbers | None,
) -> tuple[Maps, Sight]:
    """(Maps, Sight) of one batch item."""
    call = _call(attention)
    (N, _, L, _), S = call.q.shape, call.k.shape[2]
    item = whole("item", item, 0, N - 1)
    high, wide = (whole("shape", most, 1, MOST) for most in _listed("shape", shape, 2))
    rows = None if rows is None else _span("rows", rows, L)
    columns = None if columns is None else _span("columns", columns, S)
    weighted = None if lengths is None else as_array("lengths", lengths)
    if weighted is not None and weighted.shape != (call.num_heads, S):
        raise Wrong("lengths", Shape(weighted.shape), f"must be [H, S] = {(call.num_heads, S)}.")
    off = () if isinstance(attention, Call) else attention.off
    check_off(off)
    return Maps(call, item, weighted, dict(off)), Sight.of(L, S, rows, columns, (high, wide))


def check_off(off: Off) -> None:
    """Raises Wrong where a head is off in a way that needs all rows at once; ``off`` is as in Intervention."""
    mean = [head for head, way in off if way == "mean"]
    if mean:
        rule = (
            f"puts head {mean[0]} off by the mean of all rows of the batch, which are never there whole: take zero or uniform."
        )
        raise Wrong("off", off, rule, [{"off": tuple((dict(off) | dict.fromkeys(mean, "zero")).items())}])


def _call(attention: Call | Trace) -> Call:
    if isinstance(attention, Call):
        return attention
    of_kind("attention", attention, Trace)
    if not attention.has("q", "k"):
        rule = "needs q and k, and has none: its source knows the weights alone, which are there whole."
        raise Wrong("attention", attention.name, rule)
    return call_of(attention)


def _listed(argument: str, value: object, count: int | None = None) -> tuple[Any, ...]:
    """``value`` as a tuple, of ``count`` entries where that is given; raises Wrong where it is none."""
    right = [{argument: (value,) * (count or 1)}] if isinstance(value, int) else []
    entries = listed(argument, value, "must be a list of whole numbers.", right)
    if count is not None and len(entries) != count:
        right = [{argument: (entries + entries[-1:] * count)[:count]}] if entries else []
        raise Wrong(argument, entries, f"must be {count} whole numbers.", right)
    return entries


def _span(argument: str, value: object, most: int) -> tuple[int, int]:
    start, stop = _listed(argument, value, 2)
    start = whole(argument, start, 0, most - 1)
    return start, whole(argument, stop, start + 1, most)
