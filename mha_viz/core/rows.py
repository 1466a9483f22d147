"""The rows of a long sequence's maps, made block by block into one scratch, so that no L × S matrix is ever whole.

One pass over blocks of query rows. A block's scores go into one scratch; masks are added where they change anything; softmax runs
in place; what is wanted of the rows is taken from them, and the next block overwrites them. Keys that causal or window hide from a
whole block are neither multiplied nor read.

``python -m tests.bench long`` times it, and it is this way because of that. ``torch.softmax`` in place takes 0.56 ns a cell, where
maximum, difference, exp and sum one by one take 1.2. Reducing the rows of a block first, along contiguous columns, takes 0.1 ns a
cell; columns first 1.1, as soon as there are few cells to a block. 256 rows are multiplied by 2,048 keys at once: fewer rows waste
up to a third of the product's time, more keys leave the caches. With that the product itself is two thirds of all, at full speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from mha_viz.core.call import Call
from mha_viz.core.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.intervention import Way

SCRATCH = 2**21  # numbers, 8 MiB in float32
TOGETHER = 4  # times as many where all heads are there at once
ROWS, KEYS = 256, 2048  # that are multiplied at once


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a map, those of the queries from ``start`` on. It is overwritten by the next.

    ``p`` are their weights for real keys from ``first`` on, then for the ``extra`` columns; every other key is hidden from all of them.
    """

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
    """What the rows of one batch ``item`` are made of.

    They are those of a ``call``, weighted by ``lengths`` where these are not None; heads that are ``off`` are so each in its way.
    """

    call: Call
    item: int
    lengths: Float[np.ndarray, "H S"] | None
    off: dict[int, Way]

    @cached_property
    def dtype(self) -> torch.dtype:
        """The type that the rows are computed in."""
        kind: torch.dtype = getattr(torch, self.call.dtype)
        return kind

    @cached_property
    def mask(self) -> Mask:
        """The mask of this batch item."""
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
def averages(maps: Maps, start: int, stop: int, read: Read | None) -> Iterator[Block]:
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
