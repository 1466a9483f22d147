"""The heads of one layer: in a strip with one of them beside the average of them all, all of them large, or one alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from mha_viz.analysis import choose
from mha_viz.analysis.choice import Choice
from mha_viz.analysis.statistics import silent
from mha_viz.core.cells import WORDS, content, kinds
from mha_viz.core.trace import Trace
from mha_viz.figures import around
from mha_viz.figures.arrange import arrange, arrange_all
from mha_viz.figures.geometry import Geometry
from mha_viz.figures.labels import Names, name_of
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.picture import Chosen, Large, Map, Tiles, large_pool, picture, strip_pool
from mha_viz.figures.piece import Looks, Spec
from mha_viz.figures.scale import Scale, largest_weight, scale_of
from mha_viz.figures.theme import THEMES, ThemeName
from mha_viz.figures.widths import width_of
from mha_viz.settings import View
from mha_viz.settings.view import UNSORTED

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["average", "describe", "describe_average", "heads", "largest_weight", "spec"]


def heads(trace: Trace, view: View, theme: ThemeName = "light", width: int = 1104) -> go.Figure:
    """The picture of one batch item's weights, exactly ``width`` px wide, as a ``go.Figure``.

    ``view.arrangement``: every head in a strip and below it the chosen one beside the average ("pair"), every shown head large and
    the average last ("all"), or the chosen head alone ("one"). All maps share one Scale, from ``view.scale`` and ``view.limits``, in
    the colours of ``view.colors``. Each map [L, S] holds the weights as they are; on the scale "row" it holds shares, and the weights
    as ``customdata``. Where a map has more cells than there are px, and a large one beyond 512 a side, it is pooled: it holds the
    largest weight of each block, and cell i of n lies in block ⌊i · blocks / n⌋.

    ``layout.meta`` says what stands where, for whoever answers the pointer: ``tiles``, one per heatmap and in their order, each with
    its ``head`` (None: the average), the ids of its ``axes``, its first cell's centre ``x0``, ``y0``, the px of its ``label``, the
    ``title`` in that and its size, whether its rows and columns are ``named`` beside it, and the index of its ``side``; ``sides``,
    the tokens of rows and columns in full (``queries``, ``keys``) and as drawn (``rows``, ``columns``), the latter at an ``angle``, the
    number of the ``first`` of both, and whether each of them stands for several (``blocks``);
    ``names``, all short texts that axes of the layout have, and how many px apart those must stand to be drawn; ``order``, the heads
    shown; ``largest``, where scales end; ``chosen``, the head, query and key; ``quantity``, what a cell is called.
    """
    return go.Figure(spec(trace, view, theme, width))


def spec(
    trace: Trace,
    view: View,
    theme: ThemeName = "light",
    width: int = 1104,
    strip: bool = True,
    average: int | None = -1,
    parts: Parts = ALL,
) -> Spec:
    """``heads`` as the plain dict that ``go.Figure`` checks: for the live picture, which has no time for that at every change.

    Without its ``strip`` a pair stands alone: where every head is on show elsewhere. ``average`` says among how many heads before it
    the average stands, None for no average, -1 for the last place. ``parts`` are what stands around the maps.
    """
    shown = _Shown(trace, view, theme, width)
    order, head, pair = shown.choice.order, shown.choice.head, view.arrangement == "pair"
    maps = [shown.map(one) for one in order]
    told = around.captions(view.order, around.every_head(shown.choice, shown.H), dropped_out(trace), shown.choice.known)
    if view.arrangement == "all":
        if average is not None and trace.has("mean_weights"):
            average = len(maps) if average < 0 else average
            maps.insert(average, shown.average_map("average"))
        else:
            average = None
        alone = arrange_all(width, len(maps), *shown.sizes, shown.ticks, widest_labels(maps), parts)
        return shown.picture(alone, shown.tiles(maps, average), [], told, head)
    large = [Large(maps[order.index(head)], shown.looks([head]), *shown.names, strong=True)]
    large += [shown.large_average()] if pair and average is not None else []
    place = arrange(
        width,
        len(maps) if pair and strip else 0,
        *shown.sizes,
        maps=len(large),
        bars={len(large) - 1: shown.ticks},
        labels=widest_labels(maps),
        parts=parts,
    )
    if pair and strip:
        return shown.picture(place, shown.tiles(maps), large, told, head)
    one = f"One head of {shown.H}" + (" beside the average" if len(large) > 1 else "")
    return shown.picture(place, None, large, (one,), head)


def average(trace: Trace, view: View, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
    """The average of all heads alone, as ``spec`` has it beside one; the ``chosen`` head of ``layout.meta`` is None."""
    shown = _Shown(trace, view, theme, width)
    place = arrange(width, 0, *shown.sizes, maps=1, bars={0: shown.ticks}, parts=parts)
    return shown.picture(place, None, [shown.large_average()], ("The average alone",), None)


class _Shown:
    """What is drawn of one batch item, before anyone asks where: its Choice and Scale, the ``names`` of rows and columns, the px of
    numbers beside the bar, ``ticks``, and all that decides how large maps can be, ``sizes``."""

    def __init__(self, trace: Trace, view: View, theme: ThemeName, width: int) -> None:
        self.trace, self.choice, self.theme = trace, choose(trace, view), THEMES[theme].dressed(view.colors)
        item = self.choice.item
        self.weights = trace.weights[item]  # [H, L, S]
        self.H, L, S = self.weights.shape
        self.scale = scale_of(trace, item, view)
        self.names = rows, columns = sides(trace, item, width)
        self.ticks = ticks_width(self.scale)
        self.sizes = L, S, rows.widest, columns.widest, columns.numbered

    def map(self, head: int) -> Map:
        return head_map(self.weights[head], head, self.choice, self.scale)

    def average_map(self, name: str | None = None) -> Map:
        if not self.trace.has("mean_weights"):  # of a long sequence it comes last: its place is kept
            return Map("average", None, np.full_like(self.weights[0], np.nan), self.scale, ("comes after the heads",))
        off = len(silent(self.trace))
        of = f"of {self.H} head{'s' if self.H > 1 else ''}" + (f", {off} off" if off else "")
        mean = self.trace.mean_weights[self.choice.item]  # [L, S]
        return Map(name or f"average {of}", None, mean, self.scale, short=(of, f"of {self.H}"))

    def large_average(self) -> Large:
        return Large(self.average_map(), self.looks(None), *self.names)

    def tiles(self, maps: Sequence[Map], average: int | None = None) -> Tiles:
        return Tiles(tuple(maps), self.looks(list(self.choice.order), average), *self.names)

    def looks(self, shown: Sequence[int] | None, average: int | None = None) -> Looks:
        return looks_of(self.trace, self.choice.item, shown, average)

    def picture(
        self, place: Geometry, strip: Tiles | None, large: Sequence[Large], captions: Sequence[str], head: int | None
    ) -> Spec:
        """The picture of these Tiles, or None, and Large maps under the longest caption that fits; ``head`` is the chosen one."""
        shape, choice = self.weights.shape[1:], self.choice
        pools = strip_pool(place, shape), large_pool(shape) if large else None
        notes = [around.weighted(self.trace) + note for note in around.pooled(self.trace, *pools)]
        texts = [text + note for note in notes for text in captions]
        found = picture(place, strip, large, Chosen(head, choice.query, choice.key), [self.scale], self.theme, [texts])
        found["layout"]["meta"]["order"] = [] if head is None else list(choice.order)
        return found


def head_map(weights: Float[np.ndarray, "L S"], head: int, choice: Choice, scale: Scale, source: str | None = None) -> Map:
    """The Map of one head's weights [L, S], with what its title and label say of it."""
    said = around.said(choice, head)
    whole = (f"{said} from the average",) if choice.statistic == "difference" and said else ()
    return Map(f"head {head}", head, weights, scale, (*whole, said), (said, said and around.value(choice, head)), source)


def sides(trace: Trace, item: int, width: int) -> tuple[Names, Names]:
    """The Names of one batch item's queries and keys; padded queries and keys that nobody may read step back."""
    return (
        Names.along(trace.tokens, 0, item, min(120, 0.2 * width), trace.query_padding[item]),
        Names.along(trace.tokens, 1, item, 96, trace.mask[item].all(axis=(0, 1))),
    )


def looks_of(trace: Trace, item: int, shown: Sequence[int] | None, average: int | None = None) -> Looks:
    """The looks of the cells of some heads' maps, each [T, L, S], or [1, L, S] where all heads have one mask.

    ``average`` is the place among them where the average stands, None for none; ``shown`` None means the average alone, [1, L, S].
    """
    mask, undefined, padding, values = trace.mask[item], trace.undefined[item], trace.query_padding[item], trace.weights[item]
    alike = mask.strides[0] == 0 or all(
        np.array_equal(one, mask[0]) for one in mask[1:]
    )  # seen at [H, L, S] it is the same one
    if alike and (undefined == undefined[0]).all() and not trace.nonfinite[item].any():
        return kinds(np.zeros_like(values[:1]), mask[:1], padding, undefined[:1])
    masks, undefineds, values = mask[shown or []], undefined[shown or []], values[shown or []]
    if average is not None or shown is None:
        mean = trace.mean_weights[item] if trace.has("mean_weights") else np.zeros(mask.shape[1:])  # [L, S]
        masks = np.insert(masks, average or 0, mask.all(axis=0), axis=0)  # [T, L, S]
        undefineds = np.insert(undefineds, average or 0, undefined.any(axis=0), axis=0)  # [T, L]
        values = np.insert(values, average or 0, mean, axis=0)  # [T, L, S]
    return kinds(values, masks, padding, undefineds)


def dropped_out(trace: Trace) -> bool:
    """True where dropout fell on the weights, and so not on what heads are told apart by."""
    return trace.has("dropped") and trace.dropped is not None


def widest_labels(maps: Iterable[Map]) -> dict[str, float]:
    """px that the widest label of these maps takes, in each of the ways to say it."""
    return around.label_widths([map.label for map in maps])


def ticks_width(scale: Scale) -> float:
    """px of the widest number beside the colour bar."""
    return max((width_of(text, 13) for text in scale.ticks()[1]), default=0)


def describe(trace: Trace, view: View, strip: bool = True) -> str:
    """What the picture shows, in a few sentences: its text alternative; ``strip`` as ``spec`` draws it."""
    choice = choose(trace, view)
    item, head = choice.item, choice.head
    H = trace.weights.shape[1]
    shown = f"all {H} heads" if len(choice.order) == H else f"{len(choice.order)} of {H} heads"
    if view.arrangement == "one":
        shown = f"head {head} alone"
    paired = view.arrangement == "pair" and not strip  # no other head is there
    if paired:
        shown = f"head {head}" + f" and the {average_of(H)}" * trace.has("mean_weights")
    phrase = "difference from their average" if view.order == "difference" else around.SAID[choice.statistic][1]
    ordered = choice.known and view.order not in UNSORTED and view.arrangement != "one" and not paired
    first = f", largest {phrase} first: head {choice.order[0]}" if ordered else ""
    before = ", both before dropout" if dropped_out(trace) else ""
    cell = choice.query, choice.key
    in_head = f"{content(trace, item, head, *cell)} in head {head}"
    in_average = f", {content(trace, item, None, *cell)} in the average" if trace.has("mean_weights") else ""
    differs = ""
    if choice.differences is not None:
        differs = f"Head {head} differs {around.percent(choice.differences[head])} from the average of {H}{before}. "
    return (
        f"Attention maps of {shown}{around.weighted(trace)}, {of_what(trace)}{first}. {differs}"
        f"{_cell(trace, choice)}: {in_head}{in_average}." + _without_weight(looks_of(trace, item, [head]), f" in head {head}")
    )


def describe_average(trace: Trace, view: View) -> str:
    """What ``average`` shows: its text alternative."""
    choice = choose(trace, view)
    H = trace.weights.shape[1]
    return (
        f"Attention map of the {average_of(H)}{around.weighted(trace)}, {of_what(trace)}. "
        f"{_cell(trace, choice)}: {content(trace, choice.item, None, choice.query, choice.key)}."
        + _without_weight(looks_of(trace, choice.item, None), "")
    )


def average_of(count: int) -> str:
    return f"average of {count} head{'s' if count > 1 else ''}"


def of_what(trace: Trace) -> str:
    """How large the maps are, and what of longer ones is in sight, in words."""
    L, S = trace.plain.shape[2:]
    return f"{L} queries by {S} keys{around.seen(trace)[0].replace(' · ', ', ')}"


def _cell(trace: Trace, choice: Choice) -> str:
    query, key = (name_of(trace.tokens, side, choice.item, i) for side, i in enumerate((choice.query, choice.key)))
    return f"Chosen cell: query {query}, key {key}"


def _without_weight(looks: Looks, where: str) -> str:
    """How many cells of a map have which of its ``looks``, each [1, L, S]."""
    cells = [f"{look.sum()} {WORDS.get(name, name)}" for name, look in looks.items() if look.any()]
    return f" Of {looks['masked'].size} cells{where}: {', '.join(cells)}." if cells else ""
