"""What figures are made of: plain dicts, since Plotly's classes take many times as long, and have no types either.

And the pieces that figures of several kinds have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from mha_viz.figures.theme import FONT, Theme

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import plotly.graph_objects as go
    from jaxtyping import Bool, Float

    from mha_viz.figures.scale import Scale

CLEAR = "rgba(0,0,0,0)"

Piece = dict[str, Any]  # a piece of a figure in Plotly's own words: a trace, an annotation, an axis, several axes by name
Axes = tuple[str, str]  # the names of a pair of axes, as traces have them: ("x2", "y2")
Looks: TypeAlias = 'dict[str, Bool[np.ndarray, "T L S"]]'  # name of LOOKS → which cells of several maps look so
Stroke: TypeAlias = 'tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]]'  # x and y of a line, NaN where it has a gap
Points: TypeAlias = "np.ndarray | Sequence[float | None]"


class Spec(TypedDict):
    """A whole figure as the plain dict that ``go.Figure`` takes."""

    data: list[Piece]
    layout: Piece


def plain(figure: go.Figure) -> Spec:
    """The plain dict that a ``go.Figure`` was made of."""
    spec: Spec = figure.to_plotly_json()
    return spec


def ground(
    width: int, height: int, theme: Theme, size: int = 14, left: float = 0, right: float = 0, top: float = 0, bottom: float = 0
) -> Piece:
    """What the layout of every figure says: its size in px, the px around its plot, colours, and words of ``size`` px."""
    return {
        "width": width,
        "height": height,
        "margin": {"l": left, "r": right, "t": top, "b": bottom, "autoexpand": False},
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"family": FONT, "size": size, "color": theme.text},
        "template": {},
    }


def quiet(mode: str, x: Points, y: Points, axes: Axes | None = None, **more: object) -> Piece:
    """A trace of lines, markers or text that does not answer the pointer and that the legend leaves out."""
    place: Piece = {"x": x, "y": y} | ({} if axes is None else {"xaxis": axes[0], "yaxis": axes[1]})
    return {"type": "scatter", "mode": mode, **place, "hoverinfo": "skip", "showlegend": False, **more}


def note(text: str, x: float, y: float, size: float, color: str, **more: object) -> Piece:
    """Words at a place that is a share of the figure, from its bottom left corner."""
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper"}
    return {"text": text, **place, "showarrow": False, "font": {"size": size, "color": color}, **more}


def legend(x: float, y: float, **more: object) -> Piece:
    """A legend in lines from its top left corner on, a share of the figure, of which no entry can be clicked."""
    place = {"orientation": "h", "x": x, "xanchor": "left", "y": y, "yanchor": "top", "bgcolor": CLEAR}
    return {**place, "itemclick": False, "itemdoubleclick": False, "tracegroupgap": 0, **more}


def color_bar(x: float, y: float, length: float, lying: bool, scale: Scale, theme: Theme) -> Piece:
    """The colour bar of a Scale, "lying" or upright, ``length`` px long; its top left corner is a share of the figure."""
    values, texts = scale.ticks()
    return {
        "orientation": "h" if lying else "v",
        "x": x,
        "xanchor": "left",
        "xpad": 0,
        "y": y,
        "yanchor": "top",
        "ypad": 0,
        "len": length,
        "lenmode": "pixels",
        "thickness": 14,
        "outlinewidth": 1,
        "outlinecolor": theme.line,
        "tickvals": values,
        "ticktext": texts,
        "tickfont": {"size": 13},
        "ticks": "outside",
        "ticklen": 3,
        "tickcolor": theme.line,
        "title": {"text": scale.title(length), "font": {"size": 14}, "side": "top" if lying else "right"},
    }
