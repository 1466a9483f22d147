"""One number opened, in pictures: its score term by term, the softmax of its row, the same cell in all heads.

Each takes a Trace and the Derivation of one of its weights and gives a ``go.Figure`` exactly ``width`` px wide; ``describe_…`` of
the same gives its text alternative. Where there are ``parts``, these are what stands around its bars: titles; names of dimensions,
keys or heads; a legend, of the cell in all heads alone; the values at the ends of bars. Bars have no colour bar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.number import Derivation
from mha_viz.core.cells import NUMBERS, WORDS, kinds, word
from mha_viz.core.decimals import in_decimals, prose
from mha_viz.core.trace import Missing, Trace
from mha_viz.figures import tiles
from mha_viz.figures.geometry import NARROW, NICE, Box
from mha_viz.figures.labels import Names, escape
from mha_viz.figures.number_words import Undefined, all_heads, mask_of, names_of, spelled, tokens_of
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Axes
from mha_viz.figures.sheet import Sheet
from mha_viz.figures.theme import THEMES, ThemeName
from mha_viz.figures.widths import widened

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from jaxtyping import Bool, Float

GUTTER = 76  # px left of bars for the numbers on their scale
SLOT = 64  # px of a bar with its surroundings, at most
BESIDE = 220  # px beside the terms for the sum that they make
ORIGIN = np.zeros((1, 2))  # of the only tile on its axes


def terms(trace: Trace, derivation: Derivation, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> go.Figure:
    """q · k term by term: q, k and their products, [D] each, as bars, the running sum, and the score that it makes.

    The Trace must have q and k.
    """
    d, sheet, narrow, gutter = derivation, Sheet(width, THEMES[theme], parts), width < NARROW, widened(GUTTER)
    q, k, products = _vectors(d)  # [D] each
    D, sums = len(products), np.cumsum(products)  # [D]
    slot = min((width - gutter - (8 if narrow else widened(BESIDE))) / D, SLOT)
    query, key = map(escape, tokens_of(trace, d, width / 2))
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
    query, key = tokens_of(trace, d)
    q, k, products = _vectors(d)  # [D] each
    most = int(np.nan_to_num(np.abs(products), nan=np.inf).argmax())
    said = "; ".join(text.replace("<b>", "").replace("</b>", "") for text in _score_words(d))
    return (
        f"The score of query {query} and key {key} in head {d.head}, as a sum of {len(products)} products q × k. The largest "
        f"is {spelled(q[most])} × {spelled(k[most])} = {spelled(products[most])}, in dimension {most}. {said}."
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
    words = [f"<b>q · k = {spelled(d.dot)}</b>", f"× {d.scale_told}", f"<b>score {spelled(d.score)}</b>"]
    if d.hidden_by:
        return [*words, f"hidden by {' and '.join(d.hidden_by)}: −∞"]
    return words if d.bias is None else [*words, f"+ mask {spelled(d.bias)}", f"<b>= {spelled(d.score + d.bias)}</b>"]


def softmax(
    trace: Trace, derivation: Derivation, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL
) -> go.Figure:
    """One row from scores to weights, as bars over its keys [S] with the chosen one marked.

    The scores after the mask, their exponentials, the probabilities, and where there is dropout the weights after it. Hidden keys are
    hatched.

    Of a Trace without scores, the probabilities alone.
    """
    d, sheet, gutter = derivation, Sheet(width, THEMES[theme], parts), widened(GUTTER)
    names, hidden = names_of(trace, d, "key"), mask_of(trace, d)[d.head, d.query]  # [S]
    S = len(hidden)
    slot = min((width - gutter - 12) / S, SLOT)
    top: float = 0
    for name, words, values in _softmax_rows(trace, d):
        box = Box(gutter, sheet.title(gutter, top, name, words), slot * S, 92)
        hover = [f"key {key}<br>{name} {spelled(value, d.undefined)}" for key, value in zip(names.exact, values, strict=True)]
        written = {d.key: f"<b>{spelled(values[d.key], d.undefined)}</b>"} if parts.values else {}
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
    query, key = tokens_of(trace, d)
    steps = "; ".join(
        f"{name} {spelled(values[d.key], d.undefined)} ({words})" for name, words, values in _softmax_rows(trace, d)
    )
    hidden = int(mask_of(trace, d)[d.head, d.query].sum())
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
            f"largest {spelled(d.largest)}{hatched}",
            f"their sum is {spelled(d.total)}",
            f"each divided by {spelled(d.total)}",
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
        kept = "" if not d.keep_scale else f", the others times {spelled(d.keep_scale)}"
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
    values, (query, key) = d.in_all_heads, map(escape, tokens_of(trace, d, (width - 240) / 2))
    H = len(values)
    slot = min((width - gutter - 12) / H, SLOT)
    box = Box(gutter, sheet.title(gutter, 0, f"query {query} → key {key}", f"in {all_heads(H)}"), slot * H, 150)
    mask, undefined = mask_of(trace, d)[:, d.query, d.key], trace.undefined[d.item, :, d.query]  # [H] each
    hover = [f"head {h}<br>weight {spelled(value, undefined[h])}" for h, value in enumerate(values)]
    written = {d.head: f"<b>{spelled(values[d.head], d.undefined)}</b>"} if parts.values else {}
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
        sheet.say(gutter, top + 14, f"╌╌ average {spelled(average, undefined.any())}", 14)
        top += 24
    return sheet.figure(top + 2, "cell in heads")


def describe_cell_in_heads(trace: Trace, derivation: Derivation) -> str:
    """What ``cell_in_heads`` shows."""
    d, values = derivation, derivation.in_all_heads
    query, key = tokens_of(trace, d)
    said = f"The weight of query {query} for key {key} in {all_heads(len(values))}: {spelled(values[d.head], d.undefined)} in head {d.head}"
    finite, undefined = np.flatnonzero(np.isfinite(values)), trace.undefined[d.item, :, d.query]  # [heads], [H]
    if not len(finite):
        return f"{said}, {' and '.join(dict.fromkeys(map(spelled, values, undefined)))} in all."
    low, high = (int(finite[pick]) for pick in (values[finite].argmin(), values[finite].argmax()))
    average = spelled(float(trace.mean_weights[d.item, d.query, d.key]), undefined.any())
    return f"{said}, {average} on average, from {spelled(values[low])} in head {low} to {spelled(values[high])} in head {high}."


def _choice(sheet: Sheet, count: int, chosen: int) -> list[str]:
    return [sheet.theme.choice if i == chosen else sheet.theme.rest for i in range(count)]


def _head_names(H: int) -> Names:
    return Names([str(h) for h in range(H)], 40, np.zeros(H, bool))


def _short(value: float, undefined: Undefined) -> str:
    """A weight in three decimals, where there is little room; "n/a" in an ``undefined`` row."""
    return "n/a" if undefined else word(value) or f"{value:.3f}"


def _exact(value: float) -> str:
    """A value to six digits, or what it is called."""
    return word(value) or f"{prose(value, '.6g')}"
