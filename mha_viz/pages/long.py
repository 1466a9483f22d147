"""A layer whose maps are too long to be whole: its heads one after another, pooled, and a window of one of them cell by cell."""

import time
from dataclasses import replace
from html import escape
from weakref import WeakKeyDictionary

import streamlit as st

from mha_viz.core.attend import memory, readable_size, too_long
from mha_viz.pages.messages import say_wrong_view
from mha_viz.pages.toolbar import SCALE_WORDS, change, show
from mha_viz.settings import POOLINGS, SCALES

POOLING_WORDS = {"max": "largest of a block", "mean": "mean of a block"}
KEPT = 4  # batch items of a layer whose maps a session keeps, a few MB each
WIDEST = 512  # cells along a side of a window
SLICE = 1.0  # seconds after which what is there is drawn, and a button that was pressed meanwhile is heard
HALF = 544  # px of each of two pictures until the browser has told


def long_maps(trace):
    """The controls, the pictures, and at last the next heads: each run of the page computes some, until all are there or somebody
    stops."""
    from mha_viz.core.long import around, pooled, striking, window

    view = shown_view()
    st.session_state.pop("staged", None)  # nothing here is a fragment: every change draws the whole page
    N, H, L, S = trace.shape
    item = view.item if view.item < N else 0
    so_far = kept(trace, item)
    if not so_far:
        with st.spinner(f"The first of {H} heads …"):
            so_far[0] = next(pooled(trace, item=item))
    maps = [so_far[head] for head in sorted(so_far)]
    found = so_far.get(view.head, maps[0])
    controls(trace, item, found.head, maps)
    say_wrong_view()
    size = readable_size(memory(1, H, L, S, H * trace.call.q.shape[3]))
    st.caption(
        f"{L:,} queries × {S:,} keys: whole, the maps of one batch item would take {size}. Heads are pooled one after another, and "
        "their whole maps are never made; the window is exact."
    )
    rows, columns = around(found.pool, *(chosen_cell(view, found.pool) or striking(found)))
    rows, columns = (within(span or own, most) for span, own, most in ((view.rows, rows, L), (view.columns, columns, S)))
    pictures(trace, maps, found, window(trace, found.head, rows, columns, item=item))
    progress(trace, item, so_far)


def shown_view():
    """The View, its colours logarithmic for linear ones: beside the first rows, which share few keys, all others would be blank."""
    view = st.session_state.view
    return replace(view, scale="log") if view.scale == "linear" else view


def to_another_page(trace):
    """From a fragment of the page of whole maps: draw the other page where the Trace has become too long for these."""
    if too_long(trace):
        st.session_state.pop("staged", None)
        st.rerun()


def kept(trace, item):
    """The Pooled maps of one batch item so far, by head; those that were looked at longest ago are forgotten."""
    by_trace = st.session_state.setdefault("long", WeakKeyDictionary())  # which keeps no Trace that others let go
    of_trace = by_trace.setdefault(trace, {})
    maps = of_trace[item] = of_trace.pop(item, {})
    while len(of_trace) > KEPT:
        of_trace.pop(next(iter(of_trace)))
    return maps


def controls(trace, item, head, maps):
    view = shown_view()
    with st.container(horizontal=True, vertical_alignment="bottom", key="toolbar"):
        items = list(range(trace.shape[0]))
        show("item", st.selectbox, "batch item", item, options=items, format_func="batch item {}".format, width=132)
        heads = [one.head for one in maps]
        show("head", st.selectbox, "head", head, options=heads, format_func="head {}".format, width=110)
        show("pooling", st.selectbox, "pooling", view.pooling, options=list(POOLINGS), format_func=POOLING_WORDS.get, width=180)
        show("scale", st.selectbox, "scale", view.scale, options=list(SCALES[1:]), format_func=SCALE_WORDS.get, width=260)
        for name in ("rows", "columns"):
            side = {"rows": "queries", "columns": "keys"}[name]
            st.session_state[f"view_{name}"] = ", ".join(map(str, getattr(view, name) or ()))
            st.text_input(
                f"exact {side}", key=f"view_{name}", width=150, placeholder=f"{side}: 0, 128", label_visibility="collapsed",
                on_change=take_span, args=(name,),
                help=f"The {side} of the exact window: the first, and one beyond the last; at most {WIDEST}. "
                "Empty: around the place that was pressed.",
            )  # fmt: skip


def take_span(name):
    text = st.session_state[f"view_{name}"]
    change(**{name: tuple(part.strip() for part in text.split(",")) if text.strip() else None})


def within(span, most):
    """``span`` as far as there are cells, WIDEST at most."""
    start = min(span[0], most - 1)
    return start, min(span[1], most, start + WIDEST)


def chosen_cell(view, pool):
    """The chosen (query, key), None where none is or it is beyond the map."""
    query, key = view.cell or (None, None)
    return None if query is None or key is None or query >= pool.L or key >= pool.S else (query, key)


def pictures(trace, maps, found, window):
    """The chosen head whole and its window side by side, and below them every head that there is."""
    from mha_viz.components import live, measured_width
    from mha_viz.figures import long

    view, pool = shown_view(), found.pool
    (top, bottom), (left, right) = window.rows, window.columns
    cell = chosen_cell(view, pool)
    if cell is None or not (top <= cell[0] < bottom and left <= cell[1] < right):
        cell = (top + bottom) // 2, (left + right) // 2
    block = found.head, *pool.block(*cell)

    def press(choices):
        change(head=choices[-1]["head"], cell=pool.middle(choices[-1]["query"], choices[-1]["key"]), rows=None, columns=None)

    def choose(choices):
        change(cell=(top + choices[-1]["query"], left + choices[-1]["key"]), rows=window.rows, columns=window.columns)

    def zoom(rows, columns):
        """To what is in sight, cell by cell where that is not too much, else to the middle of it."""
        if rows is None:
            return change(rows=None, columns=None)
        spans = pool.cells(0, *rows), pool.cells(1, *columns)
        middle = tuple((start + stop) // 2 for start, stop in spans)
        fitting = [span if span[1] - span[0] <= WIDEST else None for span in spans]
        return change(cell=middle, rows=fitting[0], columns=fitting[1])

    def draw(key, make, *what, first_width=HALF, **heard):
        width = measured_width(key) if "width" in st.session_state.get(key, {}) else first_width
        figure = make(trace.tokens, *what, view, theme=st.context.theme.type or "light", width=width)
        live(figure, key=key, alt=long.describe(trace, maps, found, view), **heard)

    whole, part = st.columns(2)
    with whole:
        draw("long_head", long.pooled_head, maps, block, on_choose=press, on_zoom=zoom)
    with part:
        draw("long_window", long.exact_head, window, cell, on_choose=choose)
        st.html(told(trace, window, cell))
    draw("long_heads", long.every_head, maps, block, first_width=2 * HALF, on_choose=press)


def told(trace, window, cell):
    """What the chosen cell is, in words."""
    from mha_viz.figures.labels import numbered

    (query, key), item = cell, window.item
    names = (escape(numbered(i, names[item][i])) for i, names in ((query, trace.query_tokens), (key, trace.key_tokens)))
    weight = window.p[query - window.rows[0], key - window.columns[0]]
    said = "undefined: no key left" if weight != weight else f"weight <b>{weight:.6f}</b>"
    return f"<p>Head {window.head}, query {next(names)} → key {next(names)}: {said}</p>"


def progress(trace, item, so_far):
    """How many heads there are, and the next: somebody may stop after any, and go on from there."""
    from mha_viz.core.long import pooled

    state, H = st.session_state, trace.shape[1]
    missing = [head for head in range(H) if head not in so_far]
    if not missing:
        return
    st.progress(len(so_far) / H, f"{len(so_far)} of {H} heads")
    if state.get("long_stopped"):
        st.button("Go on", key="long_go", on_click=stop, args=(False,), icon=":material/play_arrow:")
        return
    st.button("Stop", key="long_stop", on_click=stop, args=(True,), icon=":material/stop:", help="The heads so far stay.")
    until = time.monotonic() + SLICE
    for one in pooled(trace, missing, item=item):
        so_far[one.head] = one
        if time.monotonic() > until:
            break
    st.rerun()


def stop(stopped):
    st.session_state.long_stopped = stopped
