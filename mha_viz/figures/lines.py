"""Heads as lines between tokens: queries on the left, keys on the right, each weight a line that is wider and darker the more it is."""

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from mha_viz.analysis import choose
from mha_viz.figures.around import percent
from mha_viz.figures.geometry import NARROW, NICE, ROW_PITCH, Box
from mha_viz.figures.heads import largest_weight
from mha_viz.figures.labels import SIZE, Names, escape, shorten, visible, width_of
from mha_viz.figures.theme import FONT, THEMES

LEGIBLE = 140  # lines in one panel, beyond which the lightest are left out
NODES = {  # look of a token that has no lines → marker, words in the legend, in this order
    "undefined": ("x-thin-open", "undefined query: no key left, no lines"),
    "masked": ("line-ne-open", "masked key: no query may read it, no lines"),
    "padded": ("circle-open", "padded query: no lines"),
}
KEY, KEY_PITCH = 120, 24  # px beside the panels for what a line's width means, and per line of that


def lines(trace, view, theme="light", width=1104):
    """The shown heads of one batch item as lines, exactly ``width`` px wide, as a ``go.Figure``.

    A panel per head: the chosen one beside the average ("pair"), every shown head and then the average ("all"), the chosen head
    alone ("one"). A line's width and colour follow its weight, in equal steps from 0 to the largest weight of a real query, or
    between ``view.limits``. Masked cells, padded queries and undefined ones have no lines. Where a panel would hold more than
    ``LEGIBLE`` the lightest are left out, and the picture says below which weight and how much that is; lines of a focused token
    are always drawn. ``view.cell`` focuses its query: the other lines step back.

    All coordinates are px from the top left corner. ``layout.meta`` says what stands where: ``kind`` "lines"; ``queries`` and
    ``keys``, the tokens; ``panels``, each with its ``head`` (None: the average) and on either side, "query" and "key", the ``x``
    of its line ends, the ``y`` of its first token, the ``pitch`` from one to the next, and ``reach``, how far its names extend;
    ``chosen``, the head and the focused query and key (None: none). A trace whose ``meta`` is "panel" holds a panel's drawn lines:
    ``customdata`` [lines, 3] are query, key and weight.
    """
    return go.Figure(spec(trace, view, theme, width))


def spec(trace, view, theme="light", width=1104):
    """``lines`` as the plain dict that ``go.Figure`` checks."""
    theme, choice = THEMES[theme], choose(trace, view)
    picture = _Picture(trace, view, choice)
    place = arrange(width, picture, view.arrangement)
    data = [*_lines(picture, place, theme), *_nodes(picture, place, theme), _texts(picture, place, choice, theme)]
    data += [_hover(picture, place, panel) for panel in range(len(picture.heads))]
    rows, columns = place.rows, place.columns
    meta = {
        "kind": "lines",
        "panels": [
            {
                "head": head,
                "query": {"x": left, "y": top + place.pitch[0] / 2, "pitch": place.pitch[0], "reach": -place.labels[0]},
                "key": {"x": right, "y": top + place.pitch[1] / 2, "pitch": place.pitch[1], "reach": place.labels[1]},
            }
            for head, (left, right, top) in zip(picture.heads, map(place.ends, range(len(picture.heads))), strict=True)
        ],
        "queries": rows.texts,
        "keys": columns.texts,
        "chosen": {"head": choice.head, "query": picture.query, "key": picture.key},
    }  # fmt: skip
    axis = {"domain": [0, 1], "fixedrange": True, "visible": False}
    layout = {
        "xaxis": {**axis, "range": [0, width]}, "yaxis": {**axis, "range": [place.height, 0]},
        "width": width, "height": place.height, "margin": {**dict.fromkeys("lrtb", 0), "autoexpand": False}, "meta": meta,
        "paper_bgcolor": theme.paper, "plot_bgcolor": theme.paper, "font": {"family": FONT, "size": 14, "color": theme.text},
        "legend": {
            "orientation": "h", "x": 0, "xanchor": "left", "y": 1 - place.legend.y / place.height, "yanchor": "top",
            "bgcolor": "rgba(0,0,0,0)", "itemclick": False, "itemdoubleclick": False, "tracegroupgap": 0,
        },
        "hovermode": "closest", "dragmode": False, "hoverlabel": {"font": {"family": FONT, "size": 14}},
        "uirevision": "lines", "template": {},
    }  # fmt: skip
    return {"data": data, "layout": layout}


def describe_lines(trace, view):
    """What the picture shows, in a few sentences: its text alternative."""
    choice = choose(trace, view)
    picture = _Picture(trace, view, choice)
    H, L, S = trace.weights.shape[1:]
    panels = [picture.name(panel) for panel in range(len(picture.heads))]
    named = ", ".join(panels) if len(panels) <= 4 else f"{len(panels) - 1} heads and the average of {H}"
    said = [f"Attention as lines from {L} queries on the left to {S} keys on the right: {named}."]
    said += [f"{picture.left_out_words()}."] if picture.least else []
    for name, panel in zip(panels[:4], range(len(panels)), strict=False):
        cells = np.where(picture.seen[panel] & picture.near, picture.weights[panel], -1)
        query, key = np.unravel_index(cells.argmax(), cells.shape)
        if cells[query, key] >= 0:
            names = (
                f"{i} “{visible(tokens[choice.item][i])}”"
                for i, tokens in ((query, trace.query_tokens), (key, trace.key_tokens))
            )
            said.append(f"Strongest line of {name}: query {next(names)} to key {next(names)}, {cells[query, key]:.6f}.")
    counts = [(name, int(where.sum())) for name, where in picture.looks.items()]
    said += [f"{count} {NODES[name][1]}." for name, count in counts if count]
    return " ".join(said)


class _Picture:
    """What is drawn, before anybody asks where: panels P, their weights, which cells have lines, which of these are in focus.

    ``heads`` (None: the average) and ``weights`` [P, L, S]; ``seen`` and ``drawn`` [P, L, S] bool, cells that could have a line
    and that have one; ``least``, the weight below which lines are left out, 0 where none is; ``near`` [L, S] bool, the cells of the
    focused token, all of them where none is; ``looks``, name → bool per query or key that has no lines.
    """

    def __init__(self, trace, view, choice):
        item = choice.item
        weights, padding = trace.weights[item], trace.query_padding[item]  # [H, L, S], [L]
        mask, undefined = trace.mask[item], trace.undefined[item]  # [H, L, S], [H, L]
        self.H = len(weights)
        own = list(choice.order) if view.arrangement == "all" else [choice.head]
        self.heads = own if view.arrangement == "one" else [*own, None]
        average = [] if view.arrangement == "one" else [trace.mean_weights[item]]
        self.weights = np.stack([*weights[own], *average])  # [P, L, S]
        L, S = self.weights.shape[1:]
        self.tokens = trace.query_tokens[item], trace.key_tokens[item]
        self.looks = {
            "undefined": undefined.all(axis=0),  # [L]
            "masked": mask.all(axis=(0, 1)),  # [S]
            "padded": padding & ~undefined.all(axis=0),  # [L]
        }
        with np.errstate(invalid="ignore"):  # NaN, in undefined rows, is not above 0
            self.seen = (self.weights > 0) & ~padding[:, None]  # [P, L, S]
        self.query, self.key = view.cell or (None, None)
        if (self.query or 0) >= L or (self.key or 0) >= S:
            self.query = self.key = None
        self.near = np.ones((L, S), bool)
        if self.query is not None:
            self.near = np.arange(L)[:, None] == np.full(S, self.query)  # [L, S]
        elif self.key is not None:
            self.near = np.arange(S) == np.full((L, 1), self.key)  # [L, S]
        self.focused = not self.near.all()
        self.least = _least(self.weights[self.seen], LEGIBLE * len(self.heads))
        self.drawn = self.seen & ((self.weights >= self.least) | (self.near & self.focused))  # [P, L, S]
        self.low, self.high = view.limits or (0.0, largest_weight(weights, padding))
        step = _nice_step((self.high - self.low) / 8)
        self.edges = np.append(np.arange(self.low, self.high - 1e-3 * step, step), self.high)  # [B + 1]

    def name(self, panel):
        head = self.heads[panel]
        return f"average of {self.H} head{'s' if self.H > 1 else ''}" if head is None else f"head {head}"

    def left_out(self, panels=slice(None)):
        """The part, 0 to 1, of the weight of some panels' real queries that no line shows."""
        seen, drawn = (self.weights[panels][cells[panels]].sum(dtype=np.float64) for cells in (self.seen, self.drawn))
        return 1 - drawn / seen if seen else 0.0

    def left_out_words(self):
        beside = ", except of the chosen token" if self.focused else ""
        return f"Lines below {self.least:g} left out{beside}: {percent(self.left_out())} of the weight"


def _least(weights, most):
    """The weight, of two digits, below which lines are left out so that about ``most`` are drawn; 0 where there are no more."""
    if len(weights) <= most:
        return 0.0
    edge = float(np.partition(weights, -most)[-most])
    unit = 10.0 ** (math.floor(math.log10(edge)) - 1)
    below, above = round(math.floor(edge / unit) * unit, 12), round(math.ceil(edge / unit) * unit, 12)
    return below if (weights >= below).sum() <= 2 * most else above  # many equal weights: all of them, unless too many


def _nice_step(least):
    """The smallest of 1, 2 and 5 times a power of ten that is not below ``least``."""
    unit = 10.0 ** math.floor(math.log10(least))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= least * (1 - 1e-9))


# Where everything stands ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Panels of ``panel`` (width, height) px in ``across`` columns from ``top`` on; in each, names as wide as ``labels`` (left,
    right) beside a band of lines, tokens ``pitch`` (queries, keys) px apart; ``large`` panels have larger titles."""

    width: int
    height: int
    top: float
    across: int
    panel: tuple[float, float]
    step: tuple[float, float]
    labels: tuple[float, float]
    head_room: float
    pitch: tuple[float, float]
    large: bool
    rows: Names
    columns: Names
    key: Box
    key_columns: int
    legend: Box

    def panel_box(self, index):
        """The Box of one panel, its title included."""
        row, column = divmod(index, self.across)
        return Box(column * self.step[0], self.top + row * self.step[1], *self.panel)

    def ends(self, index):
        """px of a panel's line ends: x of queries, x of keys, and the top of the first token's row."""
        box = self.panel_box(index)
        return box.x + self.labels[0] + 14, box.right - self.labels[1] - 14, box.y + self.head_room

    def token(self, index, side, token):
        """(x, y) of one token's end of the lines in a panel; ``side`` 0 is queries, 1 keys."""
        ends = self.ends(index)
        return ends[side], ends[2] + (token + 0.5) * self.pitch[side]

    def name_step(self, side):
        """Every how many tokens one is named."""
        return next(step for step in NICE if step * self.pitch[side] >= ROW_PITCH - 1e-9)


def arrange(width, picture, arrangement):
    """The Place of a picture's panels, ``width`` px wide."""
    count, narrow, large = len(picture.heads), width < NARROW, arrangement != "all"
    room = width if narrow else width - KEY
    if large:
        across = 1 if narrow else count
    else:
        least = next(px for px, most in ((230, 16), (150, 33), (110, math.inf)) if count <= most)
        across = min(max(room // (min(least, 110) if narrow and count > 16 else least), 1), count)
        across = math.ceil(count / math.ceil(count / across))  # no ragged last row where it can be helped
    gap = 28 if large else 20
    panel_width = min((room - (across - 1) * gap) // across, 520 if count > 1 else 760)
    named = panel_width >= 150
    L, S = picture.weights.shape[1:]
    names = [
        Names(tokens, min(120, 0.26 * panel_width), hidden)
        for tokens, hidden in zip(picture.tokens, (picture.hidden(0), picture.hidden(1)), strict=True)
    ]
    labels = tuple(math.ceil(side.widest) if named else 0 for side in names)
    # Queries and keys of one length stand level, extra keys below them; other lengths are spread over the whole height.
    counts = (S, S) if L <= S <= L + 2 else (L, S)
    budget = 520 if large else min(max(1.1 * (panel_width - sum(labels)), 120), 340)
    pitch = min(28 if large else 20, max(budget / max(counts), 2 if large else 1))
    body = max(pitch * max(counts), 60)
    title = 28 if large else 22
    head_room, foot = title + (20 if named else 4), 20 if picture.least else 4
    panel = panel_width, head_room + body + foot
    step = panel_width + gap, panel[1] + (22 if large else 14)
    top = 22 + (20 if picture.least else 0)
    bottom = top + math.ceil(count / across) * step[1]
    bins = len(picture.edges) - 1
    if narrow:
        columns = max(min(width // 100, bins), 1)
        key = Box(0, bottom, width, 26 + KEY_PITCH * math.ceil(bins / columns))
        bottom = key.bottom + 6
    else:
        columns, key = 1, Box(across * step[0] - gap + 20, top + head_room - 20, KEY - 20, 26 + KEY_PITCH * bins)
        bottom = max(bottom, key.bottom)
    words = [width_of(NODES[look][1], 14) + 48 for look, where in picture.looks.items() if where.any()]
    rows = 1 if sum(words) <= width else math.ceil(len(words) / max(width // max(words), 1))  # as Plotly sets them
    legend = Box(0, bottom, width, 8 + 22 * rows if words else 0)
    return Place(
        width, math.ceil(legend.bottom), top, across, panel, step, labels, head_room,
        (body / counts[0], body / counts[1]), large, *names, key, columns, legend,
    )  # fmt: skip


# What is drawn --------------------------------------------------------------------------------------------------------


def _lines(picture, place, theme):
    """A trace per step of weight, the lightest first, so that stronger lines lie above; under them what is out of focus."""
    panel, query, key = np.nonzero(picture.drawn)  # [K] each
    weight = picture.weights[panel, query, key]  # [K]
    bins = len(picture.edges) - 1
    step = np.clip(np.searchsorted(picture.edges, weight, "right") - 1, 0, bins - 1)  # [K]
    segments = _segments(place, panel, query, key)  # [K, 2, 2]
    near = picture.near[query, key]  # [K]
    found = [_strokes(segments[~near], theme.line, 0.75)] if picture.focused else []
    for i in range(bins):
        sample = np.array(place.sample(i))[None]  # [1, 2, 2]
        strokes = np.concatenate([segments[near & (step == i)], sample])  # [K' + 1, 2, 2]
        found.append(_strokes(strokes, _ink(theme, (i + 1) / bins), place.thickness((i + 1) / bins)))
    return found


def _ink(theme, fraction):
    return "rgb({:.0f},{:.0f},{:.0f})".format(*theme.ink_at(fraction))


def _segments(place, panel, query, key):
    """[K, 2, 2] the ends of K lines, queries first, x and y in px."""
    ends = np.array([place.ends(i) for i in range(panel.max(initial=-1) + 1)]).reshape(-1, 3)[panel]  # [K, 3]
    y = ends[:, 2:] + (np.stack([query, key], axis=1) + 0.5) * place.pitch  # [K, 2]
    return np.stack([ends[:, :2], y], axis=-1)  # [K, 2, 2]


def _strokes(segments, color, width):
    """Lines [K, 2, 2] of one colour and width as one trace, with a gap (NaN) after each."""
    gapped = np.pad(segments, ((0, 0), (0, 1), (0, 0)), constant_values=np.nan).astype(np.float32)  # [K, 3, 2]
    return {
        "type": "scatter", "mode": "lines", "x": gapped[..., 0].ravel(), "y": gapped[..., 1].ravel(),  # [3K] each
        "line": {"color": color, "width": width}, "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip
