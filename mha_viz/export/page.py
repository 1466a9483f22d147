"""A figure as one HTML file that needs no network: Plotly is in it, and pointing at a cell says its exact weight."""

from html import escape

import plotly.graph_objects as go
import plotly.io as pio

BARE = {"displaylogo": False, "displayModeBar": False, "doubleClick": "reset"}


def figure_div(spec):
    """The figure as HTML to put into a page, with Plotly before it. The same figure gives the same text."""
    figure = go.Figure(spec)  # which keeps arrays as typed ones; of a dict they would become lists
    return pio.to_html(figure, include_plotlyjs=True, full_html=False, config=BARE, div_id="figure")


def figure_page(spec, title, alt, caption):
    """A whole page of one figure, the ``alt`` text for who does not see it and the ``caption`` below it."""
    ground, text = spec["layout"]["paper_bgcolor"], spec["layout"]["font"]["color"]
    style = f"body {{ font: 16px/1.5 system-ui, sans-serif; margin: 1rem; color: {text}; background: {ground} }} figure {{ margin: 0 }}"
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{style} figcaption {{ max-width: {spec['layout']['width']}px }}</style>"
        f"<figure><div role='img' aria-label='{escape(alt, quote=True)}'>{figure_div(spec)}</div>"
        f"<figcaption>{escape(caption)}</figcaption></figure></html>"
    )
