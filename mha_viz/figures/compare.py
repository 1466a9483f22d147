"""Two Traces side by side: one head of A, of B, and what changed from A to B."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from mha_viz.analysis import choose, largest_changes
from mha_viz.analysis.compare import common
from mha_viz.core.cells import NUMBERS, content
from mha_viz.core.decimals import prose
from mha_viz.core.trace import Trace
from mha_viz.figures import around
from mha_viz.figures.arrange import arrange
from mha_viz.figures.geometry import NARROW
from mha_viz.figures.heads import looks_of, sides, ticks_width, widest_labels
from mha_viz.figures.labels import name_of
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.picture import Chosen, Large, Map, Tiles, large_pool, picture, strip_pool
from mha_viz.figures.piece import Looks, Spec
from mha_viz.figures.scale import Scale, automatic, largest_finite, rows_of
from mha_viz.figures.theme import THEMES, Theme, ThemeName
from mha_viz.settings import View

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def difference(
    a: Trace, b: Trace, view: View, theme: ThemeName = "light", width: int = 1104, names: tuple[str, str] = ("A", "B")
) -> go.Figure:
    """One head of the Traces ``a`` and ``b``, and B − A, exactly ``width`` px wide, as a ``go.Figure`` for ``live``.

    A and B share the scale of ``view``; B − A has a diverging one around zero, orange where B has less and blue where it has more (in
    print both are grey, and lines cross what B has less of).
    Above them stands B − A of every head where both have as many, ordered as in B. Other head counts leave the averages, and that is
    what is compared. Traces of other sizes share no cells: then A and B stand side by side, each with its own tokens and zoom, and
    the picture says so. Cells are hatched in B − A where they are in either; what changed since only one masks it shows through.
    ``names`` are what the two are called.

    ``layout.meta`` is that of ``heads``, and each tile has its ``source``: "a", "b" or "difference".
    """
    return go.Figure(difference_spec(a, b, view, theme, width, names))


def difference_spec(
    a: Trace,
    b: Trace,
    view: View,
    theme: ThemeName = "light",
    width: int = 1104,
    names: tuple[str, str] = ("A", "B"),
    parts: Parts = ALL,
) -> Spec:
    """``difference`` as the plain dict that ``go.Figure`` checks; ``parts`` are what stands around the maps."""
    colors, both = THEMES[theme].dressed(view.colors), _Both(a, b, view, names)
    return both.together(colors, width, parts) if both.shared.average else both.apart(colors, width, parts)


def describe_difference(a: Trace, b: Trace, view: View, names: tuple[str, str] = ("A", "B")) -> str:
    """What the picture shows, in a few sentences: its text alternative."""
    both = _Both(a, b, view, names)
    A, B = names
    of_a, of_b = (around.seen(trace)[0] for trace in (a, b))
    parts = of_b if of_a == of_b else f"{of_a} in {A}{of_b} in {B}"
    said = [f"Attention maps of {A} and {B}{around.weighted(b)}{parts}: {both.what}."]
    said += both.shared.notes
    choice = both.choice
    if both.shared.average:
        query, key = choice.query, choice.key
        cell = [float(weights[query, key]) for weights in both.weights]
        before, after = (content(trace, choice.item, both.head, query, key) for trace in (a, b))
        token = [name_of(b.tokens, side, choice.item, i) for side, i in enumerate((query, key))]
        change = "" if not np.isfinite(cell).all() else f", {prose(cell[1] - cell[0], '+.6f')}"
        said.append(f"Chosen cell: query {token[0]}, key {token[1]}: {A} {before}, {B} {after}{change}.")
        changes = largest_changes(a, b, choice.item, None if both.head is None else [both.head], count=1)
        for c in changes:
            query_name, key_name = (name_of(b.tokens, side, choice.item, i) for side, i in enumerate((c.query, c.key)))
            said.append(f"Largest change: query {query_name}, key {key_name}: {c.a:.6f} to {c.b:.6f}.")
        if not changes:
            said.append("No weight changed.")
    return " ".join(said)


class _Both:
    """What of two Traces is compared: the Common of both, the Choice that the View makes of B where both have that item and head,
    the ``head`` (None: the averages), and its ``weights`` [L, S] in each."""

    def __init__(self, a: Trace, b: Trace, view: View, names: tuple[str, str]) -> None:
        self.a, self.b, self.view, self.names = a, b, view, names
        self.shared = common(a, b)
        item = view.item if view.item < self.shared.items else 0
        self.choice = choose(b, replace(view, item=item))
        self.all_heads = a.weights.shape[1] == b.weights.shape[1]
        self.head = self.choice.head if self.all_heads else None
        self.what = f"head {self.head}" if self.all_heads else "the average of all heads"
        self.weights = [self._weights(trace) for trace in (a, b)]

    def _weights(self, trace: Trace) -> Float[np.ndarray, "L S"]:
        item = self.choice.item
        weights: Float[np.ndarray, "L S"] = trace.mean_weights[item] if self.head is None else trace.weights[item, self.head]
        return weights

    def _scale(self) -> Scale:
        """The scale that A and B share, by the rule for one picture: "auto" looks at the weights of both."""
        quantities = [trace.quantity for trace in (self.a, self.b)]
        rows = [array for trace in (self.a, self.b) for array in rows_of(trace, self.choice.item)]
        kind = automatic(rows, quantities) if self.view.scale == "auto" else self.view.scale
        return Scale.of(rows, replace(self.view, scale=kind), min(quantities, key=len))

    def _map(self, i: int, scale: Scale) -> Map:
        trace, name = (self.a, self.b)[i], self.names[i]
        H = trace.weights.shape[1]
        what = f"head {self.head}" if self.head is not None else f"average of {H} head{'s' if H > 1 else ''}"
        return Map(f"{name}: {what}", self.head, self.weights[i], scale, source="ab"[i])

    def _looks(self, i: int, shown: Sequence[int] | None) -> Looks:
        return looks_of((self.a, self.b)[i], self.choice.item, shown)

    def together(self, theme: Theme, width: int, parts: Parts) -> Spec:
        """A, B and B − A, whose cells are the same."""
        a, b, item, choice = self.a, self.b, self.choice.item, self.choice
        shown = list(choice.order) if self.all_heads else []
        scale = self._scale()
        real = ~(a.query_padding[item] | b.query_padding[item])  # [L]
        heads = range(a.weights.shape[1]) if self.all_heads else None
        changes = (
            _change(a.weights[item], b.weights[item]) if self.all_heads else _change(*self.weights)[None]
        )  # [H or 1, L, S]
        largest = largest_finite([np.abs(changes[:, real])])
        change = Scale("change", -largest, largest)
        name = f"{self.names[1]} − {self.names[0]}"
        maps = tuple(
            Map(f"head {head}", head, changes[head], change, short=_moved(changes[head, real]), source="difference")
            for head in shown
        )
        one = Map(name, self.head, changes[self.head] if heads else changes[0], change, source="difference")
        looks = [self._looks(i, None if self.head is None else [self.head]) for i in (0, 1)]
        own_names = (a.query_tokens[item], a.key_tokens[item]) != (b.query_tokens[item], b.key_tokens[item])
        tokens = [sides(trace, item, width) for trace in (a, b)]
        row_texts, column_texts = (max(side[i].widest for side in tokens) for i in (0, 1))
        notes = [_note(note) for note in self.shared.notes]
        every = around.every_head(choice, b.weights.shape[1]).replace("Every", "every")
        captions = [
            f"{name} of {every}, as ordered in {self.names[1]} (Δ: by how much its weights change on average, signs aside)",
            f"{name} of {every} (Δ: mean change, signs aside)",
        ]
        L, S = self.weights[0].shape
        place = arrange(
            width,
            len(shown),
            L,
            S,
            row_texts,
            column_texts,
            tokens[1][1].numbered,
            maps=3,
            own_names=own_names,
            bars={1: ticks_width(scale), 2: ticks_width(change)},
            captions=bool(shown) + len(notes),
            labels=widest_labels(maps) if maps else None,
            parts=parts,
        )
        if shown:
            more = [
                around.weighted(b) + note for note in around.pooled(b, strip_pool(place, (L, S)), large_pool((L, S)), "change")
            ]
            notes.insert(0, tuple(text + note for note in more for text in captions))
        strip = Tiles(maps, _either(self._looks(0, shown), self._looks(1, shown)), *tokens[1]) if shown else None
        large = [
            Large(self._map(0, scale), looks[0], *tokens[0]),
            Large(self._map(1, scale), looks[1], *tokens[1]),
            Large(one, _either(*looks), *tokens[1], strong=True),
        ]
        chosen = Chosen(choice.head if self.head is not None else None, choice.query, choice.key)
        return picture(place, strip, large, chosen, [scale, change], theme, notes)

    def apart(self, theme: Theme, width: int, parts: Parts) -> Spec:
        """A and B with cells of their own, each of which says what of it is in sight."""
        scale, halves, large = self._scale(), [], []
        stacked = width < NARROW
        half = width if stacked else width // 2
        for i, trace in enumerate((self.a, self.b)):
            rows, columns = sides(trace, self.choice.item, half)
            L, S = self.weights[i].shape
            halves.append(
                arrange(
                    half,
                    0,
                    L,
                    S,
                    rows.widest,
                    columns.widest,
                    columns.numbered,
                    maps=1,
                    bars={0: ticks_width(scale)} if i else {},
                    captions=2,
                    stacked=stacked,
                    parts=parts,
                )
            )
            one = replace(self._map(i, scale), said=tuple(text.removeprefix(" · ") for text in around.seen(trace)))
            large.append(Large(one, self._looks(i, None if self.head is None else [self.head]), rows, columns))
        place = halves[0].beside(halves[1], stacked)
        chosen = Chosen(self.head, self.choice.query, self.choice.key)
        notes = [_note(note) for note in self.shared.notes]
        return picture(place, None, large, chosen, [scale], theme, notes, linked=False)


def _change(before: Float[np.ndarray, "*H L S"], after: Float[np.ndarray, "*H L S"]) -> Float[np.ndarray, "*H L S"]:
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        change: Float[np.ndarray, "*H L S"] = after.astype(np.float64) - before
    return change.astype(np.float32)


def _moved(change: Float[np.ndarray, "R S"]) -> tuple[str, str]:
    """What a label says of a head: the mean change of its real rows' weights, its sign aside."""
    finite = np.isfinite(change)
    if not finite.any():
        return "n/a", "n/a"
    mean = float(np.abs(change[finite]).mean())
    return f"Δ {prose(mean, '.2g')}", f"{prose(mean, '.2g')}"


def _either(a: Looks, b: Looks) -> Looks:
    """The looks of cells that hold no weight in one of two Traces. What only one masks still changed: those have a look of their own."""
    found: Looks = {}
    taken: Bool[np.ndarray, "T L S"] = np.zeros_like(a["masked"] | b["masked"])
    for kind in ("undefined", *NUMBERS):
        found[kind] = (a[kind] | b[kind]) & ~taken
        taken = taken | found[kind]
    found["masked"] = (a["masked"] & b["masked"]) & ~taken
    found["once"] = (a["masked"] ^ b["masked"]) & ~taken
    found["padded"] = (a["padded"] | b["padded"]) & ~(taken | found["masked"] | found["once"])
    return found


def _note(note: str) -> tuple[str, ...]:
    """A note as texts of one line, the longest first."""
    return note, note.partition(":")[0] + "."
