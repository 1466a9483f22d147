"""How training went: loss and accuracy over the steps, on one axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import plotly.graph_objects as go

from mha_viz.figures.piece import ground, note
from mha_viz.figures.theme import THEMES, ThemeName
from mha_viz.figures.widths import width_of

DASHES = ("solid", "dash", "dot", "dashdot")


def curves(
    steps: Sequence[int],
    lines: Mapping[str, Sequence[float | None]],
    step: int | None = None,
    theme: ThemeName = "light",
    width: int = 480,
    height: int = 150,
) -> go.Figure:
    """``lines``, name → values by step, over ``steps``; a mark at ``step``. Each line is named at its end, and dashed its own way.

    Steps are drawn by their place, not to scale: they lie closer together where more happens. The vertical axis goes from 0 to 1, or
    to the largest value.
    """
    colors = THEMES[theme]
    high = max([1.0, *(value for values in lines.values() for value in known(values))])
    places = list(range(len(steps)))
    right = 14 + max((width_of(name, 13) for name in lines), default=0)
    ends = apart([([0.0] + known(values))[-1] / high for values in lines.values()], 15 / (height - 40))
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": places,
            "y": list(values),
            "name": name,
            "line": {"color": colors.text, "width": 2, "dash": DASHES[i % len(DASHES)]},
            "hovertemplate": "after %{text} steps: %{y:.4f}<extra>%{fullData.name}</extra>",
            "text": [str(one) for one in steps],
        }
        for i, (name, values) in enumerate(lines.items())
    ]
    every = max(1, math.ceil(len(places) / 7))
    shown = [*places[: -every or None : every], *places[-1:]] if len(places) > 1 else places  # the last step always
    layout = {
        **ground(width, height, colors, 13, left=34, right=right, top=8, bottom=38),
        "showlegend": False,
        "hovermode": "x",
        "dragmode": False,
        "xaxis": {
            "tickvals": shown,
            "ticktext": [str(steps[i]) for i in shown],
            "title": {"text": "training steps", "font": {"size": 13}, "standoff": 8},
            "showgrid": False,
            "zeroline": False,
            "linecolor": colors.line,
            "showline": True,
            "range": [-0.3, max(len(places) - 0.7, 0.7)],
            "fixedrange": True,
        },
        "yaxis": {"range": [0, high * 1.04], "nticks": 4, "gridcolor": colors.line, "zeroline": False, "fixedrange": True},
        "annotations": [
            note(name, 1, end, 13, colors.text, xanchor="left", xshift=4, yanchor="middle")
            for name, end in zip(lines, ends, strict=True)
        ],
    }
    if step in list(steps):
        at = list(steps).index(step)
        layout["shapes"] = [
            {
                "type": "line",
                "x0": at,
                "x1": at,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": colors.choice, "width": 3},
            }
        ]
    return go.Figure({"data": data, "layout": layout})


def known(values: Iterable[float | None]) -> list[float]:
    """Those that are numbers, and finite."""
    return [value for value in values if value is not None and math.isfinite(value)]


def apart(places: Sequence[float], least: float) -> list[float]:
    """``places``, 0 to 1, moved so that no two are nearer than ``least``, in their order."""
    order, moved = sorted(range(len(places)), key=lambda i: places[i]), list(places)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + least)
    beyond = max([moved[i] for i in order[-1:]] or [0]) - 1
    return [place - max(beyond, 0) for place in moved] if beyond > 0 else moved


def describe(steps: Sequence[int], lines: Mapping[str, Sequence[float | None]], step: int | None = None) -> str:
    """What the curves show, in words: their text alternative."""
    told = {name: known(values) for name, values in lines.items()}
    ends = "; ".join(f"{name} from {values[0]:.3f} to {values[-1]:.3f}" for name, values in told.items() if values)
    return f"Over {steps[-1]} training steps: {ends}." + ("" if step is None else f" Marked: after {step} steps.")
