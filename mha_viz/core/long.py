"""Attention maps of sequences too long to be kept whole: pooled, or some rows of them, without an L × S matrix ever being made.

One pass over blocks of query rows. A block's scores go into one scratch; masks are added where they change anything; softmax runs
in place; what is wanted of the rows is taken from them, and the next block overwrites them. Keys that causal or window hide from a
whole block are neither multiplied nor read.

``python -m tests.bench long`` times it, and it is this way because of that. ``torch.softmax`` in place takes 0.56 ns a cell, where
maximum, difference, exp and sum one by one take 1.2. Reducing the rows of a block first, along contiguous columns, takes 0.1 ns a
cell; columns first 1.1, as soon as there are few cells to a block. 256 rows are multiplied by 2,048 keys at once: fewer rows waste
up to a third of the product's time, more keys leave the caches. With that the product itself is two thirds of all, at full speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

import numpy as np
import torch

from mha_viz.core.arrays import as_array, read_only
from mha_viz.core.attend import call_of
from mha_viz.core.call import Call
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Shape, Wrong, listed, of_kind, whole
from mha_viz.core.sight import CELLS, Sight
from mha_viz.core.trace import Trace

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.arrays import Numbers
    from mha_viz.core.intervention import Off, Way

SCRATCH = 2**21  # numbers, 8 MiB in float32
TOGETHER = 4  # times as many where all heads are there at once
ROWS, KEYS = 256, 2048  # that are multiplied at once
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

    Equal to pooling the softmax of the whole, to 1e-6 in float32; ``how`` is as in ``pooling``, which it takes the steps of.
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
    return _steps(maps, sight, None, _averages(maps, *sight.rows, read))


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a map, those of the queries from ``start`` on: ``p`` are their weights for real keys from
    ``first``, then for the ``extra`` columns; every other key is hidden from all of them. It is overwritten by the next."""

    start: int
    first: int
    extra: slice
    p: Float[np.ndarray, "... rows seen"]

    @property
    def blank(self) -> Bool[np.ndarray, "... rows"]:
        """Rows without a distribution, NaN throughout, whether no key is left or a number was not finite."""
        if not self.p.shape[-1]:
            return np.ones(self.p.shape[:-1], bool)
        blank: np.ndarray = np.isnan(self.p[..., 0])
        return blank

    def parts(self) -> Iterator[tuple[slice, Float[np.ndarray, "... rows part"]]]:
        """(columns of the map, p [..., rows, as many]) for the run of real keys and that of the extra columns."""
        real = self.p.shape[-1] - (self.extra.stop - self.extra.start)
        for keys, p in ((slice(self.first, self.first + real), self.p[..., :real]), (self.extra, self.p[..., real:])):
            if p.shape[-1]:
                yield keys, p


Read: TypeAlias = Callable[[int | None, Block], object]  # hears of a head, None all of them at once, and a Block of its rows


@dataclass(frozen=True, eq=False)
class Maps:
    """What the rows of one batch ``item`` are made of: its ``call``, the ``lengths`` that they are weighted by, or None, and the
    heads that are ``off``, each with its way."""

    call: Call
    item: int
    lengths: Float[np.ndarray, "H S"] | None
    off: dict[int, Way]

    @cached_property
    def dtype(self) -> torch.dtype:
        kind: torch.dtype = getattr(torch, self.call.dtype)
        return kind

    @cached_property
    def mask(self) -> Mask:
        return self.call.mask.alone(self.item)

    @property
    def extra(self) -> slice:
        """The columns that are no positions."""
        return slice(self.mask.num_keys, self.call.k.shape[2])

    def keyless(self, head: int | None, start: int, stop: int) -> Bool[np.ndarray, " rows"]:
        """True where the query has no key left in this head, or none with a length; in some head where None."""
        mask = self.mask if head is None else self.mask.alone(0, head)
        hidden: np.ndarray = mask.hidden(start, stop)[0]  # [1|H, rows, S]
        if self.lengths is not None:
            hidden = hidden | ((self.lengths if head is None else self.lengths[[head]])[:, None] == 0)  # [1|H, rows, S]
        keyless: np.ndarray = np.any(hidden.all(axis=-1), axis=0)
        return keyless

    def keys(self, head: int) -> Float[torch.Tensor, "D S"]:
        """The keys that a head reads."""
        return torch.tensor(self.call.k[self.item, head * self.call.k.shape[1] // self.call.num_heads]).to(self.dtype).T

    @cached_property
    def finite(self) -> bool:
        """True where every key is a number. −inf added to NaN is NaN: other keys may make rows NaN from which they are hidden."""
        return bool(np.isfinite(self.call.k[self.item].sum(dtype=np.float64)))

    def reach(self, start: int, stop: int) -> tuple[int, int]:
        """(first, last) of the real keys that these queries may see at most."""
        every = not self.finite or (self.mask.may_spare and self.mask.spared(start, stop).any())
        if every:
            return 0, self.mask.num_keys
        first, last = self.mask.reach(start, stop)
        return int(first), int(last)

    def rows_into(
        self, s: Float[torch.Tensor, "rows seen"], head: int, k: Float[torch.Tensor, "D S"], mask: Mask, start: int, first: int
    ) -> None:
        """The weights of the queries from ``start`` on for the real keys from ``first`` on and the extra columns, into ``s``."""
        rows, real = s.shape[0], s.shape[1] - self.mask.extra
        q = torch.tensor(self.call.q[self.item, head, start : start + rows]).to(self.dtype) * self.call.scale  # [rows, D]
        for key in range(0, real, KEYS):
            end = min(key + KEYS, real)
            torch.mm(q, k[:, first + key : first + end], out=s[:, key:end])
        if self.mask.extra:
            torch.mm(q, k[:, self.extra], out=s[:, real:])
            added = mask.added(start, start + rows)  # [1, 1, 1|rows, S + extra]; extra columns are never hidden
            s[:, real:] += 0 if added is None else torch.tensor(added[0, 0, :, self.extra]).to(s)
        mask.apply(s[:, :real].numpy(), start, first)
        torch.softmax(s, dim=-1, out=s)
        if head in self.off or self.lengths is not None:
            self._changed(s.numpy(), head, mask, start, slice(first, first + real))

    def _changed(self, p: Float[np.ndarray, "rows seen"], head: int, mask: Mask, start: int, real: slice) -> None:
        """The same rows where a head is off, or where what each key adds to the output counts: see ``analysis.shown_trace``."""
        way = self.off.get(head)
        if way == "uniform":
            seen = ~mask.hidden(start, start + len(p))[0, 0]  # [rows, S]
            seen = np.concatenate([seen[:, real], seen[:, self.extra]], axis=1)  # [rows, seen]
            p[:] = np.where(np.isnan(p[:, :1]), np.nan, seen / np.maximum(seen.sum(axis=1, keepdims=True), 1))
        if self.lengths is not None:
            own = self.lengths[head]
            p *= np.concatenate([own[real], own[self.extra]]).astype(p.dtype)
            total = p.sum(axis=1, keepdims=True)  # [rows, 1]
            total[~((total > 0) & (total < np.inf))] = np.nan
            p /= total
        if way == "zero":
            p *= 0  # NaN stays


@torch.no_grad()
def blocks(maps: Maps, head: int, start: int, stop: int, read: Read | None = None) -> Iterator[Block]:
    """The rows of one head's map, ``start`` to ``stop``, a Block at a time; ``read(head, block)`` hears each first."""
    S = maps.call.k.shape[2]
    mask, k = maps.mask.alone(0, head), maps.keys(head)
    step = min(ROWS, max(1, SCRATCH // S), stop - start)
    scratch = torch.empty(step * S, dtype=maps.dtype)
    for row in range(start, stop, step):
        end = min(row + step, stop)
        first, last = maps.reach(row, end)
        s = scratch[: (end - row) * (last - first + maps.mask.extra)].view(end - row, -1)  # [rows, seen]
        maps.rows_into(s, head, k, mask, row, first)
        block = Block(row, first, maps.extra, s.numpy())
        if read is not None:
            read(head, block)
        yield block


@torch.no_grad()
def _averages(maps: Maps, start: int, stop: int, read: Read | None) -> Iterator[Block]:
    """The rows of the average of all heads, a Block at a time; ``read(None, block)`` hears those of all heads."""
    H, S = maps.call.num_heads, maps.call.k.shape[2]
    masks = [maps.mask.alone(0, head) for head in range(H)]
    step = min(ROWS, max(1, TOGETHER * SCRATCH // (H * S)), stop - start)
    scratch = torch.empty(H * step * S, dtype=maps.dtype)
    for row in range(start, stop, step):
        end = min(row + step, stop)
        first, last = maps.reach(row, end)
        s = scratch[: H * (end - row) * (last - first + maps.mask.extra)].view(H, end - row, -1)  # [H, rows, seen]
        for head in range(H):
            maps.rows_into(s[head], head, maps.keys(head), masks[head], row, first)
        if read is not None:
            read(None, Block(row, first, maps.extra, s.numpy()))
        yield Block(row, first, maps.extra, s.mean(dim=0).numpy())


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
