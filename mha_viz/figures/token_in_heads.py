"""One token in all heads: what it reads in each, or who reads it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from mha_viz.analysis.number import Derivation
from mha_viz.core.cells import kinds
from mha_viz.core.trace import Trace
from mha_viz.figures import tiles
from mha_viz.figures.geometry import NARROW, NICE, ROW_PITCH, Box
from mha_viz.figures.labels import escape, name_of
from mha_viz.figures.number_words import all_heads, mask_of, names_of, spelled, tokens_of
from mha_viz.figures.piece import Looks, legend
from mha_viz.figures.scale import Scale, scale_of
from mha_viz.figures.sheet import TITLE, Sheet
from mha_viz.figures.theme import THEMES, ThemeName
from mha_viz.figures.widths import widened
from mha_viz.settings import View

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from jaxtyping import Float

HEADS = 72  # px for the names of heads
ORIGIN = np.zeros((1, 2))  # of the only tile on its axes


def token_in_heads(
    trace: Trace,
    derivation: Derivation,
    side: Literal["query", "key"] = "query",
    view: View | None = None,
    theme: ThemeName = "light",
    width: int = 1104,
) -> go.Figure:
    """One token in all heads, a line of cells per head and their average below.

    That is the row of the query [H, S] (``side`` "query") or the column of the key [H, L] ("key"), in the colours and on the scale that the
    maps have in ``view``.
    """
    view = view or View()
    d, sheet, narrow, left = derivation, Sheet(width, THEMES[theme].dressed(view.colors)), width < NARROW, widened(HEADS)
    scale = scale_of(trace, d.item, view)
    along = "key" if side == "query" else "query"
    token = escape(dict(zip(("query", "key"), tokens_of(trace, d, width / 3), strict=True))[side])
    names, (weights, average, looks, average_looks) = names_of(trace, d, along), _token(trace, d, side)
    drawn, average_drawn, *_ = _token(trace, d, side, scale)
    H, count = weights.shape
    sides = min((width - left - (16 if narrow else 96)) / count, 40), min(max(320 / H, 7), 26)
    wide, high = (int(px) if px >= 4 else px for px in sides)  # whole px draw even cells
    cell = wide, high
    box = Box(left, TITLE + 8, count * cell[0], H * cell[1])
    below = Box(left, box.bottom + 10, box.width, max(cell[1], 18))
    sheet.title(0, 0, f"{side} {token}", f"in {all_heads(H)}: {'what it reads' if side == 'query' else 'who reads it'}")
    chosen = d.key if side == "query" else d.query
    rows = [f"head {h}" for h in range(H)]
    for exact, z, where, place, texts, row in (
        (weights, drawn, looks, box, rows, d.head),
        (average, average_drawn, average_looks, below, [f"average of {H}"], 0),
    ):
        ticks = ({"tickmode": "array", "tickvals": list(range(len(side))), "ticktext": side} for side in (names.exact, texts))
        axes = sheet.panel(place, (-0.5, count - 0.5), (len(z) - 0.5, -0.5), *ticks)
        size = cell[0], place.height / len(z)
        heatmap = tiles.heatmap(z, "", axes, exact=exact, gap=1 if min(cell) >= 8 else 0)
        heatmap["hovertemplate"] = (
            f"%{{y}}<br>{side} {token}<br>{along} %{{x}}<br>{trace.quantity} %{{customdata:.6f}}<extra></extra>"
        )
        sheet.data += [heatmap, *tiles.hatches(where, ORIGIN, axes, sheet.theme, 8 if min(cell) >= 8 else 5)]
        sheet.data.append(tiles.frame(len(z), count, axes, sheet.theme))
        sheet.data += tiles.marks((chosen, row), ORIGIN, (count, len(z)), size, axes, sheet.theme)
    tiles.put_in_legend(sheet.data)
    _name_heads(sheet, box, H, d.head)
    sheet.say(left - 8, below.y + below.height / 2, "average", 13, sheet.theme.text, "right")
    top = below.bottom + 6
    top += sheet.names_below(names, left, cell[0], top, chosen, along)
    bar = (
        Box(left, top + 8, max(box.width, 160), 62)
        if narrow
        else Box(box.right + 18, box.y, 14, max(below.bottom - box.y, 110))
    )
    top = max(top, bar.bottom)
    entries = sum(trace["showlegend"] for trace in sheet.data if "showlegend" in trace)
    height = math.ceil(top + 8 + 22 * (entries if narrow else min(entries, 1)))
    coloraxes = scale.coloraxes(sheet.theme, sheet.color_bar(bar, height, narrow, scale))
    sheet.data += [tiles.bar_only(name, axes) for name in coloraxes if name != "coloraxis"]
    return sheet.figure(
        height, "token in heads", showlegend=True, **coloraxes, legend=legend(0, 1 - (top + 4) / height, itemsizing="constant")
    )


def describe_token_in_heads(trace: Trace, derivation: Derivation, side: Literal["query", "key"] = "query") -> str:
    """What ``token_in_heads`` shows."""
    d, (weights, *_) = derivation, _token(trace, derivation, side)
    tokens = dict(zip(("query", "key"), tokens_of(trace, d), strict=True))
    along, verb = ("key", "reads most from") if side == "query" else ("query", "is read most by")
    said = f"{side.capitalize()} {tokens[side]} in {all_heads(len(weights))}, {weights.shape[1]} {'keys' if along == 'key' else 'queries'}."
    row = weights[d.head]
    finite = np.flatnonzero(np.isfinite(row))
    if not len(finite):
        of_row = trace.undefined[d.item, d.head] if side == "key" else np.array([bool(d.undefined)])
        words = " or ".join(
            dict.fromkeys(spelled(value, alone) for value, alone in zip(row, np.resize(of_row, len(row)), strict=True))
        )
        return f"{said} {words[0].upper()}{words[1:]} in head {d.head}."
    if not row[finite].max() > 0:
        return f"{said} Only zeros in head {d.head}."
    most = int(finite[row[finite].argmax()])
    name = name_of(trace.tokens, int(along == "key"), d.item, most)
    return f"{said} In head {d.head} it {verb} {along} {name}: {spelled(row[most])}."


def _token(
    trace: Trace, d: Derivation, side: str, scale: Scale | None = None
) -> tuple[Float[np.ndarray, "H count"], Float[np.ndarray, "1 count"], Looks, Looks]:
    """Weights [H, count] of a token in all heads, or what ``scale`` draws for them, their average [1, count], and the looks of both,
    name → [1, …] bool."""
    mask, padding, undefined = mask_of(trace, d), trace.query_padding[d.item], trace.undefined[d.item]
    weights, average = trace.weights[d.item], trace.mean_weights[d.item]
    at = np.s_[..., d.query, :] if side == "query" else np.s_[..., d.key]
    looks = {name: where[None][at] for name, where in kinds(weights, mask, padding, undefined).items()}  # [1, H, count]
    of_all = kinds(average, np.all(mask, axis=0), padding, np.any(undefined, axis=0))
    average_looks = {name: where[None][at][:, None] for name, where in of_all.items()}  # [1, 1, count]
    if scale is not None:
        weights, average = scale.drawn(weights), scale.drawn(average)
    return weights[at], average[at][None], looks, average_looks


def _name_heads(sheet: Sheet, box: Box, H: int, chosen: int) -> None:
    """The heads' names left of their rows, as many as fit, the chosen one in bold."""
    height = box.height / H
    step = next(step for step in NICE if step * height >= ROW_PITCH)
    others = [h for h in range(0, H, step) if abs(h - chosen) * height >= ROW_PITCH]
    for h in [*others, chosen]:
        name = f"<b>head {h}</b>" if h == chosen else f"head {h}"
        sheet.say(box.x - 8, box.y + (h + 0.5) * height, name, 13, sheet.theme.text, "right")
