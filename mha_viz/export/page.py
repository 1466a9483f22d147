"""A figure as one HTML file that needs no network: Plotly is in it, and pointing at a cell says its exact weight."""

from __future__ import annotations

from html import escape

import plotly.graph_objects as go
import plotly.io as pio

from mha_viz.figures.piece import Spec

BARE = {"displaylogo": False, "displayModeBar": False, "doubleClick": "reset"}


def figure_div(spec: Spec) -> str:
    """The figure as HTML to put into a page, with Plotly before it. The same figure gives the same text."""
    figure = go.Figure(spec)  # which keeps arrays as typed ones; of a dict they would become lists
    div: str = pio.to_html(figure, include_plotlyjs=True, full_html=False, config=BARE, div_id="figure")
    return div


def figure_page(spec: Spec, title: str, alt: str, caption: str, enlarged: float = 1) -> str:
    """A whole page of one figure, ``enlarged`` so many times, the ``alt`` text for who does not see it and the ``caption`` below it."""
    ground, text = spec["layout"]["paper_bgcolor"], spec["layout"]["font"]["color"]
    width, height = (f"{spec['layout'][side] * enlarged:.6g}px" for side in ("width", "height"))
    # Plotly finds the cell under the pointer through a transform; through zoom it does not.
    size = f"width: {width}; height: {height}; transform: scale({enlarged:.6g}); transform-origin: 0 0"
    style = f"body {{ font: 16px/1.5 system-ui, sans-serif; margin: 1rem; color: {text}; background: {ground} }} figure {{ margin: 0 }}"
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{style} figcaption {{ max-width: {width} }}</style>"
        f"<figure><div role='img' aria-label='{escape(alt, quote=True)}' style='{size}'>{figure_div(spec)}</div>"
        f"<figcaption>{escape(caption)}</figcaption></figure></html>"
    )
