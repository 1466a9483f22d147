"""Explore: every head of one layer beside the average of them all."""

from dataclasses import replace
from pathlib import Path

import streamlit as st

from mha_viz.core.rules import Wrong
from mha_viz.pages import draft
from mha_viz.pages.changes import changes
from mha_viz.pages.controls import controls
from mha_viz.pages.layout_demo import layout_demo
from mha_viz.pages.messages import say_findings, say_not_current, say_notes, say_wrong, say_wrong_view
from mha_viz.pages.number_panel import number_panel
from mha_viz.pages.save import save
from mha_viz.pages.shapes import chosen_number, mode, shape_strip, what_average_hides
from mha_viz.pages.toolbar import change, toolbar
from mha_viz.pages.warm import synthetic_trace, warm_up
from mha_viz.settings import Settings

STYLE = Path(__file__).with_name("style.css")


def page():
    st.html(STYLE)
    draft.arrive()
    controls()
    warm_up()
    above()
    toolbar_alone()
    stage()


@st.fragment(key="above")
def above():
    """What is said of the Settings: what is wrong with them, and the shapes that they make."""
    settings, trace, wrong = current()
    with st.container(key="messages"):  # there also when empty: what follows keeps its place
        if wrong:
            say_wrong(wrong)
            say_not_current(settings, draft.values())
        say_notes(draft.notes(trace))
    strip(trace, settings)


@st.fragment(key="toolbar")
def toolbar_alone():
    """The controls of the view: drawn anew where their choices change, and otherwise left as the person sees them."""
    _, trace, _ = current()
    toolbar(trace, st.session_state.view, save)


@st.fragment(key="stage")
def stage():
    """What is shown. The controls of the view draw this alone."""
    st.session_state.staged = True
    settings, trace, _ = current()
    with st.container(key="stage"):
        heads_and_average(trace, settings)


def current():
    """The Settings that are set and their Trace; the last good ones where these break a rule, and the Wrong, else None."""
    state = st.session_state
    try:
        settings = draft.settings()
        trace = trace_of(settings)
    except Wrong as wrong:
        settings = state.setdefault("shown", Settings())
        return settings, trace_of(settings), wrong
    state.shown = settings
    return settings, trace, None


def trace_of(settings):
    return synthetic_trace(replace(settings, batch_first=True))  # the layout changes no number


def strip(trace, settings):
    """The shapes on the way, and the button that tries the wrong layout."""
    shapes, demo = st.columns([5, 1], vertical_alignment="center")
    swapped = st.session_state.get("layout_shown", settings.batch_first) != settings.batch_first
    st.session_state.layout_shown = settings.batch_first
    shapes.html(shape_strip(trace, settings, swapped) + mode(settings))
    with demo:
        layout_demo(trace)


def heads_and_average(trace, settings):
    """The picture, and the numbers that belong to it."""
    from mha_viz.analysis import choose
    from mha_viz.components import live, measured_width

    view = st.session_state.view
    choice = choose(trace, view)
    pinned, wrong_pin = pinned_trace(view)
    st.session_state.setdefault("saved", [])[:] = trace, choice, pinned  # for whoever asks to save what is shown
    with st.container(key="findings"):
        say_wrong_view()
        say_notes(wrong_pin)
        say_findings(trace, settings)
    look = {"theme": st.context.theme.type or "light", "width": measured_width("picture")}
    figure, alt = picture(trace, pinned, view, look)
    live(figure, key="picture", alt=alt, on_choose=choose_cells, on_reset=let_go, save=st.session_state.get("saving"))
    st.html(chosen_number(trace, choice, pinned) + what_average_hides(trace, choice.item))
    with st.container(key="compared"):
        if pinned is not None:
            changes(pinned, trace, settings, view, choice)
    number_panel(trace, view, choice, look)
    draft.write_address()


def picture(trace, pinned, view, look):
    """Maps or lines of this Trace, or beside those of the one that is pinned: the figure, and what it shows in words."""
    if pinned is not None:
        from mha_viz.figures.compare import describe_difference, difference_spec

        return difference_spec(pinned, trace, view, **look), describe_difference(pinned, trace, view)
    if view.picture == "lines":
        from mha_viz.figures import lines

        return lines.spec(trace, view, **look), lines.describe_lines(trace, view)
    from mha_viz.figures.heads import describe, spec

    return spec(trace, view, **look), describe(trace, view)


def pinned_trace(view):
    """The Trace of A, None where nothing is pinned; and a list of what is wrong with what is pinned."""
    if view.pinned is None:
        return None, []
    try:
        return trace_of(draft.unspelled(view.pinned)), []
    except Wrong as wrong:
        return None, [wrong]


def choose_cells(choices):
    """In a head's map a cell chooses the head as well, in the average's itself alone. Painting, pressing it masks it as well."""
    painting = st.session_state.draft["masked"] and st.session_state.get("paint")
    painted = False
    for choice in choices:
        head, query, key = choice["head"], choice["query"], choice["key"]
        if painting and choice["pressed"] and None not in (query, key):
            draft.paint(query, key)
            painted = True
        change(head=st.session_state.view.head if head is None else head, cell=(query, key))
    if painted:
        st.rerun()  # the mask's text stands in the sidebar


def let_go():
    change(cell=None)


page()
