"""Attention maps of sequences too long to be kept whole: pooled, or a window of them, without an L × S matrix ever being made.

One pass over blocks of query rows. A block's scores go into one scratch; masks are added where they change anything; softmax runs
in place; what is wanted of the rows is taken from them, and the next block overwrites them. Keys that causal or window hide from a
whole block are neither multiplied nor read.

``python -m tests.bench long`` times it, and it is this way because of that. ``torch.softmax`` in place takes 0.56 ns a cell, where
maximum, difference, exp and sum one by one take 1.2. Reducing the rows of a block first, along contiguous columns, takes 0.1 ns a
cell; columns first 1.1, as soon as there are few cells to a block. 256 rows are multiplied by 2,048 keys at once: fewer rows waste
up to a third of the product's time, more keys leave the caches. With that the product itself is two thirds of all, at full speed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from mha_viz.core.arrays import read_only
from mha_viz.core.attend import call_of
from mha_viz.core.call import Call
from mha_viz.core.pool import Pool
from mha_viz.core.rules import Wrong, whole

SCRATCH = 2**21  # numbers, 8 MiB in float32
ROWS, KEYS = 256, 2048  # that are multiplied at once
SIDE = 128  # of a window where nobody says
MOST = 512  # blocks along a side of a pooled map


@dataclass(frozen=True, eq=False)
class Pooled:
    """The map of one ``head`` of batch item ``item`` by the blocks of its ``pool``, NumPy and read-only.

    ``largest`` and ``mean`` [rows, columns] of the probabilities in each block, those of undefined rows left out; NaN where all rows
    of a block are undefined. ``hidden`` [rows, columns] bool is True where no query of the block may see any key of it.
    """

    item: int
    head: int
    pool: Pool
    largest: np.ndarray
    mean: np.ndarray
    hidden: np.ndarray


def pooled(attention, heads=None, *, item=0, shape=(256, 256), read=None):
    """The Pooled maps of ``heads``, all of them where None, one after another: stop iterating, and no more is computed.

    ``read(head, block)`` hears every Block of rows on the way, for what else is wanted of them in the same pass.

    ``attention`` is a Call, or a Trace that holds q and k; ``shape`` how many blocks a map has at most, down and across. Equal to
    pooling the softmax of the whole, to 1e-6 in float32. Raises Wrong, at once, for an item, a head or a shape that there is not.
    """
    call = _call(attention)
    N, H, L, _ = call.q.shape
    item = whole("item", item, 0, N - 1)
    heads = [whole("heads", head, 0, H - 1) for head in _listed("heads", range(H) if heads is None else heads)]
    rows, columns = (whole("shape", most, 1, MOST) for most in _listed("shape", shape, 2))
    pool = Pool.fitting(L, call.k.shape[2], rows, columns)
    return (_pooled(call, item, head, pool, read) for head in heads)


@dataclass(frozen=True, eq=False)
class Window:
    """Some queries and keys of a map, (start, stop) of each, stop not included: ``p`` [rows, columns] are their exact probabilities, NaN
    in undefined rows; ``hidden`` [rows, columns] and ``undefined`` [rows] bool say what the mask takes away. NumPy, read-only."""

    item: int
    head: int
    rows: tuple[int, int]
    columns: tuple[int, int]
    p: np.ndarray
    hidden: np.ndarray
    undefined: np.ndarray


def window(attention, head, rows, columns, *, item=0):
    """The Window of these ``rows`` and ``columns`` of one head's map; only these rows are computed.

    ``rows`` and ``columns`` are (start, stop); the extra columns count as well. Raises Wrong for what is not there.
    """
    call = _call(attention)
    N, H, L, _ = call.q.shape
    item, head = whole("item", item, 0, N - 1), whole("head", head, 0, H - 1)
    (start, stop), (first, last) = _span("rows", rows, L), _span("columns", columns, call.k.shape[2])
    found = np.zeros((stop - start, last - first), np.float64 if call.q.dtype == np.float64 else np.float32)  # [rows, columns]
    for block in blocks(call, item, head, start, stop):
        part = found[block.start - start :][: len(block.p)]
        for keys, p in block.parts():
            low, high = max(keys.start, first), max(min(keys.stop, last), max(keys.start, first))
            part[:, low - first : high - first] = p[:, low - keys.start : high - keys.start]
        part[block.undefined] = np.nan
    hidden = call.mask.alone(item, head).hidden(start, stop)[0, 0]  # [rows, S]
    about = (read_only(found), read_only(hidden[:, first:last]), read_only(hidden.all(axis=1)))
    return Window(item, head, (start, stop), (first, last), *about)


def around(pool, query, key):
    """(rows, columns), each (start, stop), of a window of at most SIDE a side around a cell."""
    starts = (max(0, min(place - SIDE // 2, cells - SIDE)) for place, cells in ((query, pool.L), (key, pool.S)))
    return tuple((start, min(start + SIDE, cells)) for start, cells in zip(starts, (pool.L, pool.S), strict=True))


def striking(found):
    """(query, key) in the middle of a block worth a look: the largest of those half way down, where causal rows see some keys, not one."""
    row = found.pool.rows // 2
    return found.pool.middle(row, int(np.nan_to_num(found.largest[row], nan=-1).argmax()))


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a map, those of the queries from ``start`` on: ``p`` [rows, seen] are their probabilities for real keys from
    ``first``, then for the ``extra`` columns; every other key is hidden from all of them. It is overwritten by the next."""

    start: int
    first: int
    extra: slice
    p: np.ndarray

    @property
    def undefined(self):
        """[rows] bool: rows without a distribution, NaN throughout."""
        return np.isnan(self.p[:, 0]) if self.p.shape[1] else np.ones(len(self.p), bool)

    def parts(self):
        """(columns of the map, p [rows, as many]) for the run of real keys and that of the extra columns."""
        real = self.p.shape[1] - (self.extra.stop - self.extra.start)
        for keys, p in ((slice(self.first, self.first + real), self.p[:, :real]), (self.extra, self.p[:, real:])):
            if p.shape[1]:
                yield keys, p


@torch.no_grad()
def blocks(call, item, head, start=0, stop=None) -> Iterator[Block]:
    """The rows of one head's map, ``start`` to ``stop``, a Block at a time."""
    dtype = torch.float64 if call.q.dtype == np.float64 else torch.float32
    S, stop = call.k.shape[2], call.q.shape[2] if stop is None else stop
    mask = call.mask.alone(item, head)
    real, extra = mask.num_keys, slice(mask.num_keys, S)
    k = torch.tensor(call.k[item, head * call.k.shape[1] // call.num_heads]).to(dtype).T  # [D, S]
    skips = bool(torch.isfinite(k.sum()))  # −inf added to NaN is NaN: a key may make rows NaN from which it is hidden
    step = min(ROWS, max(1, SCRATCH // S), stop - start)
    scratch = torch.empty(step * S, dtype=dtype)
    for row in range(start, stop, step):
        end = min(row + step, stop)
        first, last = map(int, mask.reach(row, end)) if skips else (0, real)
        s = scratch[: (end - row) * (last - first + mask.extra)].view(end - row, -1)  # [rows, seen]
        q = torch.tensor(call.q[item, head, row:end]).to(dtype) * call.scale  # [rows, D]
        for key in range(first, last, KEYS):
            keys = slice(key, min(key + KEYS, last))
            torch.mm(q, k[:, keys], out=s[:, key - first : keys.stop - first])
        if mask.extra:
            torch.mm(q, k[:, extra], out=s[:, last - first :])
        mask.apply(s[:, : last - first].numpy(), row, first)
        yield Block(row, first, extra, torch.softmax(s, dim=-1, out=s).numpy())


def _pooled(call, item, head, pool, read):
    largest, total = (np.zeros((pool.rows, pool.columns)) for _ in range(2))  # [rows, columns] each
    reduced = None
    defined = np.zeros(pool.rows, int)  # how many rows of each block have a distribution
    for block in blocks(call, item, head):
        if read is not None:
            read(head, block)
        undefined = block.undefined  # [n]
        if undefined.any():
            block.p[undefined] = 0
        down, bounds = pool.touched(0, block.start, block.start + len(block.p))
        defined[down] += np.diff(bounds) if not undefined.any() else np.add.reduceat(~undefined, bounds[:-1], dtype=int)
        for keys, p in block.parts():
            across, edges = pool.touched(1, keys.start, keys.stop)
            n = len(bounds) - 1
            if reduced is None or reduced.shape[1] < n:
                reduced = np.empty(
                    (2, n + 1, pool.S), p.dtype
                )  # fresh memory for each block of rows costs as much as what is done in it
            high, sums = reduced[:, :n, : p.shape[1]]  # [blocks down, columns] each
            for i, (first, last) in enumerate(pairwise(bounds.tolist())):
                np.maximum.reduce(p[first:last], axis=0, out=high[i])
                np.add.reduce(p[first:last], axis=0, out=sums[i])
            largest[down, across] = np.maximum(largest[down, across], np.maximum.reduceat(high, edges[:-1], axis=1))
            total[down, across] += np.add.reduceat(sums, edges[:-1], axis=1)
    empty = defined == 0
    largest[empty] = np.nan
    with np.errstate(invalid="ignore"):  # 0 / 0 where no row is defined
        mean = total / (defined[:, None] * np.diff(pool.starts(1)))
    mask = call.mask.alone(item, head)
    return Pooled(
        item, head, pool, *(read_only(a) for a in (largest.astype(np.float32), mean.astype(np.float32), _hidden(mask, pool)))
    )


def _hidden(mask, pool):
    """[rows, columns] bool: blocks of which every cell is hidden by the Mask of one head."""
    down, across = pool.starts(0), pool.starts(1)
    if mask.dense is not None:
        rows = np.stack([mask.hidden(*ends)[0, 0].all(axis=0) for ends in pairwise(down)])  # [rows, S]
        return np.logical_and.reduceat(rows, across[:-1], axis=1)
    visible = np.ones(mask.num_keys, bool) if mask.padded is None else ~mask.padded[0]  # [S without extra]
    before = np.append(0, np.cumsum(visible))  # [S without extra + 1]
    first, last = (keys[:, None] for keys in mask.reach(down[:-1], down[1:]))  # [rows, 1] each
    low = np.minimum(np.maximum(across[:-1], first), last)  # [rows, columns]
    high = np.minimum(np.maximum(across[1:], first), last)  # [rows, columns]
    return (before[high] == before[low]) & (across[1:] <= mask.num_keys)


def _call(attention):
    if isinstance(attention, Call):
        return attention
    if not attention.has("q", "k"):
        rule = "needs q and k, and has none: its source knows the weights alone, which are there whole."
        raise Wrong("attention", attention.name, rule)
    if attention.off:
        raise Wrong("attention", attention.name, "has heads that are off, and what they would show is not what q and k say.")
    return call_of(attention)


def _listed(argument, value, count=None):
    """``value`` as a tuple, of ``count`` entries where that is given; raises Wrong where it is none."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise Wrong(argument, value, "must be a list of whole numbers.", [{argument: (value,) * (count or 1)}])
    value = tuple(value)
    if count is not None and len(value) != count:
        raise Wrong(
            argument,
            value,
            f"must be {count} whole numbers.",
            [{argument: (value + value[-1:] * count)[:count]}] if value else [],
        )
    return value


def _span(argument, value, most):
    start, stop = _listed(argument, value, 2)
    start = whole(argument, start, 0, most - 1)
    return start, whole(argument, stop, start + 1, most)
