"""Validate: the tutorial's evaluation and checklist, run on the layer and the input of Explore."""

from shlex import quote

import streamlit as st

from mha_viz.pages import draft
from mha_viz.pages.checked import Checked, checked
from mha_viz.pages.explored import begin, current, say_what_is_wrong
from mha_viz.pages.messages import say_error
from mha_viz.pages.shapes import mode
from mha_viz.pages.stage import changed_trace
from mha_viz.settings.interventions import read_interventions, told


def page():
    begin("validate")
    above()
    toolbar()
    stage()


@st.fragment(key="above")
def above():
    """What is said of the Settings: what is wrong with them, and what of the address cannot be shown."""
    say_what_is_wrong()


@st.fragment(key="toolbar")
def toolbar():
    """There is none here; what the sidebar draws anew names it."""


@st.fragment(key="stage")
def stage():
    """Every check of the layer that is set."""
    from mha_viz.sources.source import Source, source_name

    st.session_state.staged = True
    settings, trace, _ = current()
    view = st.session_state.view
    changed, wrong = changed_trace(trace, view)
    with st.container(key="stage"):
        for one in wrong:
            say_error(one)
        if changed is not trace:
            st.caption(f"What if: {' '.join(told(read_interventions(view.what_if)))} Checked is the layer with that.")
        st.html(mode(settings))
        address = draft.spelled(settings)
        of = Source(source_name(settings), (changed,), settings)
        checked(Checked(of, 0, view.what_if, f"--address {quote(f'?{address}')}" if address else "", settings.batch_first))
        st.caption(
            "A shipped or pretrained model, or a file of your own: open it on the Models page, and there “Validate this layer”."
        )
    draft.write_address()


page()
