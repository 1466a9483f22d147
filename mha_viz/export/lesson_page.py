"""A lesson as one file, for a room without a network: the question, the picture with exact hover, the answer behind a click."""

from html import escape

from mha_viz.export.page import figure_div
from mha_viz.figures.compare import difference
from mha_viz.figures.heads import heads

STYLE = (
    "body { font: 20px/1.5 system-ui, sans-serif; max-width: 1150px; margin: 2rem auto; padding: 0 1rem; "
    "color: #1d2127; background: #fff } "
    "summary { cursor: pointer; font-weight: 600 } h1 { font-size: 1.6rem; margin: 0 } small { color: #5b6470 }"
)


def picture(lesson, theme="light", width=1104):
    """The lesson's figure: the heads of its Trace, or A, B and B − A."""
    traces = lesson.traces()
    drawn = heads if len(traces) == 1 else difference
    return drawn(*traces, lesson.view(), theme, width)


def lesson_page(lesson):
    """A whole HTML page as text; Plotly is in it, and nothing is fetched."""
    figure = figure_div(picture(lesson))
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{escape(lesson.title)}</title><style>{STYLE}</style><h1>{escape(lesson.title)}</h1><p>{escape(lesson.look)}</p>"
        f"<p><b>{escape(lesson.question)}</b></p>{figure}<details><summary>The answer</summary><p>{escape(lesson.answered())}</p></details>"
        "<p><small>MHA Explorer. Every number was computed when this page was made.</small></p></html>"
    )
