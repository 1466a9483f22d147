"""From a weight to its colour: where the colours begin and end, how they run in between, and what the bar says of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from mha_viz.analysis.parts import rows_where
from mha_viz.core.decimals import prose
from mha_viz.core.sight import pooling_of
from mha_viz.core.trace import Trace
from mha_viz.figures.piece import Piece
from mha_viz.figures.theme import RGB, Theme, mixed
from mha_viz.figures.widths import width_of
from mha_viz.settings import View

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

DECADES = 5  # a logarithmic scale reaches so far below its end at most
Kind = Literal["linear", "log", "percentile", "row", "change"]  # how colours run: those of View, and around zero
Rows: TypeAlias = 'Float[np.ndarray, "*maps R S"]'  # weights of real queries
FAINTEST = 0.06  # of the ink: where a logarithmic scale begins, so that its smallest weight is not taken for zero
FORCED = 4  # times the median peak of the other rows: then a weight that a mask forces leaves those blank
STEPS = 48  # of a logarithmic colour scale
TITLES: dict[Kind, tuple[str, ...]] = {  # of the bar, the first that fits; {} is the quantity
    "linear": ("{}",),
    "log": ("{}, logarithmic", "{}, log"),
    "percentile": ("{}, clipped at the 99th percentile", "{}, 99th percentile", "{}"),
    "row": ("share of the row's largest {}", "share of the row's largest", "of row's largest"),
    "change": ("change",),
}


@dataclass(frozen=True)
class Scale:
    """Colours from ``low`` to ``high``, running as View's scale of this ``kind`` does, or "change": from −high over 0 to high.

    ``below`` and ``above``: something lies beyond that end and has its colour. ``fixed``: a person set the ends. On the scale "row"
    what is drawn is each weight's share of the largest in its row, from 0 to 1. ``quantity`` is what a weight is called.
    """

    kind: Kind
    low: float
    high: float
    below: bool = False
    above: bool = False
    fixed: bool = False
    quantity: str = "weight"

    @classmethod
    def of(cls, rows: Sequence[Rows], view: View, quantity: str = "weight") -> Scale:
        """The Scale of ``view`` for arrays of the weights of real queries: what padding attends to means nothing.

        From 0 to the largest weight; logarithmic from the smallest above zero, though no more than DECADES below the largest;
        clipped at the 99th percentile of the weights above zero, since each masked cell would count as one. View's limits come
        first, except for shares of a row, which are no weights.
        """
        kind = automatic(rows, [quantity]) if view.scale == "auto" else view.scale
        if kind == "row":
            return cls("row", 0.0, 1.0, quantity=quantity)
        largest = largest_finite(rows)
        low, high = view.limits or (0.0, largest)
        if kind == "linear":
            return cls("linear", low, high, low > 0, largest > high, view.limits is not None, quantity)
        if kind == "percentile" and view.limits is None:
            positive = np.concatenate([array[(array > 0) & (array < np.inf)] for array in rows])  # NaN is neither
            high = float(np.percentile(positive, 99, overwrite_input=True)) if len(positive) else high
        if kind == "log":
            smallest = min(float(np.min(part, initial=high, where=part > 0)) for array in rows for part in array)
            low = low or min(max(smallest, high / 10**DECADES), high / 2)
            return cls("log", low, high, smallest < low, largest > high, view.limits is not None, quantity)
        return cls(kind, low, high, low > 0, largest > high, view.limits is not None, quantity)

    def drawn(self, weights: Float[np.ndarray, "*maps L S"]) -> Float[np.ndarray, "*maps L S"]:
        """[…, L, S]: what a map of these weights draws on this scale."""
        if self.kind != "row":
            return weights
        finite = np.isfinite(weights)  # what is not has a mark of its own
        largest = weights.max(axis=-1, keepdims=True, initial=0, where=finite)  # [..., L, 1]
        shares = np.where(finite, weights.dtype.type(0), weights)  # [..., L, S]
        np.divide(weights, largest, out=shares, where=finite & (largest > 0))
        return shares

    def color_at(self, theme: Theme, drawn: float) -> RGB:
        """(r, g, b), 0 to 255, of the colour of one drawn value."""
        if self.kind == "change":
            return mixed(theme.more if drawn > 0 else theme.less, abs(drawn) / self.high)
        if self.kind == "log":
            part = math.log(max(drawn, self.low) / self.low) / math.log(self.high / self.low)
            return theme.ink_at(0 if drawn < self.low else FAINTEST + (1 - FAINTEST) * part)
        return theme.ink_at((drawn - self.low) / (self.high - self.low))

    def coloraxes(self, theme: Theme, bar: Piece | None, name: str = "coloraxis") -> Piece:
        """The layout's colour axes by name: the maps', and "coloraxis9" for the ``bar`` where that cannot be read off the maps' own.

        A logarithmic scale is drawn by its colours, so that maps hold the weights as they are; its bar runs over their logarithms.
        ``bar`` None draws none.
        """
        hidden = {"showscale": False}
        if self.kind != "log":
            return {name: {**self._ends(), "colorscale": self._colors(theme), **(hidden if bar is None else {"colorbar": bar})}}
        parts = [i / STEPS for i in range(STEPS + 1)]
        colors = ["rgb({:.0f},{:.0f},{:.0f})".format(*theme.ink_at(FAINTEST + (1 - FAINTEST) * part)) for part in parts]
        start = self.low / self.high
        stops = [[0, theme.ink[0]], [start, theme.ink[0]]]
        stops += [[start ** (1 - part), color] for part, color in zip(parts, colors, strict=True)]
        ends = {"cmin": math.log10(self.low), "cmax": math.log10(self.high)}
        maps = {name: {"cmin": 0, "cmax": self.high, "colorscale": stops, **hidden}}
        scale = [[part, color] for part, color in zip(parts, colors, strict=True)]
        return maps if bar is None else maps | {"coloraxis9": {**ends, "colorscale": scale, "colorbar": bar}}

    def _ends(self) -> dict[str, float]:
        return {"cmin": -self.high if self.kind == "change" else self.low, "cmax": self.high}

    def _colors(self, theme: Theme) -> list[list[float | str]]:
        if self.kind != "change":
            return theme.colorscale()
        sides = theme.less[:0:-1] + theme.more  # both begin with nothing
        return [[i / (len(sides) - 1), color] for i, color in enumerate(sides)]

    def ticks(self) -> tuple[list[float], list[str]]:
        """(values on the bar's axis, their texts)."""
        if self.kind == "log":
            marks = [float(f"{digit}e{power}") for power in range(-40, 3) for digit in (1, 2, 5)]
            inside = [mark for mark in marks if self.low <= mark <= self.high]
            if len(inside) > 6:
                inside = [mark for mark in inside if f"{mark:e}"[0] == "1"]
            found = {math.log10(mark): _short(mark) for mark in inside}
            span, ends = math.log10(self.high / self.low), [math.log10(end) for end in (self.low, self.high)]
        else:
            low, ends = self._ends()["cmin"], [self._ends()["cmin"], self.high]
            span = self.high - low
            step = next(n * 10**p for p in range(-40, 40) for n in (1, 2, 5) if n * 10.0**p >= span / 6)
            multiples = range(math.ceil(low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)
            sign = "+" if self.kind == "change" else ""
            found = {i * step: _short(i * step, sign) for i in multiples}
        for end, value, beyond, mark in ((ends[0], self.low, self.below, "≤ "), (ends[1], self.high, self.above, "≥ ")):
            if beyond or (self.fixed and self.kind != "change"):
                found = {at: text for at, text in found.items() if abs(at - end) > span / 12}
                found[end] = (mark if beyond else "") + _short(value)
        places = sorted(found)
        return places, [found[place] for place in places]

    def title(self, room: float) -> str:
        """What the bar's title says within so many px."""
        names = (
            self.quantity,
            self.quantity.removeprefix("value-"),
        )  # a value-norm weight is a norm weight where there is little room
        titles = tuple(title.format(name) for name in names for title in TITLES[self.kind])
        if self.fixed:
            titles = (f"{titles[0]}, ends set by hand", *titles)
        return next((title for title in titles if width_of(title, 14) <= room), titles[-1])


def automatic(rows: Sequence[Rows], quantities: Iterable[str]) -> Literal["log", "linear"]:
    """The kind of scale, "log" or "linear", that "auto" stands for where maps of these ``rows`` [H, R, S] share one.

    Logarithmic where a cell stands for a block of cells, and where rows that see two keys at most outshine the others FORCED times:
    their weights are large whatever was learnt, as in the first rows of a causal map, and all others would be blank.
    """
    if any(map(pooling_of, quantities)):
        return "log"
    rows = [array for array in rows if array.size]
    if not rows:
        return "linear"
    peaks = np.concatenate([np.fmax.reduce(array, axis=-1, initial=0).ravel() for array in rows])  # [all rows]
    seen = np.concatenate([(array > 0).sum(axis=-1).ravel() for array in rows])  # [all rows]; NaN is not above 0
    finite = np.isfinite(peaks)
    forced, free = peaks[finite & (seen > 0) & (seen <= 2)], peaks[finite & (seen > 2)]
    return "log" if len(forced) and len(free) and forced.max() >= FORCED * np.median(free) else "linear"


def scale_of(trace: Trace, item: int, view: View) -> Scale:
    """The Scale of ``view`` for the maps of one batch item."""
    return Scale.of(rows_of(trace, item), view, trace.quantity)


def rows_of(trace: Trace, item: int) -> list[Rows]:
    """The weights that a Scale is made of: those of an item's real queries in all heads [H, R, S].

    And of what is in sight of a longer sequence those of the average [R, S], where the largest of a block may be less than any head's.
    """
    real = ~trace.query_padding[item]  # [L]
    average = [trace.mean_weights[item][real]] if trace.tokens.sight is not None and trace.has("mean_weights") else []
    return [rows_where(trace.weights[item], real), *average]


def largest_weight(weights: Float[np.ndarray, "H L S"], padding: Bool[np.ndarray, " L"]) -> float:
    """The largest weight of real queries in [H, L, S], where a linear scale ends; 1 where there is none above zero."""
    return largest_finite([weights[:, ~padding]])  # [H, R, S]


def largest_finite(rows: Sequence[Rows]) -> float:
    """The largest finite number, 1 where there is none above zero."""
    most = [float(np.fmax.reduce(array, axis=None, initial=0)) for array in rows]  # NaN gives way
    if np.inf in most:
        most = [float(array.max(initial=0, where=np.isfinite(array))) for array in rows]
    return max(most, default=0.0) or 1.0


def _short(value: float, sign: str = "") -> str:
    if value == 0:
        return "0"
    return prose(value, f"{sign}.3g").replace("e−0", "e−")
