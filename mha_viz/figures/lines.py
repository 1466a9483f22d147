"""Heads as lines between tokens: queries left, keys right, and a weight the wider and darker the more it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import plotly.graph_objects as go

from mha_viz.core.decimals import prose
from mha_viz.core.trace import Trace
from mha_viz.figures.around import percent
from mha_viz.figures.drawn_lines import MARKS, Drawn, left_out_in_words, small_percent
from mha_viz.figures.labels import SIZE, escape
from mha_viz.figures.panels import EDGE, NODE, TITLES, Place, arrange
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Piece, Spec, ground, legend, quiet
from mha_viz.figures.scale import FAINTEST
from mha_viz.figures.theme import FONT, THEMES, Theme, ThemeName
from mha_viz.figures.tiles import line, outlines
from mha_viz.figures.widths import width_of
from mha_viz.settings import View

if TYPE_CHECKING:
    from jaxtyping import Float, Int

AXES = ("x", "y")  # in px
Word = tuple[float, float, str, str, float, str]  # x and y in px, text, its place beside them, size, color
Points: TypeAlias = 'tuple[Float[np.ndarray, "P L 2"], Float[np.ndarray, "P S 2"]]'  # px of tokens' ends, see ``_points``
T = TypeVar("T", float, np.ndarray)
STEPS = 24  # of width and colour
CAPTIONS = (  # the first that fits
    "Each line: how much the query on its left reads from the key on its right. No line: masked, or weight 0.",
    "Lines from a query (left) to the keys that it reads (right)",
    "query (left) → key (right)",
)


def lines(trace: Trace, view: View, theme: ThemeName = "light", width: int = 1104) -> go.Figure:
    """The shown heads of one batch item as lines, exactly ``width`` px wide, as a ``go.Figure``.

    A panel per head: the chosen one beside the average ("pair"), every shown head and then the average ("all"), the chosen head
    alone ("one"). A line's width and colour follow its weight in equal steps, on the scale and in the colours of the maps. Masked
    cells, padded queries and undefined ones have no line. Where there would be more than ``LEGIBLE`` a panel the lightest are left
    out, and the picture says below which weight, and how much of the weight that is. ``view.cell`` focuses its query, or its key
    alone: its lines are all drawn and the others step back.

    Coordinates are px from the top left corner. ``layout.meta`` says what stands where: ``kind`` is "lines"; ``queries`` and
    ``keys`` are the tokens; ``panels``, each with its ``head`` (None: the average) and for "query" and "key" the ``x`` of its line
    ends, the ``y`` of its first token, the ``pitch`` from one token to the next and ``name``, the px that names reach outwards;
    ``chosen``, the head, and the query and key in focus or None; ``quantity``, what a weight is called; ``first``, the number of
    the first query and key, and ``blocks``, whether each stands for several. The traces named after the panels, in their order and
    with ``meta`` "lines", hold what is drawn: ``customdata`` [K, 4] is query, key, weight and width in px of each line.
    """
    return go.Figure(spec(trace, view, theme, width))


def spec(
    trace: Trace, view: View, theme: ThemeName = "light", width: int = 1104, average: int | None = -1, parts: Parts = ALL
) -> Spec:
    """``lines`` as a plain dict, which ``go.Figure`` takes.

    ``average`` is the place of the average among the heads, -1 last, None for no average; ``parts`` are what stands around the lines, which
    have no values.
    """
    return _drawn(Drawn(trace, view, average=average), THEMES[theme].dressed(view.colors), width, parts)


def average(trace: Trace, view: View, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
    """The average of all heads alone, as ``spec`` draws it beside one; the ``chosen`` head of ``layout.meta`` is None."""
    return _drawn(Drawn(trace, view, heads=False), THEMES[theme].dressed(view.colors), width, parts)


def _drawn(shown: Drawn, theme: Theme, width: int, parts: Parts) -> Spec:
    words = [MARKS[look][1] for look in MARKS if shown.looks[look].any()]
    place = arrange(width, len(shown.heads), shown.large, shown.names_in, shown.least > 0, len(shown.samples), words, parts)
    points = _points(place)
    data = [
        *_frame(shown, place, theme),
        *_strokes(shown, place, points, theme),
        *_nodes(shown, place, points, theme),
        *_texts(shown, place, theme),
        *_hovers(shown, place, points),
    ]
    axis = {"domain": [0, 1], "fixedrange": True, "visible": False}
    layout = {
        **ground(width, place.height, theme),
        "xaxis": {**axis, "range": [0, width]},
        "yaxis": {**axis, "range": [place.height, 0]},
        "legend": legend(0, 1 - place.legend.y / place.height),
        "hovermode": "closest",
        "dragmode": False,
        "hoverlabel": {"font": {"family": FONT, "size": 14}},
        "meta": _meta(shown, place),
        "uirevision": "lines",
    }
    return {"data": data, "layout": layout}


def _meta(shown: Drawn, place: Place) -> Piece:
    panels: list[Piece] = []
    for panel, head in enumerate(shown.heads):
        *ends, top = place.ends(panel)
        panels.append({"head": head})
        for side, name in enumerate(("query", "key")):
            y = top + place.pitch[side] / 2
            panels[-1][name] = {"x": ends[side], "y": y, "pitch": place.pitch[side], "name": NODE + place.labels[side]}
    head = shown.choice.head if shown.choice.head in shown.heads else None
    return {
        "kind": "lines",
        "panels": panels,
        "names": [],
        "queries": place.sides[0].texts,
        "keys": place.sides[1].texts,
        "chosen": {"head": head, "query": shown.query, "key": shown.key},
        "quantity": shown.scale.quantity,
        "first": [side.first for side in place.sides],
        "blocks": [side.blocks for side in place.sides],
    }


def _strokes(shown: Drawn, place: Place, points: Points, theme: Theme) -> list[Piece]:
    """A trace per step of weight, the lightest first, so that stronger lines lie above; below them what is out of focus."""
    panel, query, key = np.nonzero(shown.drawn)  # [K] each
    ends, near = _ends(points, panel, query, key), shown.near[query, key]  # [K, 2, 2], [K]
    step = _step(shown.parts[panel, query, key])  # [K]
    found = [_stroke(ends[~near], theme.line, 1)] if shown.focused else []
    found += [_weighed(ends[near & (step == i)], (i + 0.5) / STEPS, place, theme) for i in np.unique(step[near]).tolist()]
    for i, (part, _) in enumerate(shown.samples if place.parts.bar else ()):
        box = place.sample(i)
        y = box.y + box.height / 2
        found.append(_weighed(np.array([[[box.x, y], [box.right, y]]]), part, place, theme))  # [1, 2, 2]
    return found


def _step(part: Float[np.ndarray, "*K"]) -> Int[np.ndarray, "*K"]:
    """Which of the STEPS of width and colour."""
    step: Int[np.ndarray, "*K"] = np.minimum(part * STEPS, STEPS - 1).astype(int)
    return step


def _weighed(ends: Float[np.ndarray, "K 2 2"], part: float, place: Place, theme: Theme) -> Piece:
    color = "rgb({:.0f},{:.0f},{:.0f})".format(*theme.ink_at(FAINTEST + (1 - FAINTEST) * part))  # never quite as faint as paper
    return _stroke(ends, color, _thickness(part, place))


def _thickness(part: T, place: Place) -> T:
    """px of a line, by how far up the scale its weight is."""
    return 0.75 + (6.25 if place.large else 3.25) * part


def _points(place: Place) -> Points:
    """px of every token's end of its lines in every panel: of queries [P, L, 2] and of keys [P, S, 2]."""
    ends = np.array([place.ends(panel) for panel in range(place.count)])  # [P, 3]

    def of(side: int) -> Float[np.ndarray, "P tokens 2"]:
        y = ends[:, 2:] + (np.arange(len(place.sides[side].texts)) + 0.5) * place.pitch[side]  # [P, L|S]
        return np.stack([np.broadcast_to(ends[:, [side]], y.shape), y], axis=2)  # [P, L|S, 2]

    return of(0), of(1)


def _ends(
    points: Points, panel: Int[np.ndarray, " K"] | int, query: Int[np.ndarray, " K"], key: Int[np.ndarray, " K"]
) -> Float[np.ndarray, "K 2 2"]:
    """[K, 2, 2] the ends of K lines, at the query and at the key, x and y in px."""
    return np.stack([points[0][panel, query], points[1][panel, key]], axis=1)


def _stroke(ends: Float[np.ndarray, "K 2 2"], color: str, width: float) -> Piece:
    """Lines [K, 2, 2] as one trace, with a gap (NaN) after each."""
    x, y = np.pad(ends, ((0, 0), (0, 1), (0, 0)), constant_values=np.nan).reshape(-1, 2).T.astype(np.float32)  # [3K] each
    return line(x, y, AXES, color, width)


def _frame(shown: Drawn, place: Place, theme: Theme) -> list[Piece]:
    """Around the chosen head's panel among small ones."""
    if place.large:
        return []
    box = place.panel(shown.heads.index(shown.choice.head))
    edges = np.array([[box.y - 2], [box.bottom + 6], [box.x - 6], [box.right + 6]])
    return [line(*outlines(*edges), AXES, theme.choice, 3)]


def _nodes(shown: Drawn, place: Place, points: Points, theme: Theme) -> list[Piece]:
    """A dot where a token's lines end, another mark, named in the legend, where it has none, and a ring around what is in focus."""
    L, S = shown.near.shape
    at, small = np.concatenate(points, axis=1), min(place.pitch) < 6  # [P, L + S, 2]
    focus = np.append(np.arange(L) == shown.query, np.arange(S) == shown.key)  # [L + S]
    plain = ~np.any(list(shown.looks.values()), axis=0)  # [L + S]
    found = [_dots(at[:, plain], "circle", 3 if small else 5, theme.soft, 0)]
    for rank, (look, (symbol, words)) in enumerate(MARKS.items()):
        if shown.looks[look].any():
            dots = _dots(at[:, shown.looks[look]], symbol, 4 if small else 8, theme.soft, 1.5)
            found.append(dots | {"name": words, "showlegend": place.parts.legend, "legendrank": rank})
    return [*found, _dots(at[:, focus], "circle-open", 12, theme.choice, 2.5)] if focus.any() else found


def _dots(points: Float[np.ndarray, "*K 2"], symbol: str, size: float, color: str, thick: float) -> Piece:
    """Marks at [..., 2] as one trace."""
    x, y = points.reshape(-1, 2).T.astype(np.float32)  # [K] each
    marker = {"symbol": symbol, "size": size, "color": color, "line": {"color": color, "width": thick}}
    return quiet("markers", x, y, marker=marker)


def _texts(shown: Drawn, place: Place, theme: Theme) -> list[Piece]:
    """Every word of the picture as one trace, or none."""
    words = [
        *(_captions(shown, place, theme) if place.parts.title else ()),
        *(word for panel in range(place.count) for word in _titles(shown, place, panel, theme)),
        *(word for panel in range(place.count) for word in _names(shown, place, panel, theme)),
        *(_key(shown, place, theme) if place.parts.bar else ()),
    ]
    if not words:
        return []
    x, y, text, position, size, color = zip(*words, strict=True)
    at, font = (np.array(x, np.float32), np.array(y, np.float32)), {"size": size, "color": color}
    return [quiet("text", *at, text=text, textposition=position, textfont=font, cliponaxis=False)]


def _captions(shown: Drawn, place: Place, theme: Theme) -> Iterator[Word]:
    """What a line is, and which are left out: the longest words that fit."""
    left_out = (
        left_out_in_words(shown),
        f"Below {prose(shown.least, 'g')} left out: {small_percent(shown.left_out())} of the weight",
    )
    captions = [text + shown.weighted + part for part in shown.parts_seen for text in CAPTIONS]
    for y, texts, color in ((10, captions, theme.soft), (30, left_out if shown.least else (), theme.text)):
        fitting = [text for text in texts if width_of(text, 13) < place.width - 2 * EDGE] or texts[-1:]
        yield from ((EDGE, y, text, "middle right", 13, color) for text in fitting[:1])


def _key(shown: Drawn, place: Place, theme: Theme) -> Iterator[Word]:
    """What a line's width means."""
    yield place.key.x, place.key.y + 12, shown.scale.title(place.key.width), "middle right", 14, theme.text
    for i, (_, text) in enumerate(shown.samples):
        box = place.sample(i)
        yield box.right + 6, box.y + box.height / 2, text, "middle right", 13, theme.text


def _titles(shown: Drawn, place: Place, panel: int, theme: Theme) -> Iterator[Word]:
    """Above a panel its head's name and what its sides are, below it how much is left out."""
    box, (left, right, top) = place.panel(panel), place.ends(panel)
    (height, size), head, name = TITLES[place.large], shown.heads[panel], shown.name(panel)
    title = f"<b>{name if width_of(name, size) < box.width else 'average'}</b>"
    if head is not None and shown.choice.differences is not None:
        differs = f" differs {percent(shown.choice.differences[head])}"
        title += f"<span style='color:{theme.soft}'>{differs}</span>" if width_of(name + differs, size) < place.step[0] else ""
    if place.parts.title:
        yield box.x, box.y + height / 2, title, "middle right", size, theme.text
    if place.labels[0]:
        yield box.x, top - 17, "query asks", "middle right", 13, theme.soft
        yield box.right, top - 17, "key is read", "middle left", 13, theme.soft
    if shown.least and place.parts.title:
        part = small_percent(shown.left_out(panel))
        if place.large and not shown.drawn[panel].any():
            part = f"no weight reaches {prose(shown.least, 'g')}"
        elif place.labels[0]:
            part += " of its weight left out" if place.large else " left out"
        yield (left + right) / 2, box.bottom - 9, part, "middle center", 13, theme.soft


def _names(shown: Drawn, place: Place, panel: int, theme: Theme) -> Iterator[Word]:
    """As many of the tokens' names beside a panel's lines as there is room for, in bold where in focus."""
    left, right, top = place.ends(panel)
    for side, (names, chosen) in enumerate(zip(place.sides, (shown.query, shown.key), strict=True)):
        x, position = ((left - NODE, "middle left"), (right + NODE, "middle right"))[side]
        for token in place.named(side):
            name = escape(names.short[token])
            color = theme.soft if names.hidden[token] else theme.text
            y = top + (token + 0.5) * place.pitch[side]
            yield x, y, f"<b>{name}</b>" if token == chosen else name, position, SIZE, color


def _hovers(shown: Drawn, place: Place, points: Points) -> list[Piece]:
    """A trace of unseen points per panel, one on each line, that answer the pointer with the line's query, key and weight."""
    found = []
    for panel in range(place.count):
        query, key = np.nonzero(shown.drawn[panel])  # [K] each
        weight = shown.weights[panel, query, key]  # [K]
        ends = _ends(points, panel, query, key)  # [K, 2, 2]
        part = np.array([0.37, 0.5, 0.63])[(query + key) % 3][:, None]  # [K, 1] lines that cross in the middle answer apart
        x, y = ((1 - part) * ends[:, 0] + part * ends[:, 1]).astype(np.float32).T  # [K] each
        thickness = _thickness((_step(shown.parts[panel, query, key]) + 0.5) / STEPS, place)  # [K]
        exact = [side.exact for side in place.sides]
        found.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": x,
                "y": y,
                "marker": {"size": 8, "opacity": 0},
                "showlegend": False,
                "text": [
                    f"query {exact[0][q]}<br>key {exact[1][k]}" for q, k in zip(query.tolist(), key.tolist(), strict=True)
                ],
                "customdata": np.stack([query, key, weight, thickness], axis=1).astype(np.float32),
                "name": shown.name(panel),
                "meta": "lines",
                "hovertemplate": f"%{{text}}<br>{shown.scale.quantity} %{{customdata[2]:.6f}}<extra>%{{fullData.name}}</extra>",
            }
        )
    return found
