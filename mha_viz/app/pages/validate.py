"""Validate: the tutorial's evaluation and checklist, run on the layer that is looked at and its input."""

from shlex import quote

import streamlit as st

from mha_viz.app import draft, model
from mha_viz.app import drawing as form
from mha_viz.app.fragment import fragment
from mha_viz.app.looked_at import begin, current, of_model, say_what_is_wrong, told, write_address
from mha_viz.app.parts.checked import Checked, checked
from mha_viz.app.parts.messages import say_error, say_findings
from mha_viz.app.parts.stage import changed_trace
from mha_viz.export.markdown import plain
from mha_viz.settings.interventions import read_interventions
from mha_viz.settings.interventions import told as told_changes


def page():
    if begin("validate"):
        head, tools, shown = form.rooms("above", "toolbar", "stage")
        with head:
            above()
        with tools:
            toolbar()
        with shown:
            stage()
        form.drawn()


@fragment(key="above")
def above():
    """What is said of what is set: what is wrong with it, and what of the address cannot be shown."""
    say_what_is_wrong(changed=True)


@fragment(key="toolbar")
def toolbar():
    """There is none here; what the sidebar draws anew names it."""


@fragment(key="stage")
def stage():
    """Every check of the layer that is looked at."""
    from mha_viz.sources.base import kind_of

    looked, view = current(), st.session_state.view
    trace = model.layer()[1] if of_model() else looked.trace  # with what is changed in it: that is checked
    changed, wrong = changed_trace(trace, view)
    with st.container(key="stage"):
        for one in wrong:
            say_error(one)
        if changed is not trace:
            st.caption(
                f"What if: {plain(' '.join(told_changes(read_interventions(view.what_if))))} Checked is the layer with that."
            )
        kind = kind_of(looked.settings) if looked.settings is not None else model.looked_at().kind
        say_findings(changed, kind.seeded)
        st.html(told(looked))
        if of_model():
            model.checks()
        else:
            checks(looked.settings, changed)
    write_address()


def checks(settings, trace):
    """The checks of Explore's layer."""
    from mha_viz.sources.base import Source, kind_of

    address = draft.spelled(settings)
    of = Source(kind_of(settings).called(settings), (trace,), settings)
    command = f"--address {quote(f'?{address}')}" if address else ""
    checked(Checked(of, 0, st.session_state.view.what_if, command, settings.batch_first))


page()
