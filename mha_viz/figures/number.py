"""One number opened, in pictures: its score term by term, the softmax of its row, the same cell and the same token in all heads.

Each takes a Trace and the Derivation of one of its weights and gives a ``go.Figure`` exactly ``width`` px wide; ``describe_…`` of
the same gives its text alternative. Where there are ``parts``, these are what stands around its bars: titles; names of dimensions,
keys or heads; a legend, of the cell in all heads alone; the values at the ends of bars. Bars have no colour bar.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from mha_viz.analysis.number import Derivation
from mha_viz.core.cells import NUMBERS, WORDS, kinds, word
from mha_viz.core.decimals import in_decimals, prose
from mha_viz.core.trace import Missing, Trace
from mha_viz.figures import tiles
from mha_viz.figures.geometry import NARROW, NICE, ROW_PITCH, Box
from mha_viz.figures.labels import Names, escape, name_of
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Axes, Looks, legend
from mha_viz.figures.scale import Scale, scale_of
from mha_viz.figures.sheet import TITLE, Sheet
from mha_viz.figures.theme import THEMES, ThemeName
from mha_viz.figures.widths import widened
from mha_viz.settings import View

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from jaxtyping import Bool, Float

GUTTER = 76  # px left of bars for the numbers on their scale
SLOT = 64  # px of a bar with its surroundings, at most
BESIDE = 220  # px beside the terms for the sum that they make
ORIGIN = np.zeros((1, 2))  # of the only tile on its axes
Undefined = bool | np.bool_ | None  # whether a row has no key left; None where the source does not know
HEADS = 72  # px for the names of heads


def terms(trace: Trace, derivation: Derivation, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> go.Figure:
    """q · k term by term: q, k and their products, [D] each, as bars, the running sum, and the score that it makes.

    The Trace must have q and k.
    """
    d, sheet, narrow, gutter = derivation, Sheet(width, THEMES[theme], parts), width < NARROW, widened(GUTTER)
    q, k, products = _vectors(d)  # [D] each
    D, sums = len(products), np.cumsum(products)  # [D]
    slot = min((width - gutter - (8 if narrow else widened(BESIDE))) / D, SLOT)
    query, key = map(escape, _tokens(trace, d, width / 2))
    columns = zip(range(D), q, k, products, sums, strict=True)
    hover = [
        "dimension {}<br>q {}<br>k {}<br>q × k {}<br>sum so far {}".format(i, *map(_exact, column)) for i, *column in columns
    ]
    top: float = 0
    for name, words, values, height, color in (
        ("q", f"of query {query}", q, 48, sheet.theme.rest),
        ("k", f"of key {key}", k, 48, sheet.theme.rest),
        ("q × k", "one product per dimension", products, 64, sheet.theme.ink[5]),
        ("running sum", "of the products", sums, 76, sheet.theme.choice),
    ):
        fits = slot >= 40 and parts.values
        written = {i: word(value) or in_decimals(value, 2) for i, value in enumerate(values)} if fits else {}
        start, top = top, sheet.title(gutter, top, name, words)
        box = Box(gutter, top, slot * D, height + 36 * bool(written))
        axes, extent = sheet.bars(box, values, hover, [color] * D, written)
        _mark_bars(sheet, values, np.zeros(D, bool), np.zeros(D, bool), axes, extent)
        top = box.bottom + 8
    if parts.labels:
        for i in range(0, D, next(step for step in NICE if step * slot >= 24)):
            sheet.say(gutter + (i + 0.5) * slot, top + 6, str(i), 13, sheet.theme.soft, "center")
        sheet.say(gutter - 8, top + 6, "dimension", 13, sheet.theme.soft, "right")
    x, y = (gutter, top + 34) if narrow else (gutter + max(slot * D, 240) + 24, start + 12)
    score = _score_words(d)
    for i, text in enumerate(score):
        sheet.say(x, y + 26 * i, text, 16)
    return sheet.figure(max(top + 16, y + 26 * len(score) - 8), "terms")


def describe_terms(trace: Trace, derivation: Derivation) -> str:
    """What ``terms`` shows."""
    d = derivation
    query, key = _tokens(trace, d)
    q, k, products = _vectors(d)  # [D] each
    most = int(np.nan_to_num(np.abs(products), nan=np.inf).argmax())
    said = "; ".join(text.replace("<b>", "").replace("</b>", "") for text in _score_words(d))
    return (
        f"The score of query {query} and key {key} in head {d.head}, as a sum of {len(products)} products q × k. The largest "
        f"is {_number(q[most])} × {_number(k[most])} = {_number(products[most])}, in dimension {most}. {said}."
    )


def _vectors(d: Derivation) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
    """q, k and their products. Raises Missing where the source of the Trace does not know them."""
    if d.q is None or d.k is None or d.products is None:
        raise Missing("A score is a sum of products of q and k, and the source does not know these.")
    return d.q, d.k, d.products


def _score_words(d: Derivation) -> list[str]:
    """From the sum of products to the score that the softmax sees, line by line."""
    if d.dot is None or d.score is None:
        raise Missing("The source does not know the score.")
    words = [f"<b>q · k = {_number(d.dot)}</b>", f"× {d.scale_told}", f"<b>score {_number(d.score)}</b>"]
    if d.hidden_by:
        return [*words, f"hidden by {' and '.join(d.hidden_by)}: −∞"]
    return words if d.bias is None else [*words, f"+ mask {_number(d.bias)}", f"<b>= {_number(d.score + d.bias)}</b>"]


def softmax(
    trace: Trace, derivation: Derivation, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL
) -> go.Figure:
    """One row from scores to weights, as bars over its keys [S] with the chosen one marked: the scores after the mask, their
    exponentials, the probabilities, and where there is dropout the weights after it. Hidden keys are hatched.

    Of a Trace without scores, the probabilities alone.
    """
    d, sheet, gutter = derivation, Sheet(width, THEMES[theme], parts), widened(GUTTER)
    names, hidden = _names(trace, d, "key"), _mask(trace, d)[d.head, d.query]  # [S]
    S = len(hidden)
    slot = min((width - gutter - 12) / S, SLOT)
    top: float = 0
    for name, words, values in _softmax_rows(trace, d):
        box = Box(gutter, sheet.title(gutter, top, name, words), slot * S, 92)
        hover = [f"key {key}<br>{name} {_number(value, d.undefined)}" for key, value in zip(names.exact, values, strict=True)]
        written = {d.key: f"<b>{_number(values[d.key], d.undefined)}</b>"} if parts.values else {}
        if name == "weight" and d.dropped is not None and slot >= 10:
            written = dict.fromkeys(np.flatnonzero(_dropped(trace, d) & ~hidden).tolist(), "×") | written
        axes, extent = sheet.bars(box, values, hover, _choice(sheet, S, d.key), written)
        _mark_bars(
            sheet, values, hidden, np.broadcast_to(bool(d.undefined) & np.isnan(values).all(), hidden.shape), axes, extent
        )
        top = box.bottom + 8
    top += sheet.names_below(names, gutter, slot, top, d.key, "key")
    return sheet.figure(top + 4, "softmax")


def describe_softmax(trace: Trace, derivation: Derivation) -> str:
    """What ``softmax`` shows."""
    d = derivation
    query, key = _tokens(trace, d)
    steps = "; ".join(
        f"{name} {_number(values[d.key], d.undefined)} ({words})" for name, words, values in _softmax_rows(trace, d)
    )
    hidden = int(_mask(trace, d)[d.head, d.query].sum())
    rest = f" {hidden} of {len(trace.key_tokens[d.item])} keys are hidden." if hidden else ""
    return f"The softmax of query {query} over its keys in head {d.head}. Of key {key}: {steps}.{rest}"


def _softmax_rows(trace: Trace, d: Derivation) -> list[tuple[str, str, Float[np.ndarray, " S"]]]:
    """Name, words and values [S] of each step from a row's scores to its weights."""
    row = (d.item, d.head, d.query)
    rows: list[tuple[str, str, Float[np.ndarray, " S"]]] = []
    if d.masked_scores is None or d.exponentials is None or d.largest is None or d.total is None:
        rows.append(("probability", "of each key", trace.probabilities[row].astype(np.float64)))
    else:
        hatched = "; hatched: hidden" if trace.mask[row].any() else ""
        words = (
            f"largest {_number(d.largest)}{hatched}",
            f"their sum is {_number(d.total)}",
            f"each divided by {_number(d.total)}",
        )
        if d.undefined:
            words = "no key is left; hatched: hidden", "−∞ − (−∞) is undefined", "undefined"
        elif not np.isfinite(d.largest):
            words = (
                f"not finite: {_not_finite(d.masked_scores)}",
                "NaN − NaN and ∞ − ∞ are NaN",
                "one NaN makes the whole row NaN",
            )
        values = d.masked_scores, d.exponentials, d.exponentials / d.total
        names = "score" if d.bias is None else "score + mask", "exp(score − largest)", "probability"
        rows += zip(names, words, values, strict=True)
    if d.off is not None:
        rows.append(("weight", f"the head is off ({d.off})", trace.weights[row].astype(np.float64)))
    if d.dropped is not None:
        kept = "" if not d.keep_scale else f", the others times {_number(d.keep_scale)}"
        dropped = _dropped(trace, d)
        told = f"after dropout: {dropped.sum()} of {len(dropped)} set to 0 (×){kept}"
        rows.append(("weight", told, trace.weights[row].astype(np.float64)))
    return rows


def _dropped(trace: Trace, d: Derivation) -> Bool[np.ndarray, " S"]:
    """Which weights of the row dropout took, none where there is no dropout."""
    row = trace.weights[d.item, d.head, d.query]  # [S]
    return np.zeros(row.shape, bool) if trace.dropped is None else trace.dropped[d.item, d.head, d.query]


def _not_finite(scores: Float[np.ndarray, " S"]) -> str:
    """Which scores of a row are no numbers: "1 NaN, 2 ∞"; −∞ is what a mask makes."""
    counts = {kind: int(NUMBERS[kind](scores).sum()) for kind in ("nan", "inf")}
    return ", ".join(f"{count} {WORDS[kind]}" for kind, count in counts.items() if count)


def _mark_bars(
    sheet: Sheet,
    values: Float[np.ndarray, " K"],
    hidden: Bool[np.ndarray, " K"],
    undefined: Bool[np.ndarray, " K"],
    axes: Axes,
    extent: tuple[float, float],
) -> None:
    """Hatches the slots of bars that hold no number, each [K]: rows without a key, numbers that are not finite, hidden keys."""
    found = kinds(
        np.where(hidden & np.isneginf(values), 0, values)[:, None], hidden[:, None], np.zeros(len(values), bool), undefined
    )
    for kind, where in found.items():
        if kind != "padded":
            sheet.hatch(where[:, 0], kind, axes, extent)


def cell_in_heads(
    trace: Trace, derivation: Derivation, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL
) -> go.Figure:
    """The weight of one cell in all heads [H] as bars, the chosen head marked, their average as a line."""
    d, sheet, gutter = derivation, Sheet(width, THEMES[theme], parts), widened(GUTTER)
    values, (query, key) = d.in_all_heads, map(escape, _tokens(trace, d, (width - 240) / 2))
    H = len(values)
    slot = min((width - gutter - 12) / H, SLOT)
    box = Box(gutter, sheet.title(gutter, 0, f"query {query} → key {key}", f"in {_all(H)}"), slot * H, 150)
    mask, undefined = _mask(trace, d)[:, d.query, d.key], trace.undefined[d.item, :, d.query]  # [H] each
    hover = [f"head {h}<br>weight {_number(value, undefined[h])}" for h, value in enumerate(values)]
    written = {d.head: f"<b>{_number(values[d.head], d.undefined)}</b>"} if parts.values else {}
    axes, extent = sheet.bars(box, values, hover, _choice(sheet, H, d.head), written)
    _mark_bars(sheet, values, mask, undefined, axes, extent)
    average = float(trace.mean_weights[d.item, d.query, d.key])
    if np.isfinite(average):
        ends = np.array([-0.5, H - 0.5], np.float32)
        dashed = tiles.line(ends, np.array([average] * 2, np.float32), axes, sheet.theme.text, 1.5)
        sheet.data.append({**dashed, "line": {**dashed["line"], "dash": "dash"}})
    top = box.bottom + 8
    top += sheet.names_below(_head_names(H), gutter, slot, top, d.head, "head")
    if slot >= 44 and parts.values:
        for h, value in enumerate(values):
            sheet.say(gutter + (h + 0.5) * slot, top + 8, _short(value, undefined[h]), 13, sheet.theme.soft, "center")
        top += 20
    if parts.legend:
        sheet.say(gutter, top + 14, f"╌╌ average {_number(average, undefined.any())}", 14)
        top += 24
    return sheet.figure(top + 2, "cell in heads")


def describe_cell_in_heads(trace: Trace, derivation: Derivation) -> str:
    """What ``cell_in_heads`` shows."""
    d, values = derivation, derivation.in_all_heads
    query, key = _tokens(trace, d)
    said = f"The weight of query {query} for key {key} in {_all(len(values))}: {_number(values[d.head], d.undefined)} in head {d.head}"
    finite, undefined = np.flatnonzero(np.isfinite(values)), trace.undefined[d.item, :, d.query]  # [heads], [H]
    if not len(finite):
        return f"{said}, {' and '.join(dict.fromkeys(map(_number, values, undefined)))} in all."
    low, high = (int(finite[pick]) for pick in (values[finite].argmin(), values[finite].argmax()))
    average = _number(float(trace.mean_weights[d.item, d.query, d.key]), undefined.any())
    return f"{said}, {average} on average, from {_number(values[low])} in head {low} to {_number(values[high])} in head {high}."


def token_in_heads(
    trace: Trace,
    derivation: Derivation,
    side: Literal["query", "key"] = "query",
    view: View | None = None,
    theme: ThemeName = "light",
    width: int = 1104,
) -> go.Figure:
    """One token in all heads: the row of the query [H, S] (``side`` "query") or the column of the key [H, L] ("key"), a line of
    cells per head and the average of them all below, in the colours and on the scale that the maps have in ``view``.
    """
    view = view or View()
    d, sheet, narrow, left = derivation, Sheet(width, THEMES[theme].dressed(view.colors)), width < NARROW, widened(HEADS)
    scale = scale_of(trace, d.item, view)
    along = "key" if side == "query" else "query"
    token = escape(dict(zip(("query", "key"), _tokens(trace, d, width / 3), strict=True))[side])
    names, (weights, average, looks, average_looks) = _names(trace, d, along), _token(trace, d, side)
    drawn, average_drawn, *_ = _token(trace, d, side, scale)
    H, count = weights.shape
    sides = min((width - left - (16 if narrow else 96)) / count, 40), min(max(320 / H, 7), 26)
    wide, high = (int(px) if px >= 4 else px for px in sides)  # whole px draw even cells
    cell = wide, high
    box = Box(left, TITLE + 8, count * cell[0], H * cell[1])
    below = Box(left, box.bottom + 10, box.width, max(cell[1], 18))
    sheet.title(0, 0, f"{side} {token}", f"in {_all(H)}: {'what it reads' if side == 'query' else 'who reads it'}")
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
        frame = tiles.outlines(*np.array([[-0.5], [len(z) - 0.5], [-0.5], [count - 0.5]]))
        sheet.data += [heatmap, *tiles.hatches(where, ORIGIN, axes, sheet.theme, 8 if min(cell) >= 8 else 5)]
        sheet.data.append(tiles.line(*frame, axes, sheet.theme.line, 1))
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
    tokens = dict(zip(("query", "key"), _tokens(trace, d), strict=True))
    along, verb = ("key", "reads most from") if side == "query" else ("query", "is read most by")
    said = f"{side.capitalize()} {tokens[side]} in {_all(len(weights))}, {weights.shape[1]} {'keys' if along == 'key' else 'queries'}."
    row = weights[d.head]
    finite = np.flatnonzero(np.isfinite(row))
    if not len(finite):
        of_row = trace.undefined[d.item, d.head] if side == "key" else np.array([bool(d.undefined)])
        words = " or ".join(
            dict.fromkeys(_number(value, alone) for value, alone in zip(row, np.resize(of_row, len(row)), strict=True))
        )
        return f"{said} {words[0].upper()}{words[1:]} in head {d.head}."
    if not row[finite].max() > 0:
        return f"{said} Only zeros in head {d.head}."
    most = int(finite[row[finite].argmax()])
    name = name_of(trace.tokens, int(along == "key"), d.item, most)
    return f"{said} In head {d.head} it {verb} {along} {name}: {_number(row[most])}."


def _token(
    trace: Trace, d: Derivation, side: str, scale: Scale | None = None
) -> tuple[Float[np.ndarray, "H count"], Float[np.ndarray, "1 count"], Looks, Looks]:
    """Weights [H, count] of a token in all heads, or what ``scale`` draws for them, their average [1, count], and the looks of both,
    name → [1, …] bool."""
    mask, padding, undefined = _mask(trace, d), trace.query_padding[d.item], trace.undefined[d.item]
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


def _tokens(trace: Trace, d: Derivation, room: float = math.inf) -> tuple[str, str]:
    """The query and the key as a person reads them, 6 “because”, each text shortened to ``room`` px."""
    query, key = (name_of(trace.tokens, side, d.item, i, room) for side, i in enumerate((d.query, d.key)))
    return query, key


def _names(trace: Trace, d: Derivation, side: str) -> Names:
    """The Names of all queries, or of all keys."""
    if side == "query":
        return Names.along(trace.tokens, 0, d.item, 96, trace.query_padding[d.item])
    return Names.along(trace.tokens, 1, d.item, 96, np.all(_mask(trace, d), axis=(0, 1)))


def _mask(trace: Trace, d: Derivation) -> Bool[np.ndarray, "H L S"]:
    """[H, L, S] bool; all False where the source does not know of masks."""
    return trace.mask[d.item] if trace.has("mask") else np.zeros(trace.weights.shape[1:], bool)


def _choice(sheet: Sheet, count: int, chosen: int) -> list[str]:
    return [sheet.theme.choice if i == chosen else sheet.theme.rest for i in range(count)]


def _head_names(H: int) -> Names:
    return Names([str(h) for h in range(H)], 40, np.zeros(H, bool))


def _all(H: int) -> str:
    return {1: "the only head", 2: "both heads"}.get(H, f"all {H} heads")


def _short(value: float, undefined: Undefined) -> str:
    """A weight in three decimals, where there is little room; "n/a" in an ``undefined`` row."""
    return "n/a" if undefined else word(value) or f"{value:.3f}"


def _exact(value: float) -> str:
    """A value to six digits, or what it is called."""
    return word(value) or f"{prose(value, '.6g')}"


def _number(value: float, undefined: Undefined = False) -> str:
    """A value to four digits, or in words: 0.2936, 1.044e−11, −∞, NaN; "undefined" for NaN in an ``undefined`` row."""
    if words := word(value, bool(undefined)):
        return words
    return prose(value, ".4f" if abs(value) >= 0.1 else ".4g")
