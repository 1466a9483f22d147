"""Explore: every head of one layer beside the average of them all."""

import streamlit as st

from mha_viz.app import draft
from mha_viz.app import drawing as form
from mha_viz.app.explored import begin, current, say_what_is_wrong, trace_of
from mha_viz.app.fragment import fragment
from mha_viz.app.parts import long
from mha_viz.app.parts.layout_demo import layout_demo
from mha_viz.app.parts.save import save
from mha_viz.app.parts.shapes import mode, shape_strip
from mha_viz.app.parts.stage import Subject, choose_cells, for_table, heads_and_average
from mha_viz.app.parts.statistics_table import statistics_table
from mha_viz.app.parts.toolbar import toolbar
from mha_viz.sources.base import Source, kind_of


def page():
    begin("explore")
    long.begin()
    head, tools, progress, shown = form.rooms("above", "toolbar", "progress", "stage")
    with head:
        above()
    with tools:
        toolbar_alone()
    with shown:
        stage()
    form.drawn()
    long.go_on(progress)


@fragment(key="above")
def above():
    """What is said of the Settings: what is wrong with them, and the shapes that they make."""
    settings, trace = say_what_is_wrong()
    strip(trace, settings)


@fragment(key="toolbar")
def toolbar_alone():
    """The controls of the view: drawn anew where their choices change, and otherwise left as the person sees them."""
    _, trace, _ = current()
    toolbar(trace, st.session_state.view, save, part=long.part_of(trace))


@fragment(key="stage")
def stage():
    """What is shown. The controls of the view draw this alone."""
    settings, trace, _ = current()
    with st.container(key="stage"):
        of = Source(kind_of(settings).called(settings), (trace,), settings)
        heads_and_average(
            Subject(of, 0, settings, draft.spelled, draft.unspelled, lambda other, _: trace_of(other)), paint_and_choose
        )
        statistics_table(lambda: [for_table(trace)], st.session_state.view)
    draft.write_address()
    long.carry_on()


def strip(trace, settings):
    """The shapes on the way, and the button that tries the wrong layout."""
    shapes, demo = st.columns([5, 1], vertical_alignment="center")
    swapped = st.session_state.get("layout_shown", settings.batch_first) != settings.batch_first
    st.session_state.layout_shown = settings.batch_first
    shapes.html(shape_strip(trace, settings, swapped) + mode(settings))
    with demo:
        layout_demo(trace)


def paint_and_choose(choices):
    """Choose cells; while painting, pressing one masks it as well."""
    choose_cells(choices)
    cells = [(c["query"], c["key"]) for c in choices if c["pressed"] and None not in (c["query"], c["key"])]
    if cells and st.session_state.draft["masked"] and st.session_state.get("paint"):
        for query, key in cells:
            draft.paint(query, key)
        st.rerun()  # the mask's text stands in the sidebar


page()
