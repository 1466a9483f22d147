"""The widgets of fields: each holds what the form of the source that is looked at holds, and says what the form becomes."""

import streamlit as st

from mha_viz.app import drawing
from mha_viz.app.drawing import STAGE, WHOLE, draw
from mha_viz.app.number_field import number_field
from mha_viz.app.session import looking
from mha_viz.settings.rules import choices_of

FEW = 3  # choices that stand side by side; more are a list
LONG = ("words", "text", "mask")  # in the names of fields whose text has lines


def field(name, widget, label, *, rerun=STAGE, take=None, shown=None, read=None, with_it=(), of=None, **options):
    """Draw the ``widget`` of the field ``name``, holding what the form says, and return that.

    ``shown`` and ``read`` are between what the form holds and what the widget does. The fields ``with_it`` go back to what they are at
    first when it changes. A field that only means something beside the present value of the field ``of`` names that. A change draws the
    fragments ``rerun`` anew. ``take(value)`` is called in place of keeping the value, for a field that others follow.
    """
    raw = looking().form.raw[name]
    about = None if of is None else lambda: looking().form.value(of)
    drawing.field(widget, label, name, shown(raw) if shown else raw, take_field, (name, read, rerun, with_it, take), about, **options)
    return looking().form.raw[name]


def take_field(value, name, read, rerun, with_it, take):
    """Keep what the widget of a field holds now, and draw what depends on it."""
    st.session_state.playing = False  # somebody looks at something else
    form = looking().form
    if take is not None:
        take(value)
    else:
        form.put(name, read(value) if read else value)
        form.reset(*with_it)
    draw(rerun)


def switch(key, on, label, take, help, rerun=WHOLE):
    """A checkbox that is no field of its own: ``take(on)`` changes those that it stands beside."""
    drawing.field(st.checkbox, label, key, on, take_switch, (take, rerun), help=help)
    return on


def take_switch(on, take, rerun):
    take(on)
    draw(rerun)


def plain_field(form, name):
    """The widget of any field, by the rule that it carries: a few choices side by side, more as a list, a tick, a number or a text."""
    choices, default = choices_of(form.of, name), form.defaults[name]
    if choices is not None and len(choices) <= FEW:
        return field(name, st.segmented_control, name, options=list(choices), required=True, width="stretch", rerun=WHOLE)
    if choices is not None:
        return field(name, st.selectbox, name, options=list(choices), rerun=WHOLE)
    if isinstance(default, bool):
        return field(name, st.checkbox, name, rerun=WHOLE)
    if isinstance(default, int | float) or "int" in str(form.of.__dataclass_fields__[name].type).split("tuple")[0]:
        return field(name, number_field, name, rerun=WHOLE)
    if any(part in name for part in LONG):
        return field(name, st.text_area, name, height=88, shown=lambda text: text or "", rerun=WHOLE)
    return field(name, st.text_input, name, shown=lambda text: text or "", rerun=WHOLE)
