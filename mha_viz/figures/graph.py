"""Numbers over the steps of decoding, or over lengths: each line dashed its own way and named at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from mha_viz.core.decimals import fill, prose
from mha_viz.figures.curves import DASHES, apart, known
from mha_viz.figures.labels import escape
from mha_viz.figures.piece import Piece, ground, note
from mha_viz.figures.theme import THEMES, ThemeName
from mha_viz.figures.widths import width_of


def graph(
    x: Sequence[int],
    lines: Mapping[str, Sequence[float]],
    across: str,
    upwards: str,
    mark: int | None = None,
    limit: tuple[float, str] | None = None,
    log: bool = False,
    unit: str = "{:.3g}",
    theme: ThemeName = "light",
    width: int = 520,
    height: int = 230,
) -> go.Figure:
    """``lines``, name → values [P] over ``x`` [P], each dashed its own way and named at its end; a mark at ``mark``.

    ``across`` and ``upwards`` are what the axes are. ``limit`` is (value, name) of a level that is drawn dotted. ``log``: a logarithmic
    scale, on which what is exactly 0 stands at the bottom. ``unit`` is how a value is written.
    """
    colors = THEMES[theme]
    every = [value for values in lines.values() for value in known(values)] + ([limit[0]] if limit else [])
    high = max(every, default=1.0) or 1.0
    low = 0.0
    if log:
        least = min((value for value in every if value > 0), default=high / 10)
        low, high = 10 ** math.floor(math.log10(least) - 0.3), 10 ** math.ceil(math.log10(high) + 1e-9)
    place = (lambda value: math.log10(max(value, low))) if log else (lambda value: value)
    span = place(high) - place(low)
    names = list(lines) + ([limit[1]] if limit else [])
    right = 12 + max(width_of(name, 14) for name in names)
    last = [([low] + known(values))[-1] for values in lines.values()] + ([limit[0]] if limit else [])
    ends = apart([(place(value) - place(low)) / span for value in last], 17 / (height - 54))
    data = []
    for i, (name, values) in enumerate(lines.items()):
        y = [None if not math.isfinite(value) else max(value, low) for value in np.asarray(values, float).tolist()]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if len(x) <= 32 else "lines",
                "x": list(map(int, x)),
                "y": y,
                "name": name,
                "line": {"color": colors.text, "width": 2, "dash": (*DASHES, "longdash", "longdashdot")[i % 6]},
                "marker": {"size": 5, "symbol": ("circle", "diamond", "square", "cross")[i % 4]},
                "text": [fill(unit, value) for value in np.asarray(values, float).tolist()],
                "hovertemplate": f"{across} %{{x}}: %{{text}}<extra>%{{fullData.name}}</extra>",
            }
        )
    shapes = []
    if limit:
        shapes.append(
            {
                "type": "line",
                "x0": 0,
                "x1": 1,
                "xref": "paper",
                "y0": limit[0],
                "y1": limit[0],
                "line": {"color": colors.soft, "width": 1.5, "dash": "dot"},
            }
        )
    if mark is not None:
        shapes.append(
            {
                "type": "line",
                "x0": mark,
                "x1": mark,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": colors.choice, "width": 3},
            }
        )
    axis = {"zeroline": False, "fixedrange": True, "tickfont": {"size": 13}}
    layout = {
        **ground(width, height, colors, left=76, right=right, top=8, bottom=46),
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "hoverlabel": {"font": {"size": 14}},
        "xaxis": {
            **axis,
            "title": {"text": across, "font": {"size": 14}, "standoff": 6},
            "showgrid": False,
            "showline": True,
            "linecolor": colors.line,
            "tickformat": ",d",
            "dtick": next(n * 10**p for p in range(9) for n in (1, 2, 5) if n * 10**p >= (x[-1] - x[0]) / 6),
        },
        "yaxis": {
            **axis,
            **(_log_ticks(low, high) if log else {"nticks": 5}),
            "title": {"text": upwards, "font": {"size": 14}, "standoff": 8},
            "type": "log" if log else "linear",
            "range": [place(low), place(high) + 0.04 * span],
            "gridcolor": colors.line,
        },
        "shapes": shapes,
        "annotations": [
            note(escape(name), 1, end / 1.04, 14, colors.text, xanchor="left", xshift=6, yanchor="middle")
            for name, end in zip(names, ends, strict=True)
        ],
    }
    return go.Figure({"data": data, "layout": layout})


def describe_graph(x: Sequence[int], lines: Mapping[str, Sequence[float]], across: str, unit: str = "{:.3g}") -> str:
    """What ``graph`` shows."""
    told = {name: known(values) for name, values in lines.items()}
    ends = "; ".join(
        f"{name}: from {fill(unit, values[0])} to {fill(unit, values[-1])}" for name, values in told.items() if values
    )
    return f"Over {across} {x[0]} to {x[-1]}: {ends}."


def _log_ticks(low: float, high: float) -> Piece:
    """A tick a decade, or every second or third where there are many."""
    first, last = round(math.log10(low)), round(math.log10(high))
    step = max(1, math.ceil((last - first) / 5))
    powers = range(first, last + 1, step)
    return {"tickvals": [10.0**p for p in powers], "ticktext": [_power(p) for p in powers]}


def _power(p: int) -> str:
    return {0: "1", -1: "0.1", 1: "10", 2: "100", 3: "1000"}.get(p, f"10<sup>{prose(p, 'd')}</sup>")
