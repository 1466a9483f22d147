"""The layer of Explore: what its sidebar says, for every page that looks at it."""

from dataclasses import replace

import streamlit as st

from mha_viz.app import draft
from mha_viz.app.panels.random import controls
from mha_viz.app.parts.messages import say_not_current, say_notes, say_wrong
from mha_viz.app.places import enter
from mha_viz.app.warm import synthetic_trace, warm_up
from mha_viz.core.rules import Wrong
from mha_viz.settings import Settings
from mha_viz.sources.synthetic import check_size


def begin(page):
    """What each page of this layer begins with: its address taken over, the sidebar drawn, PyTorch and Plotly imported."""
    enter(page)
    draft.arrive()
    controls()
    warm_up()


def say_what_is_wrong():
    """Say what is wrong with the Settings, and what of the address cannot be shown. Returns the Settings and the Trace that are shown."""
    settings, trace, wrong = current()
    with st.container(key="messages"):  # there also when empty: what follows keeps its place
        if wrong:
            say_wrong(wrong)
            say_not_current(settings, draft.values())
        say_notes(draft.notes(trace))
    return settings, trace


def current():
    """The Settings that are set and their Trace; the last good ones where these break a rule, and the Wrong, else None."""
    state = st.session_state
    try:
        settings = draft.settings()
        trace = trace_of(settings)
    except Wrong as wrong:
        return *last_good(), with_room(wrong)
    state.shown = settings
    return settings, trace, None


def with_room(wrong):
    """``wrong``, and what it advises has room as well: 100,000 is a length that may be named, and may be more than memory holds."""
    found = [fitting for change in wrong.nearest if (fitting := _fitting(change))]
    nearest = [change for i, change in enumerate(found) if change not in found[:i]]
    return Wrong(wrong.argument, wrong.value, wrong.rule, nearest)


def _fitting(change):
    """``change``, or what is advised in its place where there is no room for it, of its own fields first; None where nothing has."""
    for _ in range(4):  # weights, projections and maps have a size each
        try:
            check_size(draft.settings(**change))
            return change
        except Wrong as wrong:
            if not wrong.nearest:
                return None
            change = change | min(wrong.nearest, key=lambda other: not other.keys() <= change.keys())
    return None


def last_good():
    """The Settings that were shown last and their Trace; the defaults where there is no room for those any more."""
    state = st.session_state
    settings = state.setdefault("shown", Settings())
    try:
        return settings, trace_of(settings)
    except Wrong:
        return Settings(), trace_of(Settings())


def is_long():
    """Whether the Trace of ``current`` is too long for its maps to be whole: told by its size, before it is made."""
    try:
        return check_size(draft.settings())
    except Wrong:
        return check_size(st.session_state.get("shown", Settings()))


def trace_of(settings):
    return synthetic_trace(replace(settings, batch_first=True))  # the layout changes no number
