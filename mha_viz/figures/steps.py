"""The tensors of one step as pictures: cells with their values where they fit, one colour scale a tensor, every axis named."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.walkthrough import Axis, Tensor
from mha_viz.core.cells import kinds, word
from mha_viz.core.decimals import prose
from mha_viz.figures import tiles
from mha_viz.figures.geometry import NARROW, NICE, ROW_PITCH, Box
from mha_viz.figures.labels import SIZE, escape, numbered, shorten, visible
from mha_viz.figures.margins import EDGE
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Axes, Piece
from mha_viz.figures.sheet import Sheet
from mha_viz.figures.theme import THEMES, Theme, ThemeName, mixed, readable_on
from mha_viz.figures.widths import widened, width_of

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from jaxtyping import Bool, Float

ROWS, COLUMNS = 32, 256  # cells that are drawn at most, around the followed one
WIDEST, ROW = 68, 27  # px of a cell at most


def picture(
    tensors: Sequence[Tensor], theme: ThemeName = "light", width: int = 1104, summed: bool = False, parts: Parts = ALL
) -> go.Figure:
    """The ``tensors`` of a step, one under the other, as a ``go.Figure`` exactly ``width`` px wide.

    Cells have the colour of their value: blue above zero and orange below it, nothing for zero, the darkest the largest of this
    tensor (in print negative numbers have lines across them); a mask hatches what it hides. ``summed`` draws the last one as the
    sum of the rows of the one before. ``parts`` are what stands around the cells: titles, labels, and the values in them; there is
    no bar and no legend.
    """
    sheet = Sheet(width, THEMES[theme], parts)
    gutter = widened(92 if width >= NARROW else 64) if parts.labels else EDGE
    top: float = 0
    most = _largest(np.vstack([one.values for one in tensors])) if summed else None
    tall = 300 / max(sum(len(one.values) > 8 for one in tensors), 1)  # px of a tensor with many rows
    for i, one in enumerate(tensors):
        sign = "" if not summed else "+" if i == 0 else "="
        top = _panel(sheet, one, gutter, top, most, sign, max(tall, 130)) + (6 if summed and i == 0 else 14)
    return sheet.figure(top - 8, "step")


def describe(tensors: Sequence[Tensor]) -> str:
    """What ``picture`` shows, in words: each tensor, its axes, and the value that is followed or the first one."""
    said = []
    for one in tensors:
        row, column = one.row or 0, one.column or 0
        rows, columns = one.axes
        size = " × ".join(f"{count} {_many(axis)}" for axis, count in zip(one.axes, one.values.shape, strict=True) if axis)
        where = ", ".join(f"{axis.stands_for} {_name(axis, place)}" for axis, place in ((rows, row), (columns, column)) if axis)
        said.append(
            f"{one.symbol}, {one.words}: {size}; at {where} it is {written(one.values[row, column], undefined=one.alone(row))}"
        )
    return ". ".join(said) + "."


MARKED = {"^": "<sup>{}</sup>", "_": "<sub>{}</sub>"}


def marked(symbol: str) -> str:
    """``symbol`` for Plotly, what follows ^ raised and what follows _ lowered: W^O_h."""
    return re.sub(r"([_^])([^\W_]+)", lambda mark: MARKED[mark[1]].format(mark[2]), escape(symbol))


def written(value: float, digits: int = 4, undefined: bool = False) -> str:
    """A number as a person reads it: 0.2936, −12.3, 1.04e−11, −∞, NaN; "undefined" for NaN where the query has no key left."""
    if words := word(value, undefined):
        return words
    plain = value == 0 or 10**-digits <= abs(value) < 1000
    return prose(value, f".{digits}{'f' if plain else 'g'}")


def shape_words(one: Tensor) -> str:
    """The whole tensor's axes by letter with their sizes: [N 3, H 8, L 20, D 16]."""
    return f"[{', '.join(f'{letter} {size}' for letter, size in one.shape.items())}]"


def _panel(sheet: Sheet, one: Tensor, gutter: float, top: float, most: float | None, sign: str, tall: float) -> float:
    """One tensor from ``top`` on; returns where it ends."""
    theme, (rows, columns) = sheet.theme, one.axes
    down, across = (
        _window(count, place, limit)
        for count, place, limit in zip(one.values.shape, (one.row, one.column), (ROWS, COLUMNS), strict=True)
    )
    values = one.values[down, across].astype(np.float64)
    hidden = np.zeros(values.shape, bool) if one.hidden is None else one.hidden[down, across]
    count, length = values.shape
    drawn = [
        f"{_many(axis)} {part.start}–{part.stop - 1} of {size} drawn"
        for axis, part, size in ((rows, down, one.values.shape[0]), (columns, across, one.values.shape[1]))
        if axis and part.stop - part.start < size
    ]
    if sign != "=":
        top = _title(sheet, one, top, drawn)
    cell = (sheet.width - gutter - 8) / length
    cell = min(math.floor(cell) if cell >= 4 else cell, WIDEST)
    height = ROW if count <= 8 else min(max(tall / count, 4), ROW)
    box = Box(gutter, top, cell * length, height * count)
    axes = sheet.panel(box, (-0.5, length - 0.5), (count - 0.5, -0.5))
    largest = most or _largest(one.values)
    lost = np.array([one.alone(i) for i in range(down.start, down.stop)])  # [count]
    sheet.data.append(_heatmap(one, values, hidden, lost, axes, theme, largest, (down, across), min(cell, height) >= 8))
    looks = hatched = _looks(values, hidden, lost)
    printed = sheet.parts.values and cell >= 40 and height >= 17
    if one.kind == "signed" and not printed:
        hatched = looks | tiles.lower(np.where(hidden, 0, values), theme)
    sheet.data += tiles.hatches(
        {look: cells[None] for look, cells in hatched.items()}, np.zeros((1, 2)), axes, theme, 8 if cell >= 8 else 5
    )
    sheet.data.append(tiles.frame(count, length, axes, theme))
    if columns.block and columns.block < length:
        x = np.arange(columns.block - across.start % columns.block, length, columns.block) - 0.5
        lines = np.stack([x, x, np.full(len(x), np.nan)], axis=1).ravel().astype(np.float32)
        sheet.data.append(
            tiles.line(lines, np.tile(np.array([-0.5, count - 0.5, np.nan], np.float32), len(x)), axes, theme.text, 1)
        )
    _mark(sheet, one, (down, across), (count, length), axes, (5, 2) if min(cell, height) >= 14 else (3, 1.5))
    if printed:
        _numbers(sheet, values, np.any(list(looks.values()), axis=0), axes, theme, largest, one.kind, 3 if cell >= 52 else 2)
        if cell >= 44:
            _infinite(sheet, values, hidden, box, cell, height)
    if not sheet.parts.labels:
        return box.bottom
    _rows(sheet, one, down, box, height, sign)
    return box.bottom + (0 if sign == "+" else _columns(sheet, one, across, box, cell))


def _title(sheet: Sheet, one: Tensor, top: float, drawn: Sequence[str]) -> float:
    if not sheet.parts.title:
        return top + EDGE
    more = shape_words(one) + "".join(f" · {text}" for text in drawn)
    lines = [f"{one.words} {more}"]
    if width_of(f"{one.symbol}  {lines[0]}", 15) > sheet.width:
        lines = [shorten(one.words, sheet.width - width_of(f"{one.symbol}  ", 15), 15), shorten(more, sheet.width, 15)]
    soft = [f"<span style='color:{sheet.theme.soft}'>{escape(line)}</span>" for line in lines]
    sheet.say(0, top + 11, f"<b>{marked(one.symbol)}</b>  {soft[0]}", 15)
    for line in soft[1:]:
        sheet.say(0, top + 31, line, 15)
    return top + 5 + 20 * len(lines)


def _looks(
    values: Float[np.ndarray, "rows columns"], hidden: Bool[np.ndarray, "rows columns"], lost: Bool[np.ndarray, " rows"]
) -> dict[str, Bool[np.ndarray, "rows columns"]]:
    """look → [rows, columns] bool of the cells that have one: masked, undefined in rows that have ``lost`` all keys, or not finite."""
    made = hidden & (np.isneginf(values) | lost[:, None])  # what a mask makes of a score, and what follows from it
    looks = kinds(np.where(made, 0, values), hidden, np.zeros(len(values), bool), np.zeros(len(values), bool))
    undefined = looks["nan"] & lost[:, None]
    return looks | {"undefined": undefined, "nan": looks["nan"] & ~undefined}


def _heatmap(
    one: Tensor,
    values: Float[np.ndarray, "rows columns"],
    hidden: Bool[np.ndarray, "rows columns"],
    lost: Bool[np.ndarray, " rows"],
    axes: Axes,
    theme: Theme,
    largest: float,
    parts: tuple[slice, slice],
    spaced: bool,
) -> Piece:
    rows, columns = one.axes
    shown = np.where(np.isfinite(values) & ~hidden, values, np.nan)
    names = [
        [""] if axis is None else [f"{axis.stands_for} {escape(_name(axis, i))}" for i in range(part.start, part.stop)]
        for axis, part in ((rows, parts[0]), (columns, parts[1]))
    ]
    hover = [
        [
            f"{down}{'<br>' * bool(down)}{across}<br>{written(value, 6, gone)}"
            for across, value in zip(names[1], line, strict=True)
        ]
        for down, line, gone in zip(names[0], values.tolist(), lost.tolist(), strict=True)
    ]
    colors = theme.ink if one.kind == "weight" else (*theme.less[:0:-1], *theme.more)
    scale = [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]
    return {
        "type": "heatmap",
        "z": shown.astype(np.float32),
        "x0": 0,
        "dx": 1,
        "y0": 0,
        "dy": 1,
        "xaxis": axes[0],
        "yaxis": axes[1],
        "zmin": 0 if one.kind == "weight" else -largest,
        "zmax": largest,
        "colorscale": scale,
        "showscale": False,
        "xgap": int(spaced),
        "ygap": int(spaced),
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": one.symbol,
        "hoverongaps": True,
    }


def _numbers(
    sheet: Sheet,
    values: Float[np.ndarray, "rows columns"],
    hidden: Bool[np.ndarray, "rows columns"],
    axes: Axes,
    theme: Theme,
    largest: float,
    kind: str,
    digits: int,
) -> None:
    """Values printed in their cells; large ones with fewer digits, so that they fit."""
    plain = values[~hidden & np.isfinite(values)]
    if not len(plain):
        return
    digits = max(digits - max(int(math.log10(max(np.abs(plain).max(), 1))), 0), 0)
    more = theme.ink if kind == "weight" else theme.more
    colors = [readable_on(mixed(more if value >= 0 else theme.less, abs(value) / largest)) for value in plain.tolist()]
    sheet.data.append(tiles.numbers(values, hidden | ~np.isfinite(values), colors, axes, digits=digits))


def _infinite(
    sheet: Sheet,
    values: Float[np.ndarray, "rows columns"],
    hidden: Bool[np.ndarray, "rows columns"],
    box: Box,
    cell: float,
    height: float,
) -> None:
    """−∞ where a mask hides and says so in numbers: on the hatch, which is on paper."""
    for row, column in np.argwhere(hidden & np.isneginf(values)).tolist():
        x, y = box.x + (column + 0.5) * cell, box.y + (row + 0.5) * height
        sheet.say(x, y, "−∞", SIZE, anchor="center", behind=sheet.theme.paper)


def _mark(
    sheet: Sheet, one: Tensor, parts: tuple[slice, slice], shape: tuple[int, int], axes: Axes, thick: tuple[float, float]
) -> None:
    """A double outline around what is followed: a row, a column of a single row, or the columns of a head."""
    (down, across), (count, length) = parts, shape
    if one.columns is not None:
        left, right = (np.clip(edge - across.start, 0, length) - 0.5 for edge in one.columns)
        edges = [-0.5], [count - 0.5], [left], [right]
    elif one.column is not None and (one.row is not None or count == 1):
        row, column = (one.row or 0) - down.start, one.column - across.start
        edges = [row - 0.5], [row + 0.5], [column - 0.5], [column + 0.5]
    elif one.row is not None and count > 1:
        row = one.row - down.start
        edges = [row - 0.5], [row + 0.5], [-0.5], [length - 0.5]
    else:
        return
    sheet.data += tiles.twice(tiles.outlines(*map(np.array, edges)), axes, sheet.theme, thick)


def _rows(sheet: Sheet, one: Tensor, part: slice, box: Box, height: float, sign: str) -> None:
    """What the rows stand for, left of them: as many names as fit, the followed one in bold."""
    axis = one.axes[0]
    if axis is None:
        if sign == "=":
            sheet.say(box.x - 8, box.y + box.height / 2, "<b>= output</b>", SIZE, anchor="right")
        return
    step = next(step for step in NICE if step * height >= ROW_PITCH)
    chosen = one.row if one.row is not None and part.start <= one.row < part.stop else None
    places = [i for i in range(part.start, part.stop) if (i - part.start) % step == 0]
    if chosen is not None:
        places = [i for i in places if abs(i - chosen) * height >= ROW_PITCH] + [chosen]
    for i in places:
        text = _short_name(axis, i, box.x - 12 - 14 * bool(sign))
        text = f"+ {text}" if sign == "+" and i > 0 else text
        text = f"<b>{escape(text)}</b>" if i == chosen else escape(text)
        sheet.say(box.x - 8, box.y + (i - part.start + 0.5) * height, text, SIZE, anchor="right")


def _columns(sheet: Sheet, one: Tensor, part: slice, box: Box, cell: float) -> int:
    """What the columns stand for, below them; returns the px that this takes."""
    axis = one.axes[1]
    names = [_short_name(axis, i, 90) for i in range(part.start, part.stop)]
    widest = max(width_of(name, SIZE) for name in names)
    lying = widest + 8 <= cell or widest <= 34
    step = next(step for step in NICE if step * cell >= (widest + 8 if lying else ROW_PITCH))
    chosen = None if one.column is None else one.column - part.start
    places = [i for i in range(0, len(names), step)]
    if chosen is not None:
        places = [i for i in places if abs(i - chosen) * cell >= (widest + 8 if lying else ROW_PITCH)] + [chosen]
    for i in places:
        text = f"<b>{escape(names[i])}</b>" if i == chosen else escape(names[i])
        y = box.bottom + (SIZE / 2 + 3 if lying else 5 + width_of(names[i], SIZE) / 2)
        sheet.say(
            box.x + (i + 0.5) * cell, y, text, SIZE, sheet.theme.soft if i != chosen else None, "center", 0 if lying else -90
        )
    stands_for = axis.stands_for if width_of(axis.stands_for + " →", SIZE) <= box.x - 8 else axis.stands_for[:3]
    sheet.say(box.x - 8, box.bottom + SIZE / 2 + 3, f"{stands_for} →", SIZE, sheet.theme.soft, "right")
    return SIZE + 8 if lying else math.ceil(widest) + 10


def _many(axis: Axis) -> str:
    return "queries" if axis.stands_for == "query" else f"{axis.stands_for}s"


def _name(axis: Axis, i: int) -> str:
    """What place ``i`` of an axis is, in full."""
    if axis.block:
        return f"{i}, head {i // axis.block}"
    return str(i) if axis.names is None else axis.names[i] if axis.stands_for == "part" else numbered(i, axis.names[i])


def _short_name(axis: Axis, i: int, room: float) -> str:
    if axis.names is not None:
        return shorten(visible(axis.names[i]), room, SIZE)
    return f"head {i}" if axis.stands_for == "head" else str(i)


def _window(size: int, place: int | None, limit: int) -> slice:
    """At most ``limit`` of ``size`` places, as a slice, ``place`` in their middle."""
    start = min(max((place or 0) - limit // 2, 0), max(size - limit, 0))
    return slice(start, min(start + limit, size))


def _largest(values: Float[np.ndarray, "*shape"]) -> float:
    """The largest size of a finite number, 1 where there is none above zero."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=0)) or 1.0
