"""How a control is heard: by the form in which it was drawn, and by no other; and what is drawn anew after that.

A browser learns late what a page has become. A control that somebody presses may have gone by then: its source was left, its file closed,
another address taken over. So every callback of every page goes through ``heard``, and each page begins another form where the
controls that it draws are about something else.

A page is drawn in fragments, so that a change draws what it concerns alone. A browser that asks for the whole page throws away what was on
its way to it, and must get the whole page; one that asks for a fragment has all the others, once the page was ``drawn``.
"""

import itertools
import logging
from contextlib import contextmanager
from threading import RLock

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

from mha_viz.app.number_field import number_field, typed, written

PICTURE = ["stage"]  # the fragment of what is shown
STAGE = ["above", "stage"]  # and what is said of the settings above it
CHOICES = ["above", "toolbar", "stage"]  # and the toolbar, where there are other items or heads to choose from
SIZES = ["sizes", *CHOICES]  # and the sidebar's embed_dim, num_heads and the rule between them
WHOLE = ()  # every part of the page

_forms = itertools.count(1)
_log = logging.getLogger(__name__)


def renew():
    """Begin another form: controls that were drawn before are not heard any more. The whole page has to be drawn after it."""
    st.session_state.form = next(_forms)


def field(widget, label, key, value, act, args=(), of=None, **options):
    """Draw the ``widget`` called ``key``, holding ``value``. A change calls ``act(value, *args)``, as ``heard`` does; the value of a
    number field is the number, if what is typed there is one."""
    is_number = widget is number_field
    value, read = (written(value), typed) if is_number else (value, None)
    return control(widget, label, key, value, on_change=heard(act, key, of, read), args=args, **options)


def control(widget, label, key, value, **options):
    """Draw the ``widget`` called ``key``, holding ``value``.

    The value is the widget's default as well. What the session's state sets is sent once, and a browser that hears of two runs at a time
    (somebody clicked a link twice) draws the later one alone: it would show the default of Streamlit's, and send that back.
    """
    give(key, value)
    return widget(label, key=key, **default_of(widget, value, options), **options)


def default_of(widget, value, options):
    """The option of a ``widget`` that makes ``value`` its default."""
    name = widget.__name__
    if name in ("selectbox", "radio"):
        choices = list(options["options"])
        return {"index": choices.index(value) if value in choices else None}
    return {"default" if name in ("segmented_control", "pills") else "value": value}


def heard(act, key=None, of=None, read=None):
    """The callback of a control that is drawn now: ``act``, called only while the form is the one in which the control was drawn.

    With a ``key``, the control's, ``act`` is given what it holds first, through ``read`` if there is one. ``of()`` says what in the
    form the control is about, where it is not about all of it: it is heard as long as that is the same. What ``act`` raises is logged
    and told above the page, which stays.
    """
    form, about = st.session_state.get("form"), of and of()

    def hear(*args, **kwargs):
        state = st.session_state
        with uninterrupted():
            state.told = True
            if state.get("form") != form or (of is not None and of() != about) or (key is not None and key not in state):
                return
            try:
                act(*held(key, read), *args, **kwargs)
            except Exception as error:  # raised from here, it would be all that is left of the page
                _log.exception("A control of the page failed")
                state.raised = error
                draw(WHOLE)

    return hear


def held(key, read=None):
    """What the control ``key`` holds, through ``read``, as a list; nothing for no control."""
    value = [] if key is None else [st.session_state[key]]
    return value if read is None else [*map(read, value)]


@contextmanager
def uninterrupted():
    """Let a change of the session's state come to its end: a callback, or an address that is taken over. Streamlit gives up what runs, at
    any look at that state, once the browser asks for more: a press would be lost, or half done. What the browser asked for begins at
    once, and waits here for its turn."""
    state = get_script_run_ctx().session_state
    interrupt = state._yield_callback
    object.__setattr__(state, "_yield_callback", lambda: None)
    try:
        with st.session_state.setdefault("turn", RLock()):
            yield
    finally:
        object.__setattr__(state, "_yield_callback", interrupt)


def leave_fragments():
    """Forget the fragments of the page that was left. A browser still shows them until it hears of this page, and may ask for one: it
    would get an answer of that page, take it for a page of its own, and clear away what it had of this one."""
    asked = get_script_run_ctx()
    asked.fragment_storage.clear()
    requests = asked.script_requests
    with requests._lock:
        if requests._state is ScriptRequestType.RERUN and requests._rerun_data.fragment_id_queue:
            requests._state = ScriptRequestType.CONTINUE


def give(key, value):
    """Let the control ``key`` hold ``value``. One that does is left alone, with what somebody may be typing in it; one of another page is
    not the same, whatever its key."""
    state = st.session_state
    given = state.setdefault("given", {})  # on which page, by key
    if key not in state or given.get(key) != state.get("page") or state[key] != value:
        state[key] = value
        given[key] = state.get("page")


def draw(fragments):
    """From a callback: draw these fragments alone, and those that follow any on this page; with None what the browser asked for.

    The whole page for WHOLE, where it was not drawn to its end yet, and to go to another address.
    """
    state = st.session_state
    if fragments is None or not get_script_run_ctx().fragment_ids_this_run:  # the browser asked for the whole page
        return
    if fragments and state.drawn and st.query_params.to_dict() == state.address:
        st.rerun([*dict.fromkeys((*fragments, *state.follow))])
    st.rerun()


def begin():
    """At the beginning of a page: nothing of it is drawn, and what a control came to is told.

    ``with_change`` says whether the browser asked because of a control, one that is not heard included. It may then still show an address
    of before, to which nobody went back.
    """
    state, asked = st.session_state, get_script_run_ctx()
    state.drawn = False
    state.with_change = state.pop("told", False) and not asked.is_history_navigation
    with st.container(key="raised"):  # there also when empty: what follows keeps its place
        if error := st.session_state.pop("raised", None):
            st.exception(error)


def rooms(*names):
    """Containers for the parts of a page. They are sent before any is filled, so that each part has its place whatever comes of the
    others: a part that is drawn alone cannot miss it."""
    return [st.container(key=f"room_{name}") for name in names]


def fill(**parts):
    """Draw the parts of a page, each a function, in rooms of their names; then all are there, and may be drawn alone."""
    for room, part in zip(rooms(*parts), parts.values(), strict=True):
        with room:
            part()
    drawn()


def drawn():
    """At the end of a page: all of its fragments are there, and may be drawn alone."""
    st.session_state.drawn = True
