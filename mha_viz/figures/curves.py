"""How training went: loss and accuracy over the steps, on one axis."""

import math
from itertools import pairwise

import plotly.graph_objects as go

from mha_viz.figures.theme import FONT, THEMES
from mha_viz.figures.widths import width_of

DASHES = ("solid", "dash", "dot", "dashdot")


def curves(steps, lines, step=None, theme="light", width=480, height=150):
    """``lines``, name → values by step, over ``steps``; a mark at ``step``. Each line is named at its end, and dashed its own way.

    Steps are drawn by their place, not to scale: they lie closer together where more happens. The vertical axis goes from 0 to 1, or
    to the largest value.
    """
    theme = THEMES[theme]
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
            "line": {"color": theme.text, "width": 2, "dash": DASHES[i % len(DASHES)]},
            "hovertemplate": "after %{text} steps: %{y:.4f}<extra>%{fullData.name}</extra>",
            "text": [str(one) for one in steps],
        }
        for i, (name, values) in enumerate(lines.items())
    ]
    every = max(1, math.ceil(len(places) / 7))
    shown = [*places[: -every or None : every], *places[-1:]] if len(places) > 1 else places  # the last step always
    layout = {
        "width": width,
        "height": height,
        "margin": {"l": 34, "r": right, "t": 8, "b": 38, "autoexpand": False},
        "showlegend": False,
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": 13, "color": theme.text},
        "template": {},
        "hovermode": "x",
        "dragmode": False,
        "xaxis": {
            "tickvals": shown,
            "ticktext": [str(steps[i]) for i in shown],
            "title": {"text": "training steps", "font": {"size": 13}, "standoff": 8},
            "showgrid": False,
            "zeroline": False,
            "linecolor": theme.line,
            "showline": True,
            "range": [-0.3, max(len(places) - 0.7, 0.7)],
            "fixedrange": True,
        },
        "yaxis": {"range": [0, high * 1.04], "nticks": 4, "gridcolor": theme.line, "zeroline": False, "fixedrange": True},
        "annotations": [
            {
                "text": name,
                "x": 1,
                "xref": "paper",
                "xanchor": "left",
                "xshift": 4,
                "y": end,
                "yref": "paper",
                "yanchor": "middle",
                "showarrow": False,
                "font": {"size": 13, "color": theme.text},
            }
            for name, end in zip(lines, ends, strict=True)
        ],
    }
    if step in list(steps):
        at = list(steps).index(step)
        layout["shapes"] = [
            {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": {"color": theme.choice, "width": 3}}
        ]
    return go.Figure({"data": data, "layout": layout})


def known(values):
    """Those that are numbers, and finite."""
    return [value for value in values if value is not None and math.isfinite(value)]


def apart(places, least):
    """``places``, 0 to 1, moved so that no two are nearer than ``least``, in their order."""
    order, moved = sorted(range(len(places)), key=lambda i: places[i]), list(places)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + least)
    beyond = max([moved[i] for i in order[-1:]] or [0]) - 1
    return [place - max(beyond, 0) for place in moved] if beyond > 0 else moved


def describe(steps, lines, step=None):
    """What the curves show, in words: their text alternative."""
    told = {name: known(values) for name, values in lines.items()}
    ends = "; ".join(f"{name} from {values[0]:.3f} to {values[-1]:.3f}" for name, values in told.items() if values)
    return f"Over {steps[-1]} training steps: {ends}." + ("" if step is None else f" Marked: after {step} steps.")
