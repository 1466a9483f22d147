"""Plots of numbers over lengths and head counts, side by side in one figure: logarithmic axes, each line named at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import plotly.graph_objects as go

from mha_viz.core.decimals import prose
from mha_viz.figures.curves import apart
from mha_viz.figures.piece import Piece, ground, note
from mha_viz.figures.theme import THEMES, Theme, ThemeName
from mha_viz.figures.widths import width_of

LEAST = 110  # px across of a plot, at which those of a row still stand beside each other
HEIGHT, ABOVE, BELOW, LEFT, RIGHT = (
    190,
    30,
    46,
    64,
    14,
)  # px of a plot, and of what stands around it, names at the right left out
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "pentagon")


@dataclass(frozen=True)
class Line:
    """``y`` over ``x``, under a ``name``.

    ``spread`` are (low, high) of each; ``beside`` is drawn dotted with it over the same x, or alone where ``y`` is empty.
    """

    name: str
    x: Sequence[int]
    y: Sequence[float]
    spread: Sequence[tuple[float, float]] | None = None
    beside: Sequence[float] | None = None

    @property
    def end(self) -> float | None:
        """Where its name stands; None where nothing is drawn."""
        drawn = self.y or self.beside
        return drawn[-1] if drawn else None


@dataclass(frozen=True)
class Plot:
    """``lines`` under a ``title``, with what the axes are.

    ``told`` is how a value is written; ``span`` are the ends of the vertical axis, as logarithms where it is ``log``.
    """

    title: str
    across: str
    upwards: str
    lines: tuple[Line, ...]
    span: tuple[float, float]
    told: Callable[[float], str]
    log: bool = True


def span_of(lines: Iterable[Line]) -> tuple[float, float]:
    """The logarithms between which all of these lines lie, with a little room."""
    values = [value for line in lines for value in (*line.y, *chain(*(line.spread or ())), *(line.beside or ())) if value > 0]
    return math.log10(min(values, default=1) / 1.3), math.log10(max(values, default=10) * 1.3)


def plots(rows: Sequence[Sequence[Plot]], theme: ThemeName = "light", width: int = 1100) -> go.Figure:
    """The figure of these ``rows`` of Plots, as many in each; where there is little room, by halves, or one under the other."""
    colors, every = THEMES[theme], [plot for row in rows for plot in row]
    columns = _columns(rows, width)
    high = math.ceil(len(every) / columns) * (ABOVE + HEIGHT + BELOW)
    room = [
        max((_room(line.name) for plot in every[column::columns] for line in plot.lines), default=0)
        for column in range(columns)
    ]
    data: list[Piece] = []
    notes: list[Piece] = []
    axes: Piece = {}
    for number, plot in enumerate(every):
        box = _box(number, columns, width, high, room[number % columns])
        _lines(data, notes, number, box, plot, colors)
        axes |= _axes(number, box, plot, colors)
    layout = {
        **ground(width, high, colors),
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "annotations": notes,
        **axes,
    }
    return go.Figure({"data": data, "layout": layout})


def _columns(rows: Sequence[Sequence[Plot]], width: int) -> int:
    """How many plots stand beside each other."""
    each = LEFT + LEAST + max((_room(line.name) for row in rows for plot in row for line in plot.lines), default=0) + RIGHT
    whole = len(rows[0])
    return next((count for count in (whole, whole // 2) if count and whole % count == 0 and width >= count * each), 1)


def _room(name: str) -> float:
    """px that a name takes, its tags left out."""
    return width_of(name.replace("<sup>", "").replace("</sup>", ""), 13)


def _box(number: int, columns: int, width: int, high: int, names: float) -> tuple[float, float, float, float]:
    """(left, right, bottom, top) of a plot as shares of the figure; at its right there are so many px for names."""
    row, column = divmod(number, columns)
    top, left = row * (ABOVE + HEIGHT + BELOW) + ABOVE, column * width / columns
    return (left + LEFT) / width, (left + width / columns - names - RIGHT) / width, 1 - (top + HEIGHT) / high, 1 - top / high


def _lines(
    data: list[Piece], notes: list[Piece], number: int, box: tuple[float, float, float, float], plot: Plot, theme: Theme
) -> None:
    """The lines of a plot, their names, and its title."""
    (left, right, bottom, top), (low, high) = box, plot.span
    place = math.log10 if plot.log else float
    ends = apart([(place(line.end) - low) / (high - low) if line.end is not None else 0 for line in plot.lines], 17 / HEIGHT)
    for i, (line, end) in enumerate(zip(plot.lines, ends, strict=True)):
        color = "rgb({:.0f},{:.0f},{:.0f})".format(*theme.ink_at(0.5 + 0.5 * (i + 1) / len(plot.lines)))
        common = {"type": "scatter", "x": line.x, "xaxis": f"x{number + 1}", "yaxis": f"y{number + 1}", "name": line.name}
        if line.beside:
            data.append(
                common
                | {
                    "y": line.beside,
                    "mode": "lines",
                    "line": {"color": color, "width": 1.5, "dash": "dot"},
                    "hoverinfo": "skip",
                }
            )
        drawn = common | {
            "y": line.y,
            "mode": "lines+markers",
            "line": {"color": color, "width": 2},
            "marker": {"symbol": SYMBOLS[i % len(SYMBOLS)], "size": 8, "color": color},
            "text": [plot.told(value) for value in line.y],
            "hovertemplate": f"{plot.across} %{{x}}: %{{text}}<extra>%{{fullData.name}}</extra>",
        }
        if line.spread:
            below, above = ([abs(ends[side] - y) for ends, y in zip(line.spread, line.y, strict=True)] for side in (0, 1))
            drawn["error_y"] = {
                "type": "data",
                "array": above,
                "arrayminus": below,
                "color": color,
                "thickness": 1.5,
                "width": 3,
            }
        if line.y:
            data.append(drawn)
        if line.end is not None:
            at = bottom + end * (top - bottom)
            notes.append(note(line.name, right, at, 13, theme.text, xanchor="left", xshift=6, yanchor="middle"))
    title = f"<b>{plot.title}</b>"
    notes.append(note(title, left, top, 14, theme.text, xanchor="left", yanchor="bottom", yshift=4))


def _axes(number: int, box: tuple[float, float, float, float], plot: Plot, theme: Theme) -> Piece:
    (left, right, bottom, top), (low, high) = box, plot.span
    at = sorted({x for line in plot.lines for x in line.x})
    beyond = max(0.06, 0.06 * math.log10(at[-1] / at[0])) if at else 0  # room for the outermost marks
    common = {"zeroline": False, "fixedrange": True, "tickfont": {"size": 13}}
    across = common | {
        "type": "log",
        "domain": [left, right],
        "anchor": f"y{number + 1}",
        "showgrid": False,
        "showline": True,
        "linecolor": theme.line,
        "tickvals": at,
        "ticktext": [f"{x:,}" for x in at],
        "title": {"text": plot.across, "font": {"size": 14}, "standoff": 4},
        "range": [math.log10(at[0]) - beyond, math.log10(at[-1]) + beyond] if at else [0, 1],
    }
    upwards = common | {
        "type": "log" if plot.log else "linear",
        "domain": [bottom, top],
        "anchor": f"x{number + 1}",
        "gridcolor": theme.line,
        "range": [low, high],
        "title": {"text": plot.upwards, "font": {"size": 14}, "standoff": 4},
    }
    return {f"xaxis{number + 1}": across, f"yaxis{number + 1}": upwards | (_ticks(low, high) if plot.log else {"nticks": 6})}


def _ticks(low: float, high: float) -> Piece:
    """Ticks of a logarithmic axis: decades, with 2 and 5 between them where there are few."""
    span = high - low
    parts = (1,) if span > 2.5 else (1, 2, 5) if span > 0.5 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    step = max(1, round(span / 5))
    found = [part * 10.0**p for p in range(math.floor(low), math.ceil(high) + 1) if p % step == 0 for part in parts]
    found = [value for value in found if low <= math.log10(value) <= high]
    return {"tickvals": found, "ticktext": [_tick(value) for value in found]}


def _tick(value: float) -> str:
    """A number as it is written, or as a power of ten where that would be long."""
    power = math.floor(math.log10(value) + 1e-9)
    if -4 < power < 6:
        return f"{value:,.6g}"
    times = round(value / 10.0**power)
    return f"{'' if times == 1 else f'{times}·'}10<sup>{prose(power, 'd')}</sup>"
