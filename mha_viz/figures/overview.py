"""Layers × heads: every head of every layer as a small map, a row per layer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from mha_viz.analysis import choose
from mha_viz.analysis.layers import counted_layers, layer_names
from mha_viz.core.trace import Trace
from mha_viz.figures import around
from mha_viz.figures.arrange import arrange_grid
from mha_viz.figures.heads import looks_of, sides, ticks_width, widest_labels
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.picture import Chosen, Map, Tiles, picture, strip_pool
from mha_viz.figures.piece import Looks, Spec
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import THEMES, ThemeName
from mha_viz.figures.widths import width_of
from mha_viz.settings import View

Layers = Sequence[Trace | None]  # the Trace of each, None where its maps are not there yet


def spec(
    traces: Layers,
    view: View,
    layer: int,
    theme: ThemeName = "light",
    width: int = 1104,
    parts: Parts = ALL,
    height: float = math.inf,
) -> Spec:
    """Every head of all layers that are alike, as small maps, as a plain dict for Plotly.

    Drawn are those of ``traces`` whose maps are as many and as large as those of the chosen ``layer``; None stands for a layer whose maps
    are not there yet.

    Each has its number above it and, where there is room, what the statistic that ``view.order`` names says of it. Where a map has
    more cells than px, it holds the largest weight of each block. All are on one Scale. In ``layout.meta`` the ``head`` of a tile is
    its place among all heads that are drawn, which ``place_of`` tells apart; the rest is as in ``mha_viz.figures.heads.heads``. ``parts``
    are what stands around the maps, which have no values in their cells. The maps are lower where that keeps them within a ``height``.
    """
    colors, own = THEMES[theme].dressed(view.colors), _there(traces, layer)
    chosen = choose(own, view)
    layers, item = alike(traces, layer, chosen.item), chosen.item
    drawn = [_there(traces, i) for i in layers]
    scale = Scale.of([trace.weights[item][:, ~trace.query_padding[item]] for trace in drawn], view, own.quantity)
    H, L, S = own.weights.shape[1:]
    maps: list[Map] = []
    found: list[Looks] = []
    names = layer_names(traces)
    for row, (i, trace) in enumerate(zip(layers, drawn, strict=True)):
        choice, weights = choose(trace, view), trace.weights[item]  # [H, L, S]
        for head in range(H):
            said = around.said(choice, head)
            short = said, said and around.value(choice, head)
            maps.append(Map(f"{names[i]} head {head}", row * H + head, weights[head], scale, short=short))
        looks = looks_of(trace, item, list(range(H)))
        found.append({name: np.broadcast_to(cells, (H, *cells.shape[1:])) for name, cells in looks.items()})  # [H, L, S] each
    looks = {name: np.concatenate([one[name] for one in found]) for name in found[0]}  # [layers · H, L, S] each
    left = max(width_of(names[i], 14) for i in layers) + 12
    place = arrange_grid(width, len(layers), H, L, S, left, ticks_width(scale), widest_labels(maps), parts, height)
    picked = Chosen(layers.index(layer) * H + chosen.head, chosen.query, chosen.key)
    pooled = around.pooled(own, strip_pool(place, (L, S)), None)
    plain = f"Every head of {counted(traces, layers)}{_item(traces, layers, item)}{_others(traces, layers, item)}"
    told = captions(traces, layers, view, item) if chosen.known else (plain,)
    texts = [text + around.weighted(own) + more for more in pooled for text in told]
    made = picture(place, Tiles(tuple(maps), looks, *sides(own, item, width)), [], picked, [scale], colors, [texts])
    for row, i in enumerate(layers if parts.labels else ()):
        tile = place.strip.place(row * H)
        text, color = (f"<b>{names[i]}</b>", colors.text) if i == layer else (names[i], colors.soft)
        made["layout"]["annotations"].append(around.text_at(place, 0, tile.y + tile.height / 2, text, 14, color))
    return made


def alike(traces: Layers, layer: int, item: int = 0) -> list[int]:
    """The layers that can be drawn beside ``layer``: as many heads, queries and keys, and a batch item of this number."""
    size = _there(traces, layer).shape[1:]
    return [i for i, trace in enumerate(traces) if trace is not None and trace.shape[1:] == size and item < trace.shape[0]]


def _there(traces: Layers, layer: int) -> Trace:
    trace = traces[layer]
    if trace is None:
        raise ValueError(f"The maps of layer {layer} are not there yet.")
    return trace


def place_of(traces: Layers, layer: int, tile: int) -> tuple[int, int]:
    """(layer, head) of a tile's ``head`` in the overview that was drawn for ``layer``."""
    row, head = divmod(tile, _there(traces, layer).shape[1])
    return alike(traces, layer)[row], head


def has_gaps(traces: Layers) -> bool:
    """Whether a map holds what is no finite number: marks that the legend alone explains."""
    return any(trace.undefined.any() or trace.nonfinite.any() for trace in traces if trace is not None)


def captions(traces: Layers, layers: Sequence[int], view: View, item: int = 0) -> tuple[str, ...]:
    """What the overview shows, the longest first."""
    statistic = view.statistic
    phrase, others = around.SAID[statistic][1], _others(traces, layers, item)
    many = f"{counted(traces, layers)}{_item(traces, layers, item)}"
    told = f"Every head of {many}, with its {phrase}{others}", f"{many}{others}"
    return tuple(dict.fromkeys((*told, f"{counted(traces, layers)}{others}")))  # the last where the window is narrow


def _others(traces: Layers, layers: Sequence[int], item: int) -> str:
    """Why some layers are left out."""
    first = _there(traces, layers[0])
    reasons = Counter(_differs(trace, first, item) for i, trace in enumerate(traces) if trace is not None and i not in layers)
    said = [f"; {n} other{' has' if n == 1 else 's have'} {reason}" for reason, n in reasons.items()]
    missing = sum(trace is None for trace in traces)
    return "".join(said) + (f"; {missing} {'is' if missing == 1 else 'are'} not there yet" if missing else "")


def _differs(trace: Trace, first: Trace, item: int) -> str:
    """What keeps ``trace`` from standing beside ``first``: what it has."""
    _, H, L, S = first.shape
    if trace.shape[2:] != (L, S):
        parts = trace.tokens.parts
        return "maps of another size" if parts is None else f"{parts.kind}s of {trace.shape[2]} × {trace.shape[3]}"
    return "another number of heads" if trace.shape[1] != H else f"no {first.tokens.item_name(item)}"


def _item(traces: Layers, layers: Sequence[int], item: int) -> str:
    """Which parts of their wholes the item is, in layers whose items are parts: "" where no layer's are."""
    tokens = [_there(traces, i).tokens for i in layers]
    if all(one.parts is None for one in tokens):
        return ""
    names = Counter(one.item_name(item) for one in tokens)
    if len(names) == 1:
        return f", {next(iter(names))}"
    return f", item {item}: {', '.join(f'{name} in {n}' for name, n in names.items())}"


def counted(traces: Layers, layers: Sequence[int]) -> str:
    """How many layers are drawn, and in how many steps."""
    names = layer_names(traces)
    return counted_layers([names[i] for i in layers])


def describe(traces: Layers, view: View, layer: int) -> str:
    """What the overview shows, in words: its text alternative."""
    own = _there(traces, layer)
    chosen = choose(own, view)
    layers, H = alike(traces, layer, chosen.item), own.weights.shape[1]
    what = f"{counted(traces, layers)} by {H} heads as small maps{around.weighted(own)}{_item(traces, layers, chosen.item)}"
    return f"Overview of {what}. {layer_names(traces)[layer].capitalize()} head {chosen.head} is chosen."
