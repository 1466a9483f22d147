"""A lesson as one file, for a room without a network: the question, the picture with exact hover, the answer behind a click."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from mha_viz.export.page import figure_div
from mha_viz.settings import View
from mha_viz.sources.base import Source
from mha_viz.studies.lessons import Lesson
from mha_viz.views import PAGE
from mha_viz.views.shown import Shown

STYLE = (
    "body { font: 20px/1.5 system-ui, sans-serif; max-width: 1150px; margin: 2rem auto; padding: 0 1rem; "
    "color: #1d2127; background: #fff } "
    "summary { cursor: pointer; font-weight: 600 } h1 { font-size: 1.6rem; margin: 0 } small { color: #5b6470 }"
)


def shown_lesson(lesson: Lesson, view: View | None = None) -> Shown:
    """The Shown of a lesson, as a ``view`` shows it, its own where None: its Trace, beside A where it compares two."""
    *a, trace = lesson.traces()
    view = replace(view or lesson.view(), layer=0)
    return Shown(Source(f"the lesson “{lesson.title}”", (trace,)), trace, view, a=a[0] if a else None, a_is=lesson.look)


def lesson_page(lesson: Lesson) -> str:
    """A whole HTML page as text; Plotly is in it, and nothing is fetched."""
    figure = figure_div(PAGE.drawn(shown_lesson(lesson))[0])
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{escape(lesson.title)}</title><style>{STYLE}</style><h1>{escape(lesson.title)}</h1><p>{escape(lesson.look)}</p>"
        f"<p><b>{escape(lesson.question)}</b></p>{figure}<details><summary>The answer</summary><p>{escape(lesson.answered())}</p></details>"
        "<p><small>MHA Explorer. Every number was computed when this page was made.</small></p></html>"
    )
