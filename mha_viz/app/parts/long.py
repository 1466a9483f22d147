"""A layer whose maps are too long to be whole: what is in sight of them, made a slice of time after another while it is looked at."""

import time
from dataclasses import replace
from functools import partial

import streamlit as st

from mha_viz.app import task
from mha_viz.app.drawing import CHOICES, draw, field, heard
from mha_viz.app.parts.toolbar import change, change_all, listed, typed_or
from mha_viz.app.session import looking
from mha_viz.app.visitor import visitor
from mha_viz.core.memory import memory, readable_size, too_long
from mha_viz.core.sight import CELLS
from mha_viz.settings import POOLINGS, View, parsed

POOLING_WORDS = {"max": "its largest weight", "mean": "its mean"}
KEPT = 4  # layers, batch items and parts of a map that a session keeps the maps of, a few MB each
SLICE = 1.0  # seconds after which what is there is drawn: oftener, and a browser that draws more slowly hears no press of Stop
MAPS = "maps"
FIRST = 0.25  # seconds before somebody is told that a first head takes time


def part_of(trace):
    """What draws the controls of which part of a long Trace is in sight; None of one that is shown whole."""
    return partial(part, trace.shape) if too_long(trace) else None


def part(shape):
    """Which queries and keys of maps of this shape are in sight, and what stands for a block of them."""
    view = looking().view
    for name, side in (("rows", "queries"), ("columns", "keys")):
        held = typed_or(name, ", ".join(map(str, getattr(view, name) or ())))
        about = f"The first of them, and one beyond the last, as in “0, 128”. Up to {CELLS} are shown each, more in blocks. Empty: all."
        field(st.text_input, side, f"view_{name}", held, take_span, (name, shape), placeholder="all", help=about)
    listed("pooling", st.radio, "a block shows", view.pooling, POOLINGS, POOLING_WORDS, horizontal=True)


def take_span(text, name, shape):
    state, before = st.session_state, looking().display
    change(**{name: parsed(View, name, text) or None})
    beyond = [wrong for wrong in looking().view.misfits(*shape) if wrong.argument == name]
    if state.wrong_view is None and beyond:
        looking().display, state.wrong_view = before, beyond[0]
    if state.wrong_view is not None:
        state.typed_view = {name: text}
    draw(CHOICES)


def seen(trace, view, statistics=False):
    """The Trace of what the View has in sight, as far as it has come: the first head at least. All ``statistics`` may be wanted."""
    from mha_viz.analysis.streamed import ANY

    maps = maps_of(trace, view)
    maps.wanted = ANY if statistics else view.order
    visitor().holds.setdefault("in_sight", []).append(maps)
    begun = time.monotonic()
    while not maps.maps and time.monotonic() - begun < FIRST:
        next(maps.steps)
    if not maps.maps:
        with st.spinner(f"The first of {trace.shape[1]} heads …"):
            while not maps.maps:
                next(maps.steps)
    return maps.seen(view.pooling)


def maps_of(trace, view):
    """The LongMaps of this Trace in this View, begun where there are none; those that were looked at longest ago are forgotten."""
    from mha_viz.analysis.long_maps import LongMaps, looked_at

    holds, about = visitor().holds, looked_at(trace, view)
    kept = holds.get("long", [])
    maps = next((one for one in kept if one.trace is trace and one.about == about), None)
    if maps is None:
        alike = (one for one in kept if one.trace is trace and (one.item, one.by_norms) == (about[0], about[3]))
        maps = LongMaps(trace, view, statistics=next((one.statistics for one in alike), None))
    holds["long"] = [*(one for one in kept if one is not maps), maps][-KEPT:]
    return maps


def layers(traces, view):
    """Of each long layer the Trace of its maps in small, None where they are not there yet: they come after what is in sight of one."""
    from mha_viz.analysis.long_maps import in_small, looked_at

    holds, whole = visitor().holds, replace(view, rows=None, columns=None)
    kept = [maps for maps in holds.get("small", []) if any(maps.trace is trace for trace in traces)]
    found = []
    for trace in traces:
        about = looked_at(trace, whole) if too_long(trace) else None
        maps = next((one for one in kept if one.trace is trace and one.about == about), None)
        if maps is None and about is not None:
            maps = in_small(trace, view)
            kept.append(maps)
        found.append(maps)
    holds["small"], holds["later"] = kept, [maps for maps in found if maps is not None]
    for i, maps in enumerate(found):
        found[i] = traces[i] if maps is None else maps.seen("max") if maps.complete else None
    return found


def begin():
    """At the beginning of a page: nothing is in sight yet."""
    st.session_state.whole_page = True
    visitor().holds |= {"in_sight": [], "later": []}


def carry_on():
    """At the end of a fragment that is drawn alone: what came in sight is gone on with by the whole page."""
    if not st.session_state.whole_page and unfinished():
        st.rerun()


def go_on(place):
    """At the end of a page: show the progress of what is in sight in ``place``, and do a slice of it, unless somebody stopped it."""
    missing = unfinished()
    st.session_state.whole_page = False
    if not missing:
        return
    maps = missing[0]
    now = task.task(MAPS)
    if now is None or now.steps is None:
        now = task.begin(MAPS, task.Done(1), coming(), resumes=True)
    with place, st.container(horizontal=True, vertical_alignment="center", key="long_progress"):
        bar = st.progress(maps.done, told(maps))
        task.stop_or_go(MAPS)

    def enough():
        bar.progress(maps.done, told(maps))
        return maps.complete

    if now.going:
        now.run(SLICE, enough)
        st.rerun()


def coming():
    """The steps of what is in sight when each is taken, until all of it is there."""
    while missing := unfinished():
        yield next(missing[0].steps)


def unfinished():
    """The LongMaps that are not there yet, in the order in which they come."""
    holds = visitor().holds
    return [maps for maps in (*holds.get("in_sight", ()), *holds.get("later", ())) if not maps.complete]


def say_size(trace):
    """Why the maps of this Trace are not there whole, and how to look closer, or at all of them again; nothing while they are made."""
    if unfinished():
        st.empty()  # or what was said of another layer would stand there meanwhile
        return
    from mha_viz.analysis.long_maps import looked_at

    N, H, L, S = trace.shape
    items = f"{N} batch items" if N > 1 else "one batch item"
    a_part = any(looked_at(trace, looking().view)[1:3])
    with st.container(horizontal=True, vertical_alignment="center", key="long_size"):
        if a_part:
            st.button("Whole map", key="long_whole", on_click=heard(change_all), kwargs={"rows": None, "columns": None})
        size = readable_size(memory(N, H, L, S, H * trace.call.q.shape[3]))
        how = "Esc in it, or Whole map, leads back." if a_part else "Drag over a large map to look closer."
        st.caption(f"{L:,} × {S:,}: whole, the maps of {items} would take {size}. {how}", width="content")


def told(maps):
    count, H = len(maps.maps), len(maps.heads)
    if not maps.with_average:
        return f"Every layer in small: {count} of {H} heads of {maps.trace.name}"
    if count < H:
        return f"{count} of {H} heads"
    return "The average of all heads, and how far each is from it" if maps.average is None else "Statistics of every head"


def zoom(trace):
    """What hears of a zoom into the picture of what is in sight of this Trace: these cells are in sight then."""

    def hear(rows, columns):
        sight = trace.tokens.sight
        change_all(rows=sight.span(0, *rows), columns=sight.span(1, *columns))

    return hear


def placed(trace, choices):
    """The same choices by the queries and keys of the whole map, where ``trace`` shows what is in sight of it."""
    tokens, sides = trace.tokens, {"query": 0, "key": 1}
    return [
        choice | {name: None if choice[name] is None else tokens.place(side, choice[name]) for name, side in sides.items()}
        for choice in choices
    ]
