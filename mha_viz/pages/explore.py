"""Explore: every head of one layer beside the average of them all."""

from dataclasses import replace
from pathlib import Path

import streamlit as st

from mha_viz.core.rules import Wrong
from mha_viz.pages import draft
from mha_viz.pages.controls import controls
from mha_viz.pages.messages import say_not_current, say_notes, say_wrong
from mha_viz.pages.shapes import chosen_number, mode, shape_strip
from mha_viz.pages.warm import synthetic_trace, warm_up
from mha_viz.settings import Settings

STYLE = Path(__file__).with_name("style.css")


def page():
    st.html(STYLE)
    draft.arrive()
    controls()
    warm_up()
    say_notes(st.session_state.notes)
    shown = st.session_state.setdefault("shown", Settings())
    try:
        settings = draft.settings()
        trace = synthetic_trace(replace(settings, batch_first=True))  # the layout changes no number
        st.session_state.shown = settings
    except Wrong as wrong:
        say_wrong(wrong)
        say_not_current(shown)
        settings, trace = shown, synthetic_trace(replace(shown, batch_first=True))
    with st.container(key="stage"):
        heads_and_average(trace, settings)


@st.fragment
def heads_and_average(trace, settings):
    """The picture and what belongs to it alone: a fragment, so that looking elsewhere computes nothing anew."""
    from mha_viz.analysis import choose
    from mha_viz.components import live, measured_width
    from mha_viz.figures.heads import describe, heads

    choice = choose(trace, st.session_state.view)
    st.html(shape_strip(trace, settings) + mode(settings))
    with st.container(horizontal=True, vertical_alignment="center"):
        view_control("item", st.selectbox, "batch item", choice.item, list(range(settings.N)), "batch item {}".format)
        orders = {"difference": "order: differs from average", "index": "order: head number"}
        view_control("order", st.selectbox, "order of heads", st.session_state.view.order, list(orders), orders.get)
    view = st.session_state.view
    figure = heads(trace, view, theme=st.context.theme.type or "light", width=measured_width("picture"))
    live(figure, key="picture", alt=describe(trace, view), on_choose=choose_cell)
    st.html(chosen_number(trace, choose(trace, view)))
    draft.write_address()


def view_control(name, widget, label, value, options, words):
    """A control of one field of View, which holds what the View says."""
    st.session_state[name] = value
    widget(label, options, key=name, format_func=words, label_visibility="collapsed", on_change=look, args=(name,), width=240)


def look(name):
    st.session_state.view = replace(st.session_state.view, **{name: st.session_state[name]})


def choose_cell(head, query, key):
    """A click on a cell: in a head's map it chooses the head as well, in the average's the cell alone."""
    view = st.session_state.view
    st.session_state.view = replace(view, head=view.head if head is None else head, cell=(query, key))


page()
