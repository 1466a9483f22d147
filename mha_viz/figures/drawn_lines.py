"""Which lines there are between tokens, and what they say in words, before anyone asks where they are drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis import choose
from mha_viz.analysis.choice import cell_of
from mha_viz.core.cells import NUMBERS
from mha_viz.core.decimals import prose
from mha_viz.core.trace import Trace
from mha_viz.figures.around import percent, seen, weighted
from mha_viz.figures.labels import Names, name_of
from mha_viz.figures.scale import Scale, largest_weight, scale_of
from mha_viz.settings import View

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

LEGIBLE, MOST = 80, 2400  # lines a panel on average, and in all, beyond which the lightest are left out
VISIBLE = 0.01  # of the largest weight: where lines are left out, all below it are
MARKS = {  # of tokens without lines: Plotly's symbol and what the legend calls them, in its order
    "undefined": ("x-thin-open", "undefined query: no key left, no lines"),
    "nan": ("asterisk-open", "query with NaN in its row, and no mask made it"),
    "inf": ("triangle-up-open", "query with +∞ in its row"),
    "-inf": ("triangle-down-open", "query with −∞ in its row"),
    "masked": ("line-ne-open", "masked key: may not be read, no lines"),
    "padded": ("circle-open", "padded query: no lines"),
}


def describe_lines(trace: Trace, view: View, average: int | None = -1) -> str:
    """What the picture shows, in a few sentences: its text alternative."""
    return _described(Drawn(trace, view, average=average))


def describe_average(trace: Trace, view: View) -> str:
    """What ``average`` shows: its text alternative."""
    return _described(Drawn(trace, view, heads=False))


def _described(shown: Drawn) -> str:
    L, S = shown.near.shape
    names = [shown.name(panel) for panel in range(len(shown.heads))]
    average = [name for head, name in zip(shown.heads, names, strict=True) if head is None]
    named = ", ".join(names if len(names) <= 4 else [f"{len(names) - len(average)} heads", *average])
    said = [
        f"Attention as lines from {L} queries on the left to {S} keys on the right{shown.weighted}{shown.parts_seen[0]}: {named}."
    ]
    if shown.focused:
        tokens = (shown.query, shown.key)
        side, token = next((side, token) for side, token in enumerate(tokens) if token is not None)
        said.append(f"In focus: {('query', 'key')[side]} {shown.token(side, token)}.")
    if shown.least:
        said.append(f"{left_out_in_words(shown)}.")
    for panel, name in enumerate(names[:4]):
        weights = np.where(shown.seen[panel] & shown.near, shown.weights[panel], 0)  # [L, S]
        query, key = divmod(int(weights.argmax()), S)
        if weights[query, key]:
            strongest = f"query {shown.token(0, query)} to key {shown.token(1, key)}, {weights[query, key]:.6f}"
            said.append(f"Strongest line of {name}: {strongest}.")
    said += [
        f"{words[0].upper()}{words[1:]}: {shown.looks[look].sum()}."
        for look, (_, words) in MARKS.items()
        if shown.looks[look].any()
    ]
    return " ".join(said)


class Drawn:
    """What is drawn of a Choice, before anyone asks where. P panels, ``large`` or small, of L queries and S keys.

    ``heads`` (None: the average) and ``weights`` [P, L, S]; ``seen`` and ``drawn`` [P, L, S] bool, cells that can have a line and
    that have one; ``least``, the weight below which lines are left out, 0 where none is; ``query`` or ``key`` in focus, and
    ``near`` [L, S] bool, the cells of that token, all where none is; ``looks``, per mark [L + S] bool, queries first; ``parts``
    [P, L, S], how far each weight is up the ``scale``, and ``samples``, the same of some weights and their texts.
    """

    def __init__(self, trace: Trace, view: View, heads: bool = True, average: int | None = -1) -> None:
        """Draw the heads that ``view`` shows, and the average at the place ``average`` among them: -1 last, None not at all. Without
        ``heads`` the average stands alone."""
        self.choice = choice = choose(trace, view)
        item = choice.item
        weights, padding = trace.weights[item], trace.query_padding[item]  # [H, L, S], [L]
        undefined, masked = trace.undefined[item].all(axis=0), trace.mask[item].all(axis=(0, 1))  # [L], [S]
        self.tokens = trace.tokens
        rows = {"undefined": undefined} | _odd_rows(trace, item)  # [L] each
        rows["padded"] = padding & ~np.any(list(rows.values()), axis=0)
        self.looks = {name: np.append(cells, np.zeros_like(masked)) for name, cells in rows.items()}
        self.looks["masked"] = np.append(np.zeros_like(undefined), masked)
        self.hidden = undefined | padding, masked
        self.H, L, S = weights.shape
        own: list[int | None] = list(choice.order) if view.arrangement == "all" else [choice.head]
        if average is not None and view.arrangement != "one" and trace.has("mean_weights"):
            own.insert(len(own) if average < 0 else average, None)
        self.heads: list[int | None] = own if heads else [None]
        self.large = view.arrangement != "all" or len(self.heads) == 1
        maps = [trace.mean_weights[item] if head is None else weights[head] for head in self.heads]  # [L, S] each
        self.weights = np.stack(maps)  # [P, L, S]
        self.seen = (self.weights > 0) & (self.weights < np.inf) & ~padding[:, None]  # [P, L, S]; NaN is neither
        self.query, self.key = cell_of(trace, view)
        self.focused = view.cell is not None and (self.query, self.key) != (None, None)
        self.near = np.ones((L, S), bool)
        if self.query is not None:
            self.near = self.near & (np.arange(L) == self.query)[:, None]  # [L, S]
        elif self.key is not None:
            self.near = self.near & (np.arange(S) == self.key)  # [L, S]
        self.scale = scale_of(trace, item, view)
        self.weighted = weighted(trace)
        self.parts_seen = seen(trace)
        self.parts = _part(self.scale, self.scale.drawn(self.weights))  # [P, L, S]
        values, texts = _samples(self.scale)
        self.samples = list(zip(_part(self.scale, values).tolist(), texts, strict=True))
        most = min(LEGIBLE * len(self.heads), MOST)
        self.least = _least(self.weights[self.seen], most, VISIBLE * largest_weight(weights, padding))
        self.drawn = self.seen & ((self.weights >= self.least) | (self.near & self.focused))  # [P, L, S]

    def names_in(self, room: float) -> tuple[Names, Names]:
        """The Names of queries and of keys, each ``room`` px wide at most."""
        queries, keys = (Names.along(self.tokens, side, self.choice.item, room, back) for side, back in enumerate(self.hidden))
        return queries, keys

    def name(self, panel: int) -> str:
        """What a panel is called: "head 3", "average of 8 heads"."""
        if self.heads[panel] is None:
            return f"average of {self.H} head{'s' if self.H > 1 else ''}"
        return f"head {self.heads[panel]}"

    def token(self, side: int, index: int) -> str:
        """A query (``side`` 0) or key (1) in plain words."""
        return name_of(self.tokens, side, self.choice.item, index)

    def left_out(self, panels: int | slice = slice(None)) -> float:
        """The part, 0 to 1, of the weight of some panels' real queries that no line shows."""
        seen, drawn = (self.weights[panels][cells[panels]].sum(dtype=np.float64) for cells in (self.seen, self.drawn))
        return 1 - drawn / seen if seen else 0.0


def _odd_rows(trace: Trace, item: int) -> dict[str, Bool[np.ndarray, " L"]]:
    """kind → [L] bool: queries that have a number in some head which no mask made, NaN before ∞ before −∞."""
    found, taken = {}, np.zeros(trace.undefined.shape[2], bool)
    if not trace.nonfinite[item].any():
        return dict.fromkeys(NUMBERS, taken)
    values = np.where(trace.nonfinite[item][..., None], trace.weights[item], 0)  # [H, L, S]
    for kind, holds in NUMBERS.items():
        found[kind] = holds(values).any(axis=(0, 2)) & ~taken  # [L]
        taken = taken | found[kind]
    return found


def _least(weights: Float[np.ndarray, " K"], most: int, visible: float) -> float:
    """The weight, of two digits, below which lines are left out so that about ``most`` are drawn; 0 where there are no more."""
    if len(weights) <= most:
        return 0.0
    edge = max(float(np.partition(weights, -most)[-most]), visible)
    unit = 10.0 ** (math.floor(math.log10(edge)) - 1)
    below, above = (float(f"{way(edge / unit) * unit:.1e}") for way in (math.floor, math.ceil))
    return below if np.count_nonzero(weights >= below) <= 2 * most else above  # equal weights stay together


def left_out_in_words(shown: Drawn) -> str:
    beside = " (the chosen token has all of its own)" if shown.focused else ""
    return f"Lines below {prose(shown.least, 'g')} left out{beside}: {small_percent(shown.left_out())} of the weight"


def small_percent(fraction: float) -> str:
    return "less than 0.1 %" if 0 < fraction < 0.0005 else percent(fraction)


def _part(scale: Scale, drawn: Float[np.ndarray, "*weights"]) -> Float[np.ndarray, "*weights"]:
    """How far up the scale, 0 to 1, what it draws for a weight is; NaN stays."""
    low, high = scale.low, scale.high
    if scale.kind == "log":
        drawn, low, high = np.log(np.maximum(drawn, low)), math.log(low), math.log(high)
    return np.clip((drawn - low) / (high - low), 0, 1)


def _samples(scale: Scale) -> tuple[Float[np.ndarray, " K"], list[str]]:
    """What the scale draws for a few weights, from the least on, and their texts; of none that is 0, which has no line."""
    values, texts = scale.ticks()
    values = [10**value if scale.kind == "log" else value for value in values]
    found = sorted((value, text) for value, text in zip(values, texts, strict=True) if value > 0)
    return np.array([value for value, _ in found]), [text for _, text in found]
