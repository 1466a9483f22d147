"""The small maps of an experiment, each a figure of its own: they stand side by side or below each other, as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.pitfalls.pitfall import Map
from mha_viz.core.cells import WORDS, kinds
from mha_viz.figures import tiles
from mha_viz.figures.geometry import NICE, ROW_PITCH, Box
from mha_viz.figures.labels import Names, escape
from mha_viz.figures.piece import Looks
from mha_viz.figures.scale import Scale
from mha_viz.figures.sheet import Sheet
from mha_viz.figures.theme import THEMES, ThemeName, readable_on
from mha_viz.figures.widths import width_of
from mha_viz.settings import View
from mha_viz.settings.view import Colors

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH = 336  # px: fits a phone, and two beside each other a tablet
TALLEST = 34  # px of a row
ORIGIN = np.zeros((1, 2))


def shared_scale(maps: Sequence[Map]) -> Scale:
    """One Scale for all maps of an experiment: from 0 to the largest value."""
    return Scale.of([one.values for one in maps], View(), maps[0].quantity)


def small_map(one: Map, scale: Scale, theme: ThemeName = "light", colors: Colors = "ink") -> go.Figure:
    """The ``go.Figure`` of a Map, WIDTH px wide, on a ``scale`` that it shares with others; up to 8 × 8 with its numbers."""
    sheet = Sheet(WIDTH, THEMES[theme].dressed(colors))
    R, C = one.values.shape
    rows, columns = (Names(names, 92, np.zeros(len(names), bool)) for names in (one.row_names, one.column_names))
    left = int(max(rows.widest, width_of(f"{one.rows} ↓", 13) if one.rows else 0)) + 10
    cell = min((WIDTH - left - 2) / C, 44 if C > 4 else 64)
    cell = int(cell) if cell >= 8 else cell
    lying = columns.widest + 4 <= cell or columns.numbered
    head = 18 if lying else int(columns.widest) + 6
    box = Box(left, 46 + head, C * cell, R * min(TALLEST, max(cell, 22)))
    sheet.say(0, 12, f"<b>{escape(one.title)}</b>")
    sheet.say(left, 36, f"{one.columns} →", 13, sheet.theme.soft)
    if one.rows:
        sheet.say(left - 8, box.y - 9, f"{one.rows} ↓", 13, sheet.theme.soft, "right")
    ticks = ({"tickvals": list(range(len(side.exact))), "ticktext": side.exact} for side in (columns, rows))
    axes = sheet.panel(box, (-0.5, C - 0.5), (R - 0.5, -0.5), *ticks)
    heatmap = tiles.heatmap(one.values, "", axes, gap=1 if cell >= 8 else 0)
    where = "<br>".join(f"{what} %{{{axis}}}" for what, axis in ((one.rows, "y"), (one.columns, "x")))
    heatmap["hovertemplate"] = f"{where}<br>{one.quantity} %{{z:.6f}}<extra></extra>"
    looks = looks_of(one)
    sheet.data += [heatmap, *tiles.hatches(looks, ORIGIN, axes, sheet.theme, 8 if cell >= 16 else 5)]
    sheet.data.append(tiles.frame(R, C, axes, sheet.theme))
    if C <= 8 and cell >= 30:
        hatched = np.any(list(looks.values()), axis=0)[0]  # [R, C]
        shown = [readable_on(scale.color_at(sheet.theme, value)) for value in one.values[~hatched].tolist()]
        sheet.data.append(tiles.numbers(one.values, hatched, shown, axes, digits=2))
    step = next(step for step in NICE if step * cell >= (columns.widest + 4 if lying else ROW_PITCH))
    for i in range(0, C, step):
        y = box.y - 9 if lying else box.y - 6 - width_of(columns.short[i], 13) / 2
        sheet.say(left + (i + 0.5) * cell, y, escape(columns.short[i]), 13, anchor="center", angle=0 if lying else -90)
    for i in range(R):
        sheet.say(left - 8, box.y + (i + 0.5) * box.height / R, escape(rows.short[i]), 13, anchor="right")
    return sheet.figure(box.bottom + 4, "pitfall", **scale.coloraxes(sheet.theme, {}), coloraxis_showscale=False)


def looks_of(one: Map) -> Looks:
    """look → [1, R, C] bool. A row whose every key is hidden is undefined; other numbers that are not finite, no mask made."""
    hidden = np.zeros(one.values.shape, bool) if one.hidden is None else one.hidden
    lost = hidden.all(axis=1) & np.isnan(one.values).all(axis=1)  # [R]
    masked = hidden & (np.isnan(one.values) | (one.values == 0))
    return {
        look: cells[None]
        for look, cells in kinds(one.values, masked, np.zeros(len(lost), bool), lost).items()
        if look != "padded"
    }


def describe(one: Map) -> str:
    """What ``small_map`` shows, in words."""
    R, C = one.values.shape
    said = f"{one.title}: a map of {R} × {C}, {one.rows or 'row'} by {one.columns}."
    if one.hidden is not None:
        said += f" {int(one.hidden.sum())} of {R * C} cells are hidden by a mask."
    lost = {look: int(cells[0].all(axis=1).sum()) for look, cells in looks_of(one).items() if look != "masked"}
    said += "".join(f" {count} of {R} rows are {WORDS.get(look, look)}." for look, count in lost.items() if count)
    finite = np.isfinite(one.values)
    if not finite.any():
        return said
    row, column = divmod(int(np.where(finite, one.values, -np.inf).argmax()), C)
    where = f"{one.rows} {one.row_names[row]}, {one.columns} {one.column_names[column]}".strip()
    return f"{said} The largest {one.quantity} is {one.values[row, column]:.4f}, at {where}."
