"""Validate: the tutorial's evaluation and checklist, run on the layer that is looked at and its input."""

import streamlit as st

from mha_viz.app.drawing import fill
from mha_viz.app.fragment import fragment
from mha_viz.app.looked_at import begin_whole, current, say_what_is_wrong, told
from mha_viz.app.parts.checked import Checked, checked
from mha_viz.app.parts.messages import say_error, say_findings
from mha_viz.app.parts.stage import changed_trace, with_changes
from mha_viz.app.session import looking, write_address
from mha_viz.export.markdown import plain
from mha_viz.settings.interventions import read_interventions
from mha_viz.settings.interventions import told as told_changes


def page():
    if begin_whole("validate"):
        fill(above=above, toolbar=toolbar, stage=stage)


@fragment(key="above")
def above():
    """What is said of what is set: what is wrong with it, and what of the address cannot be shown."""
    say_what_is_wrong(current())


@fragment(key="toolbar")
def toolbar():
    """There is none here; what the sidebar draws anew names it."""


@fragment(key="stage")
def stage():
    """Every check of the layer that is looked at, with what is changed in it."""
    looked, view = current(), looking().view
    _, wrong = changed_trace(looked.trace, view)
    looked, what_if = with_changes(looked)
    with st.container(key="stage"):
        for one in wrong:
            say_error(one)
        if what_if:
            st.caption(f"What if: {plain(' '.join(told_changes(read_interventions(what_if))))} Checked is the layer with that.")
        say_findings(looked.trace, looked.of.kind.seeded)
        st.html(told(looked))
        checked(Checked(looked.of, looked.index, what_if))
    write_address()


page()
