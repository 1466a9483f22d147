"""Every head of a source: all its layers in small where it has several, and the heads of one beside their average."""

import streamlit as st

from mha_viz.app import drawing
from mha_viz.app.drawing import CHOICES, draw, heard
from mha_viz.app.fragment import fragment
from mha_viz.app.looked_at import begin, choose_layer, current, say_what_is_wrong
from mha_viz.app.panels import panel_of
from mha_viz.app.parts import long
from mha_viz.app.parts.checked import Checked, checked
from mha_viz.app.parts.head_panel import head_panel
from mha_viz.app.parts.save import save
from mha_viz.app.parts.stage import changed_trace, choose_cells, for_table, heads_and_average, with_changes
from mha_viz.app.parts.statistics_table import statistics_table
from mha_viz.app.parts.toolbar import change, toolbar
from mha_viz.app.picture import theme
from mha_viz.app.session import looking, write_address
from mha_viz.core.memory import too_long
from mha_viz.export.markdown import plain

OVERVIEW = 164  # px that all layers in small should take above the picture


def page(name):
    if not begin(name, follow=("above", "table", "layer")):
        return
    long.begin()
    with st.sidebar:
        layer()
    head, tools, progress, shown, below = drawing.rooms("above", "toolbar", "progress", "stage", "table")
    with head:
        above()
    with tools:
        toolbar_alone()
    with shown:
        stage()
    with below:
        table()
    drawing.drawn()
    long.go_on(progress)


@fragment(key="layer")
def layer():
    """Which layer is looked at, where there are several: a click in the overview chooses one as well."""
    looked = current()
    if len(looked.of.traces) > 1:
        choose_layer(looked, CHOICES)


@fragment(key="above")
def above():
    """What is wrong with what is set, what is to be known of the source, and its layers and heads as small maps."""
    looked = current()
    panel, of = panel_of(looking().kind), looked.of
    say_what_is_wrong(looked)
    panel.above(looked)
    if of.cause is not None:
        st.error(f"**First not finite here.** {plain(of.cause.sentence)}", icon=":material/error:")
    if len(of.traces) == 1:
        return
    if too_long(looked.trace):
        overview_in_small(of.traces, looked.index)
    else:
        overview(of.traces, looked.index)


def overview(traces, index):
    from mha_viz.analysis import shown_trace

    view = looking().view
    size = traces[index].shape[1:]
    traces = [changed_trace(trace, view)[0] if i == index else trace for i, trace in enumerate(traces)]
    draw_overview([shown_trace(trace, view) if trace.shape[1:] == size else trace for trace in traces], index)


def overview_in_small(traces, index):
    """The same of layers whose maps are too long to be whole, while it is open: each takes as long as the one that is looked at."""
    folded = st.expander("Every head of every layer", key="every_layer", on_change="rerun")
    if not folded.open:
        return
    view = looking().view
    traces = long.layers([changed_trace(trace, view)[0] if i == index else trace for i, trace in enumerate(traces)], view)
    with folded:
        if traces[index] is None:
            st.caption("The layer that is looked at comes first.")
        else:
            draw_overview(traces, index)
    long.carry_on()


def draw_overview(traces, index):
    from mha_viz.components import live, measured_width
    from mha_viz.figures.overview import describe, has_gaps, place_of, spec
    from mha_viz.figures.parts import Parts

    view = looking().view

    def choose(choices):
        layer, head = place_of(traces, index, choices[-1]["head"])
        (choice,) = long.placed(traces[index], choices[-1:])
        change(layer=layer, head=head, cell=(choice["query"], choice["key"]))
        draw(CHOICES)

    parts = Parts(legend=has_gaps(traces))  # the picture below explains the rest
    figure = spec(traces, view, index, theme(), measured_width("overview"), parts, OVERVIEW)
    with st.container(key="overview_box"):  # as high as leaves the picture on the first screen
        live(figure, key="overview", alt=describe(traces, view, index), on_choose=heard(choose), on_look=heard(look_again))


@fragment(key="toolbar")
def toolbar_alone():
    """The controls of the view: drawn anew where their choices change, and otherwise left as the person sees them."""
    trace = current().trace
    toolbar(trace, looking().view, save, not panel_of(looking().kind).own_what_if, long.part_of(trace))


@fragment(key="stage")
def stage():
    """What is shown of the chosen layer. The controls of the view draw this alone."""
    with st.container(key="stage"):
        heads_and_average(current(), choose_and_mark, look_again)
    write_address()
    long.carry_on()


def look_again():
    """Draw both pictures for another width or theme."""
    draw(["above", "stage"])


def choose_and_mark(choices):
    """Choose cells, let the overview mark the head as well, and let the source hear of those that were pressed."""
    head = looking().view.head
    choose_cells(choices)
    cells = [(c["query"], c["key"]) for c in choices if c["pressed"] and None not in (c["query"], c["key"])]
    if panel_of(looking().kind).pressed(cells):
        st.rerun()
    if looking().view.head != head:
        draw(["above", "stage"])


@fragment(key="table")
def table():
    """What the source says besides, what belongs to all heads, and to the chosen one beyond this picture; and what can be checked."""
    from mha_viz.analysis import choose, shown_trace

    looked, view = current(), looking().view
    looked.panel.below(looked)
    traces = looked.of.traces
    if any(map(too_long, traces)):
        statistics_table(lambda: [for_table(looked.trace)], view)
        if len(traces) > 1:
            st.caption("What compares all layers is left out: some are too long for maps of theirs to be whole.")
    else:
        changed = shown_trace(changed_trace(looked.trace, view)[0], view)  # what the picture shows
        head_panel(looked, choose(changed, view))
        statistics_table(lambda: traces if len(traces) > 1 else [for_table(looked.trace)], view)
    long.carry_on()
    folded = st.expander("Validate this layer", key="checks", on_change="rerun")  # run while it is open
    if folded.open:
        with folded:
            checks()


def checks():
    """The checks of the layer that is looked at, with what is changed in it, and of its model, run while one watches."""
    looked, what_if = with_changes(current())
    checked(Checked(looked.of, looked.index, what_if))
