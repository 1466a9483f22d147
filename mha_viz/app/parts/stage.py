"""What is shown of one Trace, whatever it comes from: the picture, and the numbers that belong to it."""

from dataclasses import replace

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.parts import long
from mha_viz.app.parts.changes import changes
from mha_viz.app.parts.messages import say_error, say_findings, say_notes
from mha_viz.app.parts.number_panel import number_panel
from mha_viz.app.parts.save import OnScreen, keep_for_saving
from mha_viz.app.parts.shapes import chosen_number, what_average_hides
from mha_viz.app.parts.toolbar import change, say_wrong_view
from mha_viz.app.picture import theme
from mha_viz.app.session import looking
from mha_viz.app.visitor import visitor
from mha_viz.core.memory import too_long
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain
from mha_viz.settings.interventions import read_interventions, told
from mha_viz.sources.base import layer_of
from mha_viz.sources.source import as_pinned, pinned_settings


def heads_and_average(looked, choose_cells, on_look=None):
    """The picture of a LookedAt, in which ``choose_cells(choices)`` hears what a person chooses, and the numbers that belong to it.

    ``on_look()`` hears of another width or theme.
    """
    from mha_viz.analysis import choose
    from mha_viz.components import live, measured_width
    from mha_viz.views import PAGE
    from mha_viz.views.shown import Shown

    view = looking().view
    changed, wrong_change = changed_trace(looked.trace, view)
    trace = in_view(changed, view)
    st.session_state.pinnable = as_pinned(looked.settings, looked.index, view.what_if)
    choice = choose(trace, view)
    a, pinned, wrong_pin = pinned_trace(looked, view)
    if pinned is not None and not (pinned.has("mean_weights") and trace.has("mean_weights")):
        pinned = None  # long ones are compared once both are there
    shown = Shown(looked.of, trace, view, a=pinned)
    keep_for_saving(OnScreen(shown, name=f"attention-item{choice.item}", live=True))
    with st.container(key="findings"):
        if trace.tokens.sight is not None:
            long.say_size(changed)
        say_wrong_view()
        for wrong in wrong_change:
            say_error(wrong)
        say_notes(wrong_pin)
        if trace.tokens.sight is None:  # or the whole mask would have to be read
            say_findings(changed, looked.of.kind.seeded)
        if changed is not looked.trace:
            what = told(read_interventions(view.what_if))
            st.caption(
                f"What if: {plain(' '.join(what))} In this layer alone; the picture shows what it would do with the same input."
            )
    look = {"theme": theme(), "width": measured_width("picture")}
    figure, alt = PAGE.drawn(shown, **look)
    sight = trace.tokens.sight
    zooms = {} if sight is None or sight.exact else {"on_zoom": heard(long.zoom(trace))}
    live(
        figure,
        key="picture",
        alt=alt,
        on_choose=heard(lambda choices: choose_cells(long.placed(trace, choices))),
        on_reset=heard(let_go),
        save=st.session_state.get("saving"),
        **zooms,
        **({} if on_look is None else {"on_look": heard(on_look)}),
    )
    st.html(chosen_number(trace, choice, pinned) + what_average_hides(trace, choice))
    with st.container(key="compared"):
        if pinned is not None:
            changes(pinned, trace, a, in_full(looked.settings, looked.index, view.what_if), choice)
    number_panel(shown, look)


def in_view(trace, view):
    """The Trace that the View shows of this one: its weights, or what they bring; of a long one what is in sight."""
    from mha_viz.analysis import shown_trace

    return long.seen(trace, view) if too_long(trace) else shown_trace(trace, view)


def for_table(trace):
    """The Trace, with what is changed in it, whose statistics a table shows."""
    view = looking().view
    changed, _ = changed_trace(trace, view)
    return long.seen(changed, view, statistics=True) if too_long(changed) else changed


def changed_trace(trace, view, kept_as="changed"):
    """The Trace with what the View changes in it, and a list of what is wrong with that; the Trace as it is where something is."""
    from mha_viz.core.intervention import changed
    from mha_viz.core.long import check_off

    asked = read_interventions(view.what_if)
    if view.layer >= len(asked):
        return trace, []
    holds = visitor().holds
    kept = holds.get(kept_as)
    if kept is None or kept[:2] != (trace, view.what_if):
        try:
            if too_long(trace):
                check_off(asked[view.layer].off)
            kept = holds[kept_as] = trace, view.what_if, changed(trace, asked[view.layer])
        except Wrong as wrong:
            return trace, [wrong]
    return kept[2], []


def with_changes(looked):
    """(the LookedAt with what the View changes in its layer, that as text); as it is, and "", where nothing is changed."""
    view = looking().view
    changed, _ = changed_trace(looked.trace, view)
    if changed is looked.trace:
        return looked, ""
    traces = [changed if i == looked.index else trace for i, trace in enumerate(looked.of.traces)]
    return replace(looked, of=replace(looked.of, traces=tuple(traces))), view.what_if


def pinned_trace(looked, view):
    """What A is, by name, and its Trace, each None where nothing is pinned; and a list of what is wrong with what is pinned."""
    if view.pinned is None:
        return None, None, []
    try:
        settings, place = pinned_settings(looked.of.kind, view)
        of = looked.other(settings)
        if of is None:
            raise Wrong("pinned", settings.file, "is not open in this session: open the file again.", [{"pinned": None}])
        trace, wrong = changed_trace(layer_of(of, place.layer), place, "changed_a")
        return in_full(settings, place.layer, place.what_if), in_view(trace, view), wrong
    except Wrong as wrong:
        return None, None, [wrong]


def in_full(settings, layer, what_if):
    """All that makes a Trace what it is, by name: for the words that say how A and B differ."""
    return vars(settings) | {"layer": layer, "what if": what_if}


def choose_cells(choices):
    """In a head's map a cell chooses the head as well, in the average's itself alone."""
    for choice in choices:
        head = {} if choice["head"] is None else {"head": choice["head"]}
        change(**head, cell=(choice["query"], choice["key"]))


def let_go():
    """Let go of the chosen cell, and of a part of a long map."""
    change(cell=None, rows=None, columns=None)
