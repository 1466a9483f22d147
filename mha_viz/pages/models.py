"""Models: every layer and head of a model, and one of them beside the average of its layer."""

from shlex import quote as quoted

import streamlit as st

from mha_viz.pages import from_file, from_pretrained, from_trained, source
from mha_viz.pages.checked import Checked, checked
from mha_viz.pages.draft import CHOICES, draw
from mha_viz.pages.head_panel import head_panel
from mha_viz.pages.messages import plain, say_error, say_notes
from mha_viz.pages.places import enter
from mha_viz.pages.save import save
from mha_viz.pages.shapes import trace_strip
from mha_viz.pages.stage import Subject, changed_trace, choose_cells, heads_and_average
from mha_viz.pages.statistics_table import statistics_table
from mha_viz.pages.toolbar import change, show, toolbar
from mha_viz.pages.warm import warm_up

SOURCES = {"trained": from_trained, "pretrained": from_pretrained, "file": from_file}
WORDS = {"trained": "shipped", "pretrained": "pretrained", "file": "file"}


def page():
    enter("models", follow=("above", "table"))
    source.arrive()
    from_file.open_named()
    with st.sidebar:
        choose_source()
        here().sidebar()
    warm_up()
    found = here().recording()
    for wrong in source.wrongs():
        say_error(wrong)
    if st.session_state.source == "file":
        from_file.questions()
    if found is None or not found.traces:
        say_notes(source.notes())
        st.markdown(here().nothing() if found is None else f"This recording holds no attention. {plain(' '.join(found.notes))}")
        return
    above()
    toolbar_alone()
    stage()
    table()


def here():
    """The module of the source that is looked at."""
    return SOURCES[st.session_state.source]


def choose_source():
    st.session_state.view_source = st.session_state.source
    st.segmented_control(
        "source", list(SOURCES), format_func=WORDS.get, key="view_source", required=True, label_visibility="collapsed", width="stretch",
        on_change=lambda: source.choose_source(st.session_state.view_source),
    )  # fmt: skip


def layer():
    """The place of the layer that is looked at, and its Trace; the first where the View's is beyond the model."""
    traces = here().recording().traces
    index = st.session_state.view.layer
    index = index if index < len(traces) else 0
    return index, traces[index]


@st.fragment(key="above")
def above():
    """The model: what is to be known of the run, its layers and heads as small maps, and the shapes of the chosen layer."""
    found, (index, trace) = here().recording(), layer()
    with st.container(key="messages"):
        say_notes(source.notes(found.traces))
        here().about()
        if found.cause is not None:
            st.error(f"**First not finite here.** {plain(found.cause.sentence)}", icon=":material/error:")
        if found.notes:
            st.caption(" ".join(map(plain, found.notes)))
    if len(found.traces) > 1:
        with st.container(key="overview_box", height=380 if len(found.traces) > 8 else "content"):
            overview(found.traces, index)
    if len(found.traces) == 1:
        st.html(trace_strip(trace))
        return
    names, strip = st.columns([1, 3], vertical_alignment="center")
    with names:
        named = [one.name if one.name == f"layer {i}" else f"layer {i} · {one.name}" for i, one in enumerate(found.traces)]
        show(
            "layer", st.selectbox, "layer", index, rerun=CHOICES, options=list(range(len(named))), format_func=named.__getitem__
        )
    strip.html(trace_strip(trace))


def overview(traces, index):
    from mha_viz.analysis import shown_trace
    from mha_viz.components import live, measured_width
    from mha_viz.figures.overview import describe, place_of, spec

    view = st.session_state.view
    traces = [shown_trace(changed_trace(trace, view)[0] if i == index else trace, view) for i, trace in enumerate(traces)]

    def choose(choices):
        layer, head = place_of(traces, index, choices[-1]["head"])
        change(layer=layer, head=head, cell=(choices[-1]["query"], choices[-1]["key"]))
        draw(CHOICES)

    figure = spec(traces, view, index, theme=st.context.theme.type or "light", width=measured_width("overview"))
    live(figure, key="overview", alt=describe(traces, view, index), on_choose=choose, on_look=look_again)


@st.fragment(key="toolbar")
def toolbar_alone():
    toolbar(layer()[1], st.session_state.view, save, can_change=here() is not from_trained)  # which has its own


@st.fragment(key="stage")
def stage():
    """What is shown of the chosen layer."""
    st.session_state.staged = True
    index, trace = layer()
    module = here()
    subject = Subject(trace, source.settings(), index, source.spelled, source.unspelled, module.trace_of)
    with st.container(key="stage"):
        heads_and_average(subject, choose_and_mark, len(module.recording().traces) == 1, look_again)
    if not st.session_state.get("playing"):  # Back should not lead through every snapshot that was played
        source.write_address()


def look_again():
    """Draw both pictures for another width or theme."""
    draw(["above", "stage"])


def choose_and_mark(choices):
    """Choose cells, and let the overview mark the head as well."""
    head = st.session_state.view.head
    choose_cells(choices)
    if st.session_state.view.head != head:
        draw(["above", "stage"])


@st.fragment(key="table")
def table():
    """What belongs to all heads, and to the chosen one beyond this picture; and what can be checked."""
    from mha_viz.analysis import choose, shown_trace

    index, trace = layer()
    traces, view = here().recording().traces, st.session_state.view
    choice = choose(shown_trace(changed_trace(trace, view)[0], view), view)  # of what the picture shows
    head_panel(here(), traces, index, choice)
    statistics_table(traces, view)
    checks_of(index, trace)


def checks_of(index, trace):
    """The checks of this layer, and of the model: folded, and run while they are open."""
    folded = st.expander("Validate this layer", key="checks", on_change="rerun")
    if not folded.open:
        return
    from mha_viz.sources.source import Source

    kind, settings = st.session_state.source, source.settings()
    shown, _ = changed_trace(trace, st.session_state.view)
    traces = list(here().recording().traces)
    traces[index] = shown
    if kind == "file":
        of, command = Source(settings.file, tuple(traces)), quoted(settings.file)
    else:
        name = settings.model if kind == "trained" else settings.name
        of = Source(name, tuple(traces), settings)
        command = f"--address {quoted(f'?source={kind}&{source.spelled(settings)}'.rstrip('&'))}"
    with folded:
        checked(Checked(of, index, st.session_state.view.what_if, command))


page()
