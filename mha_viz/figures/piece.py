"""What figures are made of: plain dicts, since Plotly's classes take many times as long, and tell a checker nothing either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

if TYPE_CHECKING:
    import numpy as np
    import plotly.graph_objects as go
    from jaxtyping import Bool, Float

Piece = dict[str, Any]  # a piece of a figure in Plotly's own words: a trace, an annotation, an axis, several axes by name
Axes = tuple[str, str]  # the names of a pair of axes, as traces have them: ("x2", "y2")
Looks: TypeAlias = 'dict[str, Bool[np.ndarray, "T L S"]]'  # name of LOOKS → which cells of several maps look so
Stroke: TypeAlias = 'tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]]'  # x and y of a line, NaN where it has a gap


class Spec(TypedDict):
    """A whole figure as the plain dict that ``go.Figure`` takes."""

    data: list[Piece]
    layout: Piece


def plain(figure: go.Figure) -> Spec:
    """The plain dict that a ``go.Figure`` was made of."""
    spec: Spec = figure.to_plotly_json()
    return spec
