"""Models: every layer and head of a model, and one of them beside the average of its layer."""

import streamlit as st

from mha_viz.app import drawing as form
from mha_viz.app import source
from mha_viz.app.drawing import CHOICES, draw, heard
from mha_viz.app.fragment import fragment
from mha_viz.app.model import begin, checks, choose_layer, here, layer, looked_at
from mha_viz.app.panels import shipped as from_trained
from mha_viz.app.parts import long
from mha_viz.app.parts.head_panel import head_panel
from mha_viz.app.parts.messages import say_notes
from mha_viz.app.parts.save import save
from mha_viz.app.parts.shapes import trace_strip
from mha_viz.app.parts.stage import Subject, changed_trace, choose_cells, for_table, heads_and_average
from mha_viz.app.parts.statistics_table import statistics_table
from mha_viz.app.parts.toolbar import change, toolbar
from mha_viz.app.places import enter
from mha_viz.core.memory import too_long
from mha_viz.export.markdown import plain


def page():
    enter("models", follow=("above", "table"))
    if not begin():
        return
    long.begin()
    head, tools, progress, shown, below = form.rooms("above", "toolbar", "progress", "stage", "table")
    with head:
        above()
    with tools:
        toolbar_alone()
    with shown:
        stage()
    with below:
        table()
    form.drawn()
    long.go_on(progress)


@fragment(key="above")
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
    if len(found.traces) == 1:
        st.html(trace_strip(trace))
        return
    if too_long(trace):
        overview_in_small(found.traces, index)
    else:
        with overview_box(found.traces):
            overview(found.traces, index)
    names, strip = st.columns([1, 3], vertical_alignment="center")
    with names:
        choose_layer()
    strip.html(trace_strip(trace))


def overview(traces, index):
    from mha_viz.analysis import shown_trace

    view = st.session_state.view
    size = traces[index].shape[1:]
    traces = [changed_trace(trace, view)[0] if i == index else trace for i, trace in enumerate(traces)]
    draw_overview([shown_trace(trace, view) if trace.shape[1:] == size else trace for trace in traces], index)


def overview_box(traces):
    return st.container(key="overview_box", height=380 if len(traces) > 8 else "content")


def overview_in_small(traces, index):
    """The same of layers whose maps are too long to be whole, while it is open: each takes as long as the one that is looked at."""
    folded = st.expander("Every head of every layer", key="every_layer", on_change="rerun")
    if not folded.open:
        return
    view = st.session_state.view
    traces = long.layers([changed_trace(trace, view)[0] if i == index else trace for i, trace in enumerate(traces)], view)
    with folded, overview_box(traces):
        if traces[index] is None:
            st.caption("The layer that is looked at comes first.")
        else:
            draw_overview(traces, index)
    long.carry_on()


def draw_overview(traces, index):
    from mha_viz.components import live, measured_width
    from mha_viz.figures.overview import describe, place_of, spec

    view = st.session_state.view

    def choose(choices):
        layer, head = place_of(traces, index, choices[-1]["head"])
        (choice,) = long.placed(traces[index], choices[-1:])
        change(layer=layer, head=head, cell=(choice["query"], choice["key"]))
        draw(CHOICES)

    figure = spec(traces, view, index, theme=st.context.theme.type or "light", width=measured_width("overview"))
    live(figure, key="overview", alt=describe(traces, view, index), on_choose=heard(choose), on_look=heard(look_again))


@fragment(key="toolbar")
def toolbar_alone():
    trace = layer()[1]
    changes = here() is not from_trained  # which has its own
    toolbar(trace, st.session_state.view, save, changes, long.part_of(trace))


@fragment(key="stage")
def stage():
    """What is shown of the chosen layer."""
    index, module = layer()[0], here()
    subject = Subject(looked_at(), index, source.settings(), source.spelled, source.unspelled, module.trace_of)
    with st.container(key="stage"):
        heads_and_average(subject, choose_and_mark, look_again)
    if not st.session_state.get("playing"):  # Back should not lead through every snapshot that was played
        source.write_address()
    long.carry_on()


def look_again():
    """Draw both pictures for another width or theme."""
    draw(["above", "stage"])


def choose_and_mark(choices):
    """Choose cells, and let the overview mark the head as well."""
    head = st.session_state.view.head
    choose_cells(choices)
    if st.session_state.view.head != head:
        draw(["above", "stage"])


@fragment(key="table")
def table():
    """What belongs to all heads, and to the chosen one beyond this picture; and what can be checked."""
    from mha_viz.analysis import choose, shown_trace

    index, trace = layer()
    traces, view = here().recording().traces, st.session_state.view
    if any(map(too_long, traces)):
        statistics_table(lambda: [for_table(trace)], view)
        st.caption("What compares all layers is left out: some are too long for maps of theirs to be whole.")
    else:
        head_panel(
            here(), traces, index, choose(shown_trace(changed_trace(trace, view)[0], view), view)
        )  # what the picture shows
        statistics_table(lambda: traces, view)
    long.carry_on()
    folded = st.expander("Validate this layer", key="checks", on_change="rerun")  # run while it is open
    if folded.open:
        with folded:
            checks()


page()
