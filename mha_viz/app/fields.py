"""The widgets of fields: each holds what the form of the source that is looked at holds, and says what the form becomes."""

import streamlit as st

from mha_viz.app import drawing
from mha_viz.app.drawing import STAGE, WHOLE, draw
from mha_viz.app.number_field import number_field
from mha_viz.app.session import PLAYING, looking
from mha_viz.app.task import end
from mha_viz.settings.rules import choices_of, has_lines, is_optional, type_of

FEW = 3  # choices that stand side by side; more are a list
NONE = "—"  # the choice of a list that None cannot be


def field(name, widget, label, *, rerun=STAGE, take=None, shown=None, read=None, with_it=(), of=None, **options):
    """Draw the ``widget`` of the field ``name``, holding what the form says, and return that.

    ``shown`` and ``read`` are between what the form holds and what the widget does. The fields ``with_it`` go back to what they are at
    first when it changes. A field that only means something beside the present value of the field ``of`` names that. A change draws the
    fragments ``rerun`` anew. ``take(value)`` is called in place of keeping the value, for a field that others follow.
    """
    raw = looking().form.raw[name]
    about = None if of is None else lambda: looking().form.value(of)
    drawing.field(
        widget, label, name, shown(raw) if shown else raw, take_field, (name, read, rerun, with_it, take), about, **options
    )
    return looking().form.raw[name]


def take_field(value, name, read, rerun, with_it, take):
    """Keep what the widget of a field holds now, and draw what depends on it."""
    end(PLAYING)  # somebody looks at something else
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
    """The widget of any field, by its type and the rule that it carries: a few choices side by side, more as a list, a tick, a number or
    a text. Where None is right as well, an empty widget means that."""
    of, none = type_of(form.of, name), is_optional(form.of, name)
    choices = choices_of(form.of, name)
    if choices is None and of is bool and none:
        choices = (True, False)
    if choices is not None:
        named = {"options": list(choices), "format_func": in_words, "rerun": WHOLE}
        if len(choices) <= FEW:
            return field(name, st.segmented_control, name, required=not none, width="stretch", **named)
        if none:
            named["options"].insert(0, NONE)
            named |= {
                "shown": lambda value: NONE if value is None else value,
                "read": lambda value: None if value == NONE else value,
            }
        return field(name, st.selectbox, name, **named)
    if of is bool:
        return field(name, st.checkbox, name, rerun=WHOLE)
    if of in (int, float):
        return field(name, number_field, name, placeholder="none" if none else None, rerun=WHOLE)
    text = {"shown": lambda text: text or "", "placeholder": "none" if none else None, "rerun": WHOLE}
    if has_lines(form.of, name):
        return field(name, st.text_area, name, height=88, **text)
    return field(name, st.text_input, name, **text)


def in_words(choice):
    if isinstance(choice, bool):  # which equals 1 or 0
        return "yes" if choice else "no"
    return "none" if choice == NONE else str(choice)
