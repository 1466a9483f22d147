"""The layer of Explore: what its sidebar says, for every page that looks at it."""

from dataclasses import replace

import streamlit as st

from mha_viz.core.rules import Wrong
from mha_viz.pages import draft
from mha_viz.pages.warm import synthetic_trace
from mha_viz.settings import Settings


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
