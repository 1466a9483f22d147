"""What is shown of one Trace, whatever it comes from: the picture, and the numbers that belong to it."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.parts import long
from mha_viz.app.parts.changes import changes
from mha_viz.app.parts.messages import say_error, say_findings, say_notes, say_wrong_view
from mha_viz.app.parts.number_panel import number_panel
from mha_viz.app.parts.save import OnScreen, keep_for_saving
from mha_viz.app.parts.shapes import chosen_number, what_average_hides
from mha_viz.app.parts.toolbar import change
from mha_viz.app.visitor import visitor
from mha_viz.core.memory import too_long
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain
from mha_viz.settings import View, read, to_address
from mha_viz.settings.interventions import read_interventions, told
from mha_viz.settings.view import PLACE
from mha_viz.sources.base import Source


@dataclass(frozen=True, eq=False)
class Subject:
    """What a page looks at: the ``layer`` of a ``source``, the ``settings`` (a frozen dataclass) that the page has for it, and how
    another is had.

    ``spell`` writes settings as the query part of an address; ``unspell`` reads that and raises Wrong where it spells none;
    ``trace_of(settings, layer)`` makes a Trace. So A, which is pinned, can be kept in an address and had again.
    """

    source: Source
    layer: int
    settings: object
    spell: Callable
    unspell: Callable
    trace_of: Callable

    @property
    def trace(self):
        return self.source.traces[self.layer]


def heads_and_average(subject, choose_cells, on_look=None):
    """The picture, in which ``choose_cells(choices)`` hears what a person chooses, and the numbers that belong to it.

    ``on_look()`` hears of another width or theme.
    """
    from mha_viz.analysis import choose
    from mha_viz.components import live, measured_width
    from mha_viz.views import PAGE
    from mha_viz.views.shown import Shown

    view = st.session_state.view
    changed, wrong_change = changed_trace(subject.trace, view)
    trace = in_view(changed, view)
    st.session_state.pinnable = spelled(subject, view)
    choice = choose(trace, view)
    a, pinned, wrong_pin = pinned_trace(subject, view)
    if pinned is not None and not (pinned.has("mean_weights") and trace.has("mean_weights")):
        pinned = None  # long ones are compared once both are there
    shown = Shown(subject.source, trace, view, a=pinned)
    keep_for_saving(OnScreen(shown, name=f"attention-item{choice.item}", live=True))
    with st.container(key="findings"):
        if trace.tokens.sight is not None:
            long.say_size(changed)
        say_wrong_view()
        for wrong in wrong_change:
            say_error(wrong)
        say_notes(wrong_pin)
        if trace.tokens.sight is None:  # or the whole mask would have to be read
            say_findings(changed, subject.source.kind.seeded)
        if changed is not subject.trace:
            what = told(read_interventions(view.what_if))
            st.caption(
                f"What if: {plain(' '.join(what))} In this layer alone; the picture shows what it would do with the same input."
            )
    look = {"theme": st.context.theme.type or "light", "width": measured_width("picture")}
    figure, alt = PAGE.drawn(shown, **look)
    sight = trace.tokens.sight
    zooms = {} if sight is None or sight.exact else {"on_zoom": heard(long.zoom(trace))}
    live(
        figure, key="picture", alt=alt, on_choose=heard(lambda choices: choose_cells(long.placed(trace, choices))), on_reset=heard(let_go),
        save=st.session_state.get("saving"), **zooms, **({} if on_look is None else {"on_look": heard(on_look)}),
    )  # fmt: skip
    st.html(chosen_number(trace, choice, pinned) + what_average_hides(trace, choice))
    with st.container(key="compared"):
        if pinned is not None:
            changes(pinned, trace, a, in_full(subject.settings, subject.layer, view.what_if), choice)
    number_panel(shown, look)


def in_view(trace, view):
    """The Trace that the View shows of this one: its weights, or what they bring; of a long one what is in sight."""
    from mha_viz.analysis import shown_trace

    return long.seen(trace, view) if too_long(trace) else shown_trace(trace, view)


def for_table(trace):
    """The Trace, with what is changed in it, whose statistics a table shows."""
    view = st.session_state.view
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


def spelled(subject, view):
    """What is shown, as it is pinned: settings, layer, and what is changed in it."""
    place = urlencode(to_address(layer=subject.layer, what_if=view.what_if))
    return "&".join(part for part in (subject.spell(subject.settings), place) if part)


def pinned_trace(subject, view):
    """What A is, by name, and its Trace, each None where nothing is pinned; and a list of what is wrong with what is pinned."""
    if view.pinned is None:
        return None, None, []
    try:
        pairs = dict(parse_qsl(view.pinned, keep_blank_values=True))
        place = View(**{name: read(View, name, pairs.pop(name)) for name in PLACE if name in pairs})
        settings = subject.unspell(urlencode(pairs) if place != View() else view.pinned)
        trace, wrong = changed_trace(subject.trace_of(settings, place.layer), place, "changed_a")
        return in_full(settings, place.layer, place.what_if), in_view(trace, view), wrong
    except Wrong as wrong:
        return None, None, [wrong]


def in_full(settings, layer, what_if):
    """All that makes a Trace what it is, by name: for the words that say how A and B differ."""
    return vars(settings) | {"layer": layer, "what if": what_if}


def choose_cells(choices):
    """In a head's map a cell chooses the head as well, in the average's itself alone."""
    for choice in choices:
        head = choice["head"]
        change(head=st.session_state.view.head if head is None else head, cell=(choice["query"], choice["key"]))


def let_go():
    """Let go of the chosen cell, and of a part of a long map."""
    change(cell=None, rows=None, columns=None)
