"""Plots of numbers over lengths and head counts, side by side in one figure: logarithmic axes, each line named at its end."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import plotly.graph_objects as go

from mha_viz.core.decimals import prose
from mha_viz.figures.curves import apart
from mha_viz.figures.theme import FONT, THEMES
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
    """``y`` over ``x``, named ``name``. ``spread`` are (low, high) of each; ``beside`` what is drawn dotted with it, over the same x, or
    alone where ``y`` is empty."""

    name: str
    x: list
    y: list
    spread: list | None = None
    beside: list | None = None

    @property
    def end(self):
        """Where its name stands; None where nothing is drawn."""
        drawn = self.y or self.beside
        return drawn[-1] if drawn else None


@dataclass(frozen=True)
class Plot:
    """``lines`` under a ``title``, with what the axes are; ``told`` is how a value is written; ``span`` are the ends of the vertical axis,
    as logarithms where it is ``log``."""

    title: str
    across: str
    upwards: str
    lines: tuple[Line, ...]
    span: tuple[float, float]
    told: Callable[[float], str]
    log: bool = True


def span_of(lines):
    """The logarithms between which all of these lines lie, with a little room."""
    values = [value for line in lines for value in (*line.y, *chain(*(line.spread or ())), *(line.beside or ())) if value > 0]
    return math.log10(min(values, default=1) / 1.3), math.log10(max(values, default=10) * 1.3)


def plots(rows, theme="light", width=1100):
    """The figure of these ``rows`` of Plots, as many in each; where there is little room, by halves, or one under the other."""
    theme, every = THEMES[theme], [plot for row in rows for plot in row]
    columns = _columns(rows, width)
    high = math.ceil(len(every) / columns) * (ABOVE + HEIGHT + BELOW)
    room = [
        max((_room(line.name) for plot in every[column::columns] for line in plot.lines), default=0)
        for column in range(columns)
    ]
    data, notes, axes = [], [], {}
    for number, plot in enumerate(every):
        box = _box(number, columns, width, high, room[number % columns])
        _lines(data, notes, number, box, plot, theme)
        axes |= _axes(number, box, plot, theme)
    layout = {
        "width": width,
        "height": high,
        "showlegend": False,
        "template": {},
        "hovermode": "closest",
        "dragmode": False,
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": 14, "color": theme.text},
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0, "autoexpand": False},
        "annotations": notes,
        **axes,
    }
    return go.Figure({"data": data, "layout": layout})


def _columns(rows, width):
    """How many plots stand beside each other."""
    each = LEFT + LEAST + max((_room(line.name) for row in rows for plot in row for line in plot.lines), default=0) + RIGHT
    whole = len(rows[0])
    return next((count for count in (whole, whole // 2) if count and whole % count == 0 and width >= count * each), 1)


def _room(name):
    """px that a name takes, its tags left out."""
    return width_of(name.replace("<sup>", "").replace("</sup>", ""), 13)


def _box(number, columns, width, high, names):
    """(left, right, bottom, top) of a plot as shares of the figure; at its right there are so many px for names."""
    row, column = divmod(number, columns)
    top, left = row * (ABOVE + HEIGHT + BELOW) + ABOVE, column * width / columns
    return (left + LEFT) / width, (left + width / columns - names - RIGHT) / width, 1 - (top + HEIGHT) / high, 1 - top / high


def _lines(data, notes, number, box, plot, theme):
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
            notes.append(
                _note(line.name, right, bottom + end * (top - bottom), theme, 13, xanchor="left", xshift=6, yanchor="middle")
            )
    notes.append(_note(f"<b>{plot.title}</b>", left, top, theme, 14, xanchor="left", yanchor="bottom", yshift=4))


def _axes(number, box, plot, theme):
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


def _ticks(low, high):
    """Ticks of a logarithmic axis: decades, with 2 and 5 between them where there are few."""
    span = high - low
    parts = (1,) if span > 2.5 else (1, 2, 5) if span > 0.5 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    step = max(1, round(span / 5))
    found = [part * 10.0**p for p in range(math.floor(low), math.ceil(high) + 1) if p % step == 0 for part in parts]
    found = [value for value in found if low <= math.log10(value) <= high]
    return {"tickvals": found, "ticktext": [_tick(value) for value in found]}


def _tick(value):
    """A number as it is written, or as a power of ten where that would be long."""
    power = math.floor(math.log10(value) + 1e-9)
    if -4 < power < 6:
        return f"{value:,.6g}"
    times = round(value / 10.0**power)
    return f"{'' if times == 1 else f'{times}·'}10<sup>{prose(power, 'd')}</sup>"


def _note(text, x, y, theme, size, **place):
    where = {"text": text, "x": x, "y": y, "xref": "paper", "yref": "paper", "showarrow": False}
    return where | place | {"font": {"size": size, "color": theme.text}}
