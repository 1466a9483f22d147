"""Statistics of heads whose maps are never there whole: totals and counts of their rows as these go by.

What they mean is said in ``mha_viz.analysis.statistics``. Those that need rows of one head alone are read in a pass over it; how far a
head is from the average in the pass over all heads at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from mha_viz.analysis.norms import lengths, why_no_norms
from mha_viz.analysis.rows import HIDING, Rows
from mha_viz.analysis.statistics import STATISTICS, ByRows, divided
from mha_viz.core.attend import call_of
from mha_viz.settings.view import ORDERS

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from mha_viz.core.rows import Block
    from mha_viz.core.trace import Trace


STREAMED = {name: how for name, how in STATISTICS.items() if isinstance(how, ByRows)}
ANY = next(order for order in ORDERS if order in STREAMED)  # who wants one of them has all of them read
CELLS = 2**20  # masks are looked through so many cells at a time


class Streamed:
    """What the rows of one batch ``item`` of a ``trace`` with q and k say, as far as they have gone by: ``read`` hears those of one head
    after another, as ``mha_viz.core.long.pooling`` tells it."""

    def __init__(self, trace: Trace, item: int) -> None:
        self.trace, self.item = trace, item
        self.call = call_of(trace)
        self.mask = self.call.mask.alone(item)
        self.reachable = self._reachable()
        self.sums: dict[int, dict[str, np.ndarray]] = {}  # head → name → [2, 1], total and count
        self.added = np.full(trace.shape[1], np.nan)  # [H] what each adds to the output, summed over rows

    def read(self, head: int | None, block: Block) -> None:
        assert head is not None  # one after another go by
        allowed, real = self._allowed(block.start, block.start + len(block.p))  # [1|H, n, S], [n]
        if not self.mask.extra:  # what lies behind the last key that any of these rows may see changes nothing
            allowed = allowed[..., : max(block.first + block.p.shape[1], 1)]  # the largest of no weights is none
        real = np.flatnonzero(real & ~block.blank)  # [R]
        p = np.zeros((1, len(real), allowed.shape[-1]), block.p.dtype)  # [1, R, S]
        for keys, part in block.parts():
            p[0, :, keys] = part[real]
        own = min(head, len(allowed) - 1)  # where all have one mask
        rows = Rows(
            self.trace.tokens,
            self.item,
            block.start + real,
            p,
            allowed[own : own + 1, real],
            self.reachable[: allowed.shape[-1]],
        )
        so_far = self.sums.setdefault(head, dict.fromkeys(STREAMED, np.zeros((2, 1))))
        for name, how in STREAMED.items():
            so_far[name] = so_far[name] + np.array(how.function(rows))  # [2, 1]
        if why_no_norms(self.trace) is None:
            self._add(head, p[0])

    def _add(self, head: int, p: Float[np.ndarray, "R S"]) -> None:
        """What a head adds to the output in rows p [R, S]."""
        assert self.call.v is not None and self.call.out_weight is not None  # as ``why_no_norms`` tells
        v, W = self.call.v[self.item], self.call.out_weight  # [G, S, D], [E, H·D]
        H, D = len(self.added), v.shape[2]
        values = torch.tensor(v[head * len(v) // H, : p.shape[1]])  # [S, D] as far as the rows go
        together = torch.from_numpy(p) @ values.to(torch.from_numpy(p).dtype)  # [R, D]
        added = lengths(together.numpy()[None], W[:, head * D : (head + 1) * D]).sum()
        self.added[head] = np.nan_to_num(self.added[head]) + added

    @property
    def values(self) -> dict[str, Float[np.ndarray, " H"]]:
        """What each statistic says of each head, by name, once the rows of all have gone by; NaN where it has no meaning."""
        H = len(self.added)
        found = {name: np.array([divided(*self.sums[head][name])[0] for head in range(H)]) for name in STREAMED}
        usable = np.isfinite(self.added).all() and self.added.any()
        return found | {"contribution": self.added / self.added.sum() if usable else np.full(H, np.nan)}

    def _allowed(self, start: int, stop: int) -> tuple[Bool[np.ndarray, "#H n S"], Bool[np.ndarray, " n"]]:
        """[1|H, n, S] bool, the keys that these queries may see in each head, and [n] bool, which of them are real."""
        allowed = ~self.mask.hidden(start, stop)[0]  # [1|H, n, S]
        real = allowed.any(axis=-1).all(axis=0) & ~self.trace.query_padding[self.item, start:stop]
        if self.mask.bias is not None and (added := self.mask.added(start, stop)) is not None:
            allowed = allowed & (added[0] > HIDING)
        return allowed, real

    def _reachable(self) -> Bool[np.ndarray, " S-extra"]:
        """Positions that any real query may see. From the last query on: of causal ones it sees the most."""
        mask = self.mask
        found, L = np.zeros(mask.num_keys, bool), mask.num_queries
        most = np.ones(mask.num_keys, bool) if mask.padded is None else ~mask.padded[0]
        step = max(1, CELLS // max(mask.num_keys, 1))
        for stop in range(L, 0, -step):
            allowed, real = self._allowed(max(0, stop - step), stop)
            found |= allowed[:, real, : mask.num_keys].any(axis=(0, 1))
            if np.array_equal(found, most):
                break
        return found


class Apart:
    """How far each head is from the average of all, of the rows of one batch ``item`` that have gone by: ``read`` hears those of all
    heads at once, as ``mha_viz.core.long.averaging`` tells it."""

    def __init__(self, trace: Trace, item: int) -> None:
        self.padding, self.H = trace.query_padding[item], trace.shape[1]
        self.sums, self.count = np.zeros(self.H), 0

    def read(self, _: int | None, block: Block) -> None:
        blank: Bool[np.ndarray, " n"] = np.any(block.blank, axis=0)
        real = ~(blank | self.padding[block.start : block.start + len(blank)])  # [n]
        self.count += int(real.sum())
        p = torch.from_numpy(block.p)  # [H, n, seen]
        p = p if real.all() else p[:, torch.from_numpy(real)]  # [H, R, seen]
        mean = p.mean(dim=0)  # [R, seen]
        own = _entropy(mean)  # [R]
        for head in range(self.H):
            between = _entropy((p[head] + mean) / 2) - (_entropy(p[head]) + own) / 2  # [R] nats, as in ``jensen_shannon``
            self.sums[head] += float(between.sum(dtype=torch.float64))

    @property
    def values(self) -> Float[np.ndarray, " H"]:
        """Each head's difference from the average, 0 to 1, once all rows have gone by; NaN where no row is real."""
        values: Float[np.ndarray, " H"] = np.clip(divided(self.sums / np.log(2), np.full(self.H, self.count)), 0, 1)
        return values


def _entropy(p: Float[Tensor, "R S"]) -> Float[Tensor, " R"]:
    """Entropy of rows, in nats. torch.special.entr takes three times as long."""
    return -(p * p.clamp(min=torch.finfo(p.dtype).tiny).log()).sum(dim=-1)
