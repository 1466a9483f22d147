"""The model that is looked at: where it comes from, the layer that is chosen of it, and its checks."""

from dataclasses import replace
from shlex import quote as quoted

import streamlit as st

from mha_viz.app import source
from mha_viz.app.drawing import CHOICES, WHOLE, draw, give, heard, rooms
from mha_viz.app.panels import file as from_file
from mha_viz.app.panels import pretrained as from_pretrained
from mha_viz.app.panels import shipped as from_trained
from mha_viz.app.parts.checked import Checked, checked
from mha_viz.app.parts.messages import say_notes, say_with_mends
from mha_viz.app.parts.stage import changed_trace
from mha_viz.app.parts.toolbar import show
from mha_viz.app.warm import warm_up
from mha_viz.export.markdown import plain
from mha_viz.sources.base import Source

SOURCES = {"trained": from_trained, "pretrained": from_pretrained, "file": from_file}
WORDS = {"trained": "shipped", "pretrained": "pretrained", "file": "file"}


def begin():
    """What each page of a model begins with: its address taken over, the sidebar drawn, PyTorch and Plotly imported, and what is
    wrong said. Returns whether there is a layer to look at; says what is missing where there is none."""
    source.arrive()
    from_file.open_named()
    with st.sidebar:
        choose_source()
        here().sidebar()
    (said,) = rooms("source")
    with said:
        warm_up()
        found = here().recording()
        for wrong in source.wrongs():
            say_with_mends(wrong, mend, key=f"wrong_{wrong.argument}")
        if st.session_state.source == "file":
            from_file.questions()
        from_file.ask_for_the_rest()
        if found is None or not found.traces:
            say_notes(source.notes())
            st.markdown(
                here().nothing() if found is None else f"This recording holds no attention. {plain(' '.join(found.notes))}"
            )
            source.write_address()  # no picture is drawn that would
            return False
    return True


def mend(right):
    """Set what was offered for a field of the source; the form is drawn anew."""
    source.change(**right)
    draw(WHOLE)


def here():
    """The module of the source that is looked at."""
    return SOURCES[st.session_state.source]


def choose_source():
    give("view_source", st.session_state.source)
    st.segmented_control(
        "source", list(SOURCES), format_func=WORDS.get, key="view_source", required=True, label_visibility="collapsed", width="stretch",
        on_change=heard(source.choose_source, "view_source"),
    )  # fmt: skip


def layer():
    """The place of the layer that is looked at, and its Trace; the first where the View's is beyond the model."""
    traces = here().recording().traces
    index = st.session_state.view.layer
    index = index if index < len(traces) else 0
    return index, traces[index]


def choose_layer(label_visibility="collapsed", rerun=CHOICES):
    """A choice among the layers, each with the name of its module."""
    from mha_viz.analysis.layers import layer_names

    traces = here().recording().traces
    named = [one.name if one.name == name else f"{name} · {one.name}" for name, one in zip(layer_names(traces), traces, strict=True)]
    show(
        "layer", st.selectbox, "layer", layer()[0], label_visibility, rerun, options=list(range(len(named))),
        format_func=named.__getitem__,
    )  # fmt: skip


def looked_at():
    """The Source that is looked at."""
    kind, settings, traces = st.session_state.source, source.settings(), here().recording().traces
    if kind == "file":
        return Source(settings.file, traces)
    return Source(settings.model if kind == "trained" else settings.name, traces, settings)


def checks():
    """The checks of the layer that is looked at, and of its model, run while one watches."""
    kind, view, of = st.session_state.source, st.session_state.view, looked_at()
    index, trace = layer()
    traces = list(of.traces)
    traces[index], _ = changed_trace(trace, view)
    address = f"?source={kind}&{source.spelled(source.settings())}".rstrip("&")
    command = quoted(of.name) if kind == "file" else f"--address {quoted(address)}"
    checked(Checked(replace(of, traces=tuple(traces)), index, view.what_if, command))
