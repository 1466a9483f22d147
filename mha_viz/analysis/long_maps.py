"""A Trace that is too long for whole maps as a View has it in sight: all or a part of it, exactly or in blocks, as a Trace like any other.

Its maps are made head by head, then their average; what is there so far can be looked at meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.analysis.hiding import rules_hiding
from mha_viz.analysis.norms import QUANTITY, value_lengths, why_no_norms
from mha_viz.analysis.number import Derivation, open_number
from mha_viz.analysis.statistics import STATISTICS, know
from mha_viz.analysis.streamed import Apart, Streamed
from mha_viz.core.arrays import read_only
from mha_viz.core.attend import call_of, trace_of_call
from mha_viz.core.intervention import Intervention, changed
from mha_viz.core.long import Looked, Pooled, Step, averaging, pooling, rows_of
from mha_viz.core.sight import CELLS, NAMES, Pooling, Sight
from mha_viz.core.trace import Trace
from mha_viz.settings import View

if TYPE_CHECKING:
    from jaxtyping import Float


SMALL = 64, 64  # blocks of a map among those of all layers
SIDE = 128  # of a window where nobody says


Span: TypeAlias = tuple[int, int]  # start and stop


class LongMaps:
    """The maps of one batch item of a ``trace`` with q and k, of what a ``view`` has in sight, made step by step.

    ``steps`` yields how far all is, 0 to 1, after every block of rows: whoever stops there may go on later. First come the
    ``heads`` one after another, all where None, then with ``average`` that of them all; with it, where all rows are in sight, how far
    each head is from it, and where ``wanted`` names another statistic, those as well. ``done`` is what was yielded last. ``statistics``
    holds [H] by name: what is known of all heads of this item, whatever is in sight. A map has ``shape`` blocks at most, down and across.

    Raises Wrong where the Trace cannot be looked at so: it holds no q and k, or has a head off by the mean of its rows.
    """

    def __init__(
        self,
        trace: Trace,
        view: View,
        heads: Iterable[int] | None = None,
        average: bool = True,
        statistics: dict[str, Float[np.ndarray, " H"]] | None = None,
        shape: tuple[int, int] = (CELLS, CELLS),
    ) -> None:
        self.trace, self.about = trace, looked_at(trace, view)
        self.item, rows, columns, self.by_norms = self.about
        self.sight = Sight.of(*trace.shape[2:], rows, columns, shape)
        self.heads, self.with_average = list(range(trace.shape[1]) if heads is None else heads), average
        self.maps: dict[int, Pooled] = {}
        self.average: Pooled | None = None
        self.statistics = {} if statistics is None else statistics
        self.wanted = view.order
        lengths = value_lengths(trace, self.item) if self.by_norms else None
        self.how: Looked = {"item": self.item, "rows": rows, "columns": columns, "lengths": lengths, "shape": shape}
        first = pooling(trace, self.heads, **self.how)  # raises Wrong now, not when the first step is taken
        self.steps, self.done = self._told(self._steps(first)), 0.0
        self._shown: dict[tuple[object, ...], Trace] = {}

    @property
    def complete(self) -> bool:
        return len(self.maps) == len(self.heads) and (self.average is not None or not self.with_average) and not self._missing()

    def _told(self, steps: Iterator[float]) -> Iterator[float]:
        for self.done in steps:
            yield self.done

    def _missing(self) -> bool:
        """True where a statistic is wanted that only another pass over all rows can tell."""
        return self.with_average and self.wanted in STATISTICS and self.wanted not in ("difference", *self.statistics)

    def _steps(self, first: Iterator[Step]) -> Iterator[float]:
        H = len(self.heads)
        for step in first:
            if step.found is not None and step.head is not None:
                self.maps[step.head] = step.found
            yield (len(self.maps) + (step.found is None) * step.done) / (2 * H if self.with_average else H)
        if self.with_average:
            yield from self._average()
        while True:  # a statistic may be wanted at any time
            yield from self._read_statistics() if self._missing() else (1.0,)

    def _average(self) -> Iterator[float]:
        """The second half: the average, and what all rows of all heads say together; not where heads are off, as that is said of what they
        were before, and other rows go by."""
        whole = self.sight.rows == (0, self.trace.shape[2]) and not self.trace.off and "difference" not in self.statistics
        apart = Apart(self.trace, self.item) if whole else None
        how: Looked = {**self.how, "read": None if apart is None else apart.read}
        for step in averaging(self.trace, **how):
            if step.found is not None:
                self.average = step.found
                if apart is not None:
                    self.statistics["difference"] = apart.values
            yield 0.5 + step.done / 2

    def _read_statistics(self) -> Iterator[float]:
        passes, H = [self.how["lengths"]], self.trace.shape[1]
        values: dict[str, Float[np.ndarray, " H"]] = {}
        if self.by_norms:  # what a head adds to the output is told by its weights, whatever is shown
            passes.append(None)
        for number, lengths in enumerate(passes):
            streamed = Streamed(self.trace, self.item)
            steps = pooling(self.trace, item=self.item, lengths=lengths, shape=(1, 1), read=streamed.read)
            for step in steps:
                assert step.head is not None  # one head after another
                yield (number + (step.head + step.done) / H) / len(passes)
            values |= streamed.values if number == 0 else {"contribution": streamed.values["contribution"]}
        self.statistics |= values

    def seen(self, pooling: Pooling) -> Trace:
        """The Trace of what is there so far: of the heads from 0 on, and of their average once that is known.

        Its rows and columns are the cells or blocks in sight, ``tokens.sight``, and its maps [N, H, rows, columns] those of this item,
        whichever is asked for. Where they are blocks, ``pooling`` says whether a cell is the largest weight or the mean, and the
        ``quantity`` says it too; ``plain`` is the Trace itself.
        """
        key = pooling, len(self.maps), self.average is not None, tuple(self.statistics)
        if key not in self._shown:
            self._shown = {key: self._seen(pooling)}
        return self._shown[key]

    def _seen(self, pooling: Pooling) -> Trace:
        trace, sight, (N, H, *_) = self.trace, self.sight, self.trace.shape
        count = max(self.maps) + 1 if self.heads == list(range(H)) else H
        found = [self.maps.get(head, nothing(sight)) for head in range(count)]

        def of_all_items(array: np.ndarray) -> np.ndarray:
            return read_only(np.broadcast_to(array, (N, *array.shape)))

        def values(one: Pooled) -> Float[np.ndarray, "rows columns"]:
            return one.largest if sight.exact or pooling == "max" else one.mean  # [rows, columns]

        weights = of_all_items(np.stack([values(one) for one in found]))  # [N, H, rows, columns]
        fields: dict[str, np.ndarray | None] = {
            "probabilities": weights,
            "weights": weights,
            "undefined": of_all_items(np.stack([one.undefined for one in found])),
            "mask": of_all_items(np.stack([one.hidden for one in found])),
            "mask_bias": None,
            "keep_scale": None,
            "dropped": None,
        }
        if self.average is not None:
            fields["mean_weights"] = of_all_items(values(self.average))  # [N, rows, columns]
        weight = QUANTITY if self.by_norms else "weight"
        quantity = weight if sight.exact else NAMES[pooling].format(weight)
        shown = Trace(
            fields,
            tokens=trace.tokens.seen(sight),
            name=trace.name,
            quantity=quantity,
            plain=trace,
            off=trace.off,
            dtype=trace.dtype,
            step=trace.step,
        )
        know(shown, self.item, {name: values[:count] for name, values in self.statistics.items()})
        return shown


def in_sight(trace: Trace, view: View, heads: Iterable[int] | None = None, average: bool = True) -> Trace:
    """The Trace of what a View has in sight of a long one, all of it computed now; of ``heads`` alone the others are undefined."""
    return finished(LongMaps(trace, view, heads, average)).seen(view.pooling)


def finished(maps: LongMaps) -> LongMaps:
    """The same LongMaps, once all that is wanted of them is there."""
    while not maps.complete:
        next(maps.steps)
    return maps


def in_small(trace: Trace, view: View) -> LongMaps:
    """The LongMaps of every head of a long Trace to stand among those of other layers: all of it, in few blocks, without the average."""
    return LongMaps(trace, replace(view, rows=None, columns=None), average=False, shape=SMALL)


def nothing(sight: Sight) -> Pooled:
    """The Pooled map of a head that was not asked for."""
    shape = sight.pool.rows, sight.pool.columns
    blank = np.full(shape, np.nan, np.float32)
    return Pooled(0, None, sight, blank, blank, np.zeros(shape, bool), np.ones(shape[0], bool))


def open_in_sight(trace: Trace, item: int, head: int, query: int, key: int) -> tuple[Trace, Derivation]:
    """One cell of a long Trace opened: (a Trace of its query and the keys around this one, the Derivation in it).

    The number is made of its whole row, and no other row is computed.
    """
    row = trace_of_call(rows_of(trace, query, query + 1))
    row = changed(row, Intervention(trace.off)) if trace.off else row
    opened = open_number(row, item, head, 0, key)
    _, columns = around(trace, View(cell=(query, key)))
    part = slice(*columns)
    maps = {name: getattr(row, name)[..., part] for name in ("weights", "probabilities", "mean_weights", "mask")}
    others = {name: getattr(row, name) for name in ("undefined", "mask_bias", "dropped")}
    tokens = trace.tokens.seen(Sight.of(*trace.shape[2:], (query, query + 1), columns))
    scores, exponentials = opened.masked_scores, opened.exponentials
    seen = Trace(maps | others, tokens=tokens, name=trace.name, off=trace.off, dtype=trace.dtype, step=trace.step)
    return seen, replace(
        opened,
        key=key - columns[0],
        masked_scores=None if scores is None else scores[part],
        exponentials=None if exponentials is None else exponentials[part],
        hidden_by=rules_hiding(call_of(trace).mask.alone(item, head), query, key),
    )


def around(trace: Trace, view: View) -> tuple[Span, Span]:
    """A window of at most SIDE a side around the chosen cell, or around the middle of a long map, as (rows, columns)."""
    _, _, L, S = trace.shape
    query, key = view.cell or (None, None)

    def window(place: int | None, cells: int) -> Span:
        place = cells // 2 if place is None or place >= cells else place
        start = max(0, min(place - SIDE // 2, cells - SIDE))
        return start, min(start + SIDE, cells)

    return window(query, L), window(key, S)


def looked_at(trace: Trace, view: View) -> tuple[int, Span | None, Span | None, bool]:
    """What of a long Trace a View has in sight, as far as there is so much of it: (item, rows, columns, whether by norms).

    Rows and columns are None for all of them.
    """
    N, _, L, S = trace.shape
    rows, columns = within(view.rows, L), within(view.columns, S)
    return view.item if view.item < N else 0, rows, columns, view.weighting == "norms" and why_no_norms(trace) is None


def within(span: Span | None, most: int) -> Span | None:
    """``span``, (start, stop), as far as there are cells; None where that is none, or all."""
    if span is None or span[0] >= most or (span[0] == 0 and span[1] >= most):
        return None
    return span[0], min(span[1], most)
