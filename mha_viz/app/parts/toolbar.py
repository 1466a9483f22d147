"""The row above the picture: every control of how it is shown. Each holds what the View says, and says what the View becomes."""

from dataclasses import replace

import streamlit as st

from mha_viz.app.drawing import CHOICES, PICTURE, STAGE, draw, field, heard
from mha_viz.app.parts.messages import say_with_mends
from mha_viz.app.parts.what_if import what_if
from mha_viz.app.session import looking
from mha_viz.core.rules import Wrong
from mha_viz.settings import ARRANGEMENTS, COLORS, PICTURES, SCALES, WEIGHTINGS, View, parsed
from mha_viz.settings.interventions import read_interventions

ARRANGEMENT_WORDS = {"pair": "pair", "all": "all", "one": "one"}
SCALE_WORDS = {
    "auto": "automatic: linear, or logarithmic where a few rows or blocks would leave the rest blank",
    "linear": "linear",
    "log": "logarithmic",
    "percentile": "clipped at the 99th percentile",
    "row": "each row to its own maximum",
}
WEIGHTING_WORDS = {"weights": "attention weights", "softmax": "softmax, before later changes", "norms": "value-norm weighted"}
WEIGHTING_HELP = {
    "softmax": "Dropout, or the model itself, changed the weights after the softmax: see what it gave.",
    "norms": "A large weight on a short vector brings little: weight × ‖v · Wᴼ‖, each row divided by its sum (Kobayashi et al. 2020).",
}
COLOR_WORDS = {"ink": "ink", "viridis": "Viridis", "cividis": "Cividis", "grey": "grey"}


def choose_item(trace, item, width, wide, label_visibility="collapsed", rerun=PICTURE):
    """The choice of a batch item, ``wide`` where items are parts of a whole and have names."""
    parts = trace.tokens.parts
    options = {"options": list(range(trace.shape[0])), "width": width if parts is None else wide}
    words = str if parts is None and label_visibility == "visible" else trace.tokens.item_name
    show("item", st.selectbox, "batch item", item, label_visibility, rerun, format_func=words, **options)


def toolbar(trace, view, save, can_change=True, part=None):
    """Draw the controls; ``save()`` draws what is in the popover of that name, ``part()`` what says which part of a long map is in sight,
    where it is one. ``can_change`` offers to change the layer that is shown."""
    N, H = trace.shape[:2]
    item = view.item if view.item < N else 0
    with st.container(horizontal=True, vertical_alignment="center", key="toolbar"):
        choose_item(trace, item, 124, 250)
        words = orders()
        show("order", st.selectbox, "order", view.order, rerun=PICTURE, options=list(words), format_func=words.get, width=152)
        comparing = view.pinned is not None  # which has one picture of its own
        either("arrangement", view.arrangement, ARRANGEMENTS, ARRANGEMENT_WORDS, comparing)
        either("picture", view.picture, PICTURES, {"maps": "maps", "lines": "lines"}, comparing)
        popover("Heads", "heads", subset, view, H)
        popover("Scale", "scale", scale, trace, view)
        if part is not None:
            popover("In sight", "part", part)
        popover("Save", "save", save)
        if can_change:
            popover("What if", "what_if", change_layer, trace, view)
        if view.pinned is None:
            st.button("Pin as A", on_click=heard(pin), help="Keep this as A; change anything, and see A, B and B − A.")
        else:
            st.button("Unpin A", on_click=heard(change_all), kwargs={"pinned": None})
        about = "Reset the view: heads, order, scale, zoom and cell. Settings stay. Esc in the picture lets go of the cell."
        st.button("Reset view", on_click=heard(reset), help=about)


def change_layer(trace, view):
    """What if: in the layer that is shown alone, since nobody can tell here what the layers after it would make of it."""
    H = trace.shape[1]

    def put(text):
        for one in read_interventions(text):
            one.check(H, trace.num_positions)
        looking().change(what_if=text)
        draw(CHOICES)  # in the toolbar stands what was wrong before, and what can be undone

    what_if(view.what_if, {view.layer: H}, put, lambda: looking().view.layer)


def orders():
    """The orders of heads by name, in words."""
    from mha_viz.analysis.statistics import STATISTICS

    return {"difference": "order: difference", "index": "order: number", "listed": "order: as listed"} | {
        name: f"order: {statistic.label}" for name, statistic in STATISTICS.items() if name != "difference"
    }


def subset(view, H):
    every = list(range(H))
    shown = every if view.heads is None else [head for head in view.heads if head < H] or every
    show("heads", st.pills, "heads shown", shown, "visible", PICTURE, options=every, selection_mode="multi")
    st.button(f"all {H} heads", on_click=heard(change_all), kwargs={"heads": None})


def scale(trace, view):
    from mha_viz.analysis import why_not_weighted

    missing = {name: why_not_weighted(trace, name) for name in WEIGHTINGS}
    there = [name for name, reason in missing.items() if reason is None]
    weighting = view.weighting if view.weighting in there else "weights"
    about = " ".join(
        help if name in there else f"Not here, {WEIGHTING_WORDS[name]}: {missing[name]}."
        for name, help in WEIGHTING_HELP.items()
    )
    alone = {"disabled": len(there) == 1, "help": about}
    listed("weighting", st.radio, "cells", weighting, there, WEIGHTING_WORDS, rerun=STAGE, **alone)
    listed("scale", st.radio, "colours", view.scale, SCALES, SCALE_WORDS)
    set_now = "" if view.limits is None else ", ".join(f"{limit:g}" for limit in view.limits)
    about = "The weights at which the colours begin and end, as in “0, 0.5”: a colour then means the same in every picture."
    show("limits", st.text_input, "limits", set_now, "visible", PICTURE, placeholder="automatic", help=about)
    listed("colors", st.selectbox, "colour map", view.colors, COLORS, COLOR_WORDS)


def listed(name, widget, label, value, options, words, rerun=PICTURE, **more):
    """A choice of one of a few ``options``, each told by its ``words``, under its label."""
    show(name, widget, label, value, "visible", rerun, options=list(options), format_func=words.get, **more)


def popover(label, name, draw, *args):
    """A popover in which ``draw(*args)`` draws only while it is open: a widget that nobody sees costs every rerun."""
    shown = st.popover(label, key=f"popover_{name}", on_change="rerun")
    if shown.open:
        with shown:
            draw(*args)


def show(name, widget, label, value, label_visibility="collapsed", rerun=None, **options):
    """The control of the Display's field ``name``, holding ``value``, or what was typed there and breaks a rule. A change draws its own
    fragment anew, or those of ``rerun``."""
    field(
        widget, label, f"view_{name}", typed_or(name, value), read, (name, rerun), label_visibility=label_visibility, **options
    )


def typed_or(name, value):
    """What was typed into the control ``name`` of the view and breaks a rule; ``value`` where nothing does."""
    return st.session_state.get("typed_view", {}).get(name, value)


def either(name, value, options, words, disabled=False):
    options = {"options": list(options), "format_func": words.get, "required": True, "disabled": disabled, "rerun": PICTURE}
    show(name, st.segmented_control, name, value, **options)


def read(value, name, rerun=None):
    """Take one field of the Display from its control; what breaks a rule is said and stays there, and the Display as it was."""
    given = value
    if name == "limits":
        given = parsed(View, name, value.replace(";", ",")) or None
    elif name == "heads":
        given = tuple(value) or None
    change(**{name: given})
    if st.session_state.wrong_view is not None:
        st.session_state.typed_view = {name: value}
    draw(rerun)


def change(**values):
    """Change fields of the Display; what breaks a rule is said, and changes nothing. A head that is chosen is shown from then on, where
    it was none of those that are."""
    look = looking()
    heads, head = look.view.heads, values.get("head")
    if heads is not None and head is not None and head not in heads:
        values = {"heads": (*heads, head)} | values
    try:
        look.change(**values)
        st.session_state.wrong_view = None
        st.session_state.typed_view = {}
    except Wrong as wrong:
        st.session_state.wrong_view = wrong


def change_all(**values):
    """Change the View where the toolbar itself says something else then."""
    change(**values)
    draw(CHOICES)


def say_wrong_view(*fields):
    """Say what a control of the view was given and cannot take, of these ``fields`` alone where any are named; the view stays as it was."""
    wrong = st.session_state.get("wrong_view")
    if wrong is not None and (not fields or wrong.argument in fields):
        say_with_mends(wrong, lambda right: change_all(**right), key="wrong_view")


def pin():
    """Keep what is shown as A."""
    change_all(pinned=st.session_state.pinnable)


def reset():
    look = looking()
    look.display = replace(look.display, view=first_view(look.view))
    st.session_state.wrong_view = None
    st.session_state.typed_view = {}
    draw(CHOICES)


def first_view(view):
    """The View that a person sees first of this item, with what is changed and compared left as it is."""
    kept = ("layer", "item", "what_if", "pinned")
    return View(**{name: getattr(view, name) for name in kept})
