"""Decoding in pictures: what is new and what is cached.

Each takes numbers of ``mha_viz.analysis.decoding`` and gives a figure exactly ``width`` px wide; ``describe_…`` of the same gives its
text alternative.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import plotly.graph_objects as go

from mha_viz.analysis.decoding import Beside
from mha_viz.core.cells import kinds
from mha_viz.core.decode import Decoding, Step
from mha_viz.figures import tiles
from mha_viz.figures.geometry import NARROW, NICE, Box
from mha_viz.figures.labels import Names, visible
from mha_viz.figures.margins import EDGE
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Piece, legend
from mha_viz.figures.scale import Scale, largest_finite
from mha_viz.figures.sheet import Sheet
from mha_viz.figures.theme import THEMES, ThemeName, readable_on
from mha_viz.figures.widths import widened
from mha_viz.settings import View

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

LEFT = 84  # px for the names of heads
BESIDE = 104  # px beside the panels for the colour bars
WORDS = 340  # px that a panel's title takes at most
Lengths: TypeAlias = 'tuple[Float[np.ndarray, "H L"], Float[np.ndarray, "G L"], Float[np.ndarray, "G L"]]'  # of q, k and v
ORIGIN = np.zeros((1, 2))  # of the only tile on its axes
FEW = 4  # keys: a row of fewer has large weights whatever the layer does


def cache(
    found: Beside,
    lengths: Lengths,
    token: int,
    item: int = 0,
    view: View | None = None,
    theme: ThemeName = "light",
    width: int = 1104,
    parts: Parts = ALL,
) -> go.Figure:
    """The step that reads ``token``: q, k and v of every head, a column per token, and the new row of each head's map.

    ``found`` is a Beside, ``lengths`` (‖q‖ [H, L], ‖k‖, ‖v‖ [G, L]). Columns to the left of the outlined ones are in the cache, those
    outlined are new, those to the right are not there yet. Colours mean the same at every step. ``parts`` are what stands around the
    panels.
    """
    view, narrow, decoding = view or View(), width < NARROW, found.decoding
    sheet, left = Sheet(width, THEMES[theme].dressed(view.colors), parts), widened(LEFT) if parts.labels else EDGE
    beside = widened(BESIDE)
    step, shown = decoding.steps[found.step_of(token)], _shown(found, lengths, token, item)
    scales = {"length": _scale_of_lengths(lengths), "weight": _scale_of_weights(decoding, item, view)}
    columns = shown["weights"].shape[1]
    cell = (width - left - (8 if narrow or not parts.bar else beside)) / columns
    cell = min(int(cell) if cell >= 4 else cell, 64)  # whole px draw even cells
    texts = [*decoding.batch.key_tokens[item], *decoding.layer.extra_keys]
    names, boxes, panels = Names(texts, 96, _padded(decoding, item, columns)), {}, []
    top: float = 0
    for name, values in shown.items():
        top = sheet.title(left, top, *_titles(found, name, step))
        box = boxes[name] = Box(left, top, columns * cell, len(values) * _height(len(values), name))
        panels.append(
            _panel(sheet, box, name, values, scales["weight" if name == "weights" else "length"], step, decoding, item)
        )
        top = box.bottom + 8
    top += sheet.names_below(names, left, cell, top - 4, token, "token") - 4
    if not parts.bar:
        bars = {}
    elif narrow:
        aside = max(left, 30)  # half a number
        room = max(min(width - aside - (8 if parts.labels else 30), 480), 160)
        bars = {"weight": Box(aside, top + 34, room, 14), "length": Box(aside, top + 96, room, 14)}
        top += 146
    else:
        words = min(WORDS, width - left - beside) if parts.title else 0
        right, last = left + max(columns * cell, words) + 18, boxes["weights"]
        bars = {
            "weight": Box(right, last.y, 14, max(last.height, 96)),
            "length": Box(right, boxes["q"].y, 14, boxes["v"].bottom - boxes["q"].y),
        }
        top = max(top, bars["weight"].bottom)
    if parts.legend:
        tiles.put_in_legend(sheet.data)
    noted = any(trace.get("showlegend") for trace in sheet.data)
    height = math.ceil(top) + 8 + 26 * noted
    coloraxes: Piece = {}
    for name, axis in (("weight", "coloraxis"), ("length", "coloraxis2")):
        bar = sheet.color_bar(bars[name], height, narrow, scales[name]) if parts.bar else None
        coloraxes |= scales[name].coloraxes(sheet.theme, bar, axis)
    if "coloraxis9" in coloraxes:
        sheet.data.append(tiles.bar_only("coloraxis9", panels[-1]["axes"]))
    return sheet.figure(
        height,
        "decoding",
        showlegend=True,
        uirevision="decoding",
        **coloraxes,
        meta={
            "kind": "decoding",
            "panels": panels,
            "queries": [],
            "keys": texts,
            "tokens": decoding.batch.L,
            "names": [],
            "chosen": {"head": None, "query": None, "key": token},
        },
        legend=legend(left / width, 26 / height, itemsizing="constant"),
    )


def _panel(
    sheet: Sheet,
    box: Box,
    name: str,
    values: Float[np.ndarray, "heads columns"],
    scale: Scale,
    step: Step,
    decoding: Decoding,
    item: int,
) -> Piece:
    """Draws one panel of ``values`` [heads, columns] over ``box``; returns what the browser is to know of it."""
    heads, columns = values.shape
    high, wide = box.height / heads, box.width / columns
    axes = sheet.panel(box, (-0.5, columns - 0.5), (heads - 0.5, -0.5))
    weights, there, masked = (
        name == "weights",
        _there(name, step, decoding),
        _masked(name, step, decoding, item),
    )  # [columns] each
    looks = _looks(values, there, masked)
    blank = ~there | np.any(list(looks.values()), axis=0)  # [heads, columns]
    drawn = np.where(blank, np.nan, scale.drawn(values))
    axis, gap = "coloraxis" if weights else "coloraxis2", 1 if min(wide, high) >= 6 else 0
    sheet.data.append(tiles.heatmap(drawn, name, axes, coloraxis=axis, gap=gap))
    blanks = np.where(np.arange(columns) >= step.stop, "not there yet", "not kept: no later step asks for it")
    for look, cells in looks.items():
        blanks = np.where(there & cells.any(axis=0), tiles.LOOKS[look][0], blanks)
    sheet.data += tiles.hatches(
        {look: cells[None] for look, cells in looks.items()}, ORIGIN, axes, sheet.theme, 8 if high >= 12 else 5
    )
    if weights and sheet.parts.values and wide >= 42 and high >= 18:
        colors = [readable_on(scale.color_at(sheet.theme, value)) for value in drawn[~blank].tolist()]
        sheet.data.append(tiles.numbers(values, blank, colors, axes))
    first, last = np.array([-0.5]), np.array([heads - 0.5])  # heads
    sheet.data.append(tiles.frame(heads, columns, axes, sheet.theme))
    beyond = 0 if wide >= 16 else 4 / wide  # around a column that is too narrow for an outline within it
    new = tiles.outlines(first, last, np.array([step.start - 0.5 - beyond]), np.array([step.stop - 0.5 + beyond]))
    sheet.data += tiles.twice(new, axes, sheet.theme)
    word = "KV" if name in "kv" and heads < decoding.layer.num_heads else "head"
    _name_heads(sheet, box, heads, word)
    return {
        "axes": list(axes),
        "head": None,
        "rows": [f"{word} {'head ' * (word == 'KV')}{h}" for h in range(heads)],
        "name": {"q": "query vector", "k": "key vector", "v": "value vector", "weights": "new row of the map"}[name],
        "quantity": "weight" if weights else "length",
        "blanks": blanks.tolist(),
    }


def describe_cache(found: Beside, token: int, item: int = 0) -> str:
    """What ``cache`` shows."""
    decoding = found.decoding
    step, H, G = decoding.steps[found.step_of(token)], decoding.layer.num_heads, decoding.num_kv_heads
    new = f"token {token}" if step.stop - step.start == 1 else f"tokens {step.start} to {token}"
    name = visible(decoding.batch.key_tokens[item][token])
    new += "" if name == str(token) else f" “{name}”"
    row = step.weights[item, :, -1].mean(axis=0)  # [stop + extra]
    reads = f"on average most on key {int(row.argmax())}"
    if not np.isfinite(row).all():
        lost = _masked("weights", step, decoding, item)[_there("weights", step, decoding)].all()
        reads = "undefined: it has no key left" if lost else "NaN, and no mask made it"
    held = f"{step.start} token{' was' if step.start == 1 else 's were'} in the cache, {step.stop} now, of {decoding.batch.L}"
    return (
        f"Decoding, batch item {item}: {new} is new, with a query in each of {H} heads, a key and a value vector in each of {G} KV heads. "
        f"{held}. Its row in each head's map: {reads}."
    )


def _shown(found: Beside, lengths: Lengths, token: int, item: int) -> dict[str, Float[np.ndarray, "heads columns"]]:
    """name → [heads, columns] of what is there in this step, NaN where nothing is."""
    decoding = found.decoding
    step, extra = decoding.steps[found.step_of(token)], len(decoding.layer.extra_keys)
    columns, shown = decoding.batch.L + extra, {}
    for name, values in zip("qkv", lengths, strict=True):
        shown[name] = np.full((len(values), columns), np.nan)
        first = step.start if name == "q" else 0
        shown[name][:, first : step.stop] = values[:, first : step.stop]
    row = step.weights[item, :, -1].astype(np.float64)  # [H, stop + extra]
    shown["weights"] = np.full((len(row), columns), np.nan)
    shown["weights"][:, : step.stop] = row[:, : step.stop]
    shown["weights"][:, decoding.batch.L :] = row[:, step.stop :]
    return shown


def _there(name: str, step: Step, decoding: Decoding) -> Bool[np.ndarray, " columns"]:
    """[columns] bool: True where there is a number in this step; the extra columns of weights always are."""
    L = decoding.batch.L
    place = np.arange(L + len(decoding.layer.extra_keys))
    within = (place < step.stop) & (place >= step.start if name == "q" else True)
    return within | (place >= L) if name == "weights" else within


def _masked(name: str, step: Step, decoding: Decoding, item: int) -> Bool[np.ndarray, " columns"]:
    """[columns] bool: True for keys that the newest token may not read; of vectors none is hidden."""
    masked = np.zeros(decoding.batch.L + len(decoding.layer.extra_keys), bool)
    if name == "weights":
        masked[: step.stop] = _hidden(decoding, step, item)
    return masked


def _looks(
    values: Float[np.ndarray, "heads columns"], there: Bool[np.ndarray, " columns"], masked: Bool[np.ndarray, " columns"]
) -> dict[str, Bool[np.ndarray, "heads columns"]]:
    """look → [heads, columns] bool of what is ``there`` and holds no number: see ``mha_viz.core.cells``."""
    heads = len(values)
    hidden, lost = (
        np.broadcast_to(there & masked, values.shape),
        np.full(heads, masked[there].all()),
    )  # [heads, columns], [heads]
    found = kinds(np.where(there, values, 0), hidden, np.zeros(heads, bool), lost)
    return {look: cells & there for look, cells in found.items() if look != "padded"}


def _hidden(decoding: Decoding, step: Step, item: int) -> Bool[np.ndarray, " stop"]:
    """[stop] bool: True for keys that the newest token may not read."""
    rules = decoding.batch.mask(decoding.layer.num_heads)
    hidden = rules.hidden(step.stop - 1, step.stop)[..., : step.stop]  # [1|N, 1|H, 1, stop]
    return np.asarray(hidden[item if len(hidden) > 1 else 0].all(axis=(0, 1)))


def _scale_of_lengths(lengths: Lengths) -> Scale:
    return Scale("linear", 0.0, largest_finite(lengths), quantity="length of vector")


def _scale_of_weights(decoding: Decoding, item: int, view: View) -> Scale:
    """The Scale of every new row of real queries, of those that read FEW keys or more where there are any: a lone key has it all."""
    padded = _padded(decoding, item, decoding.batch.L)
    rows = [step.weights[item][:, -1:] for step in decoding.steps if not padded[step.stop - 1]]  # [H, 1, stop + extra] each
    long = [row for row in rows if row.shape[-1] >= FEW]
    scale, largest = Scale.of(long or rows, view), max((float(np.nanmax(row, initial=0)) for row in rows), default=0.0)
    return scale if scale.kind == "row" else replace(scale, above=largest > scale.high)


def _padded(decoding: Decoding, item: int, columns: int) -> Bool[np.ndarray, " columns"]:
    """[columns] bool: True for tokens that are padding."""
    padding = decoding.batch.query_padding_mask
    padded = np.zeros(columns, bool)
    if padding is not None:
        padded[: decoding.batch.L] = padding[item]
    return padded


def _height(heads: int, name: str) -> int:
    """px of a head's line."""
    room, most, least = (168, 26, 5) if name == "weights" else (72, 18, 3)
    return max(min(room // heads, most), least)


def _titles(found: Beside, name: str, step: Step) -> tuple[str, str]:
    """The name of a panel, and what it says."""
    decoding = found.decoding
    H, G, one = decoding.layer.num_heads, decoding.num_kv_heads, step.stop - step.start == 1
    kept = f"{step.start} cached, {step.stop - step.start} new"
    heads = f"{H} heads" if H > 1 else "1 head"
    groups = f"{G} KV head{'' if G == 1 else 's'}"
    return {
        "q": ("q", f"of {heads}: of the new token{'' if one else 's'} alone; none is kept"),
        "k": ("K cache", f"{groups}: {kept}"),
        "v": ("V cache", f"{groups}: {kept}"),
        "weights": ("Weights", f"the new row of each head's map{'' if one else ', of the last of the prompt'}"),
    }[name]


def _name_heads(sheet: Sheet, box: Box, heads: int, word: str) -> None:
    """As many of the heads' names as fit, left of their lines."""
    pitch = box.height / heads
    step = next(step for step in NICE if step * pitch >= 15)
    for h in range(0, heads, step) if sheet.parts.labels else ():
        sheet.say(box.x - 8, box.y + (h + 0.5) * pitch, f"{word} {h}", 13, sheet.theme.text, "right")
