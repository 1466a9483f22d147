"""What the page of a model looks at: a kind of source and its settings, the one place between widgets, the address and dataclasses.

Each kind of source has its settings, a frozen dataclass. All are kept, so that going from one source to another and back loses
nothing.
"""

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from mha_viz.core.rules import Wrong, one_of
from mha_viz.pages.from_file import Opened
from mha_viz.settings import View, from_address, to_address
from mha_viz.sources.pretrained import Pretrained
from mha_viz.sources.trained import Trained

KINDS = {"trained": Trained, "pretrained": Pretrained, "file": Opened}  # by the name of the source, the default first


def arrive():
    """Take the address over where a person went to another one: a first visit, a shared link, Back."""
    state, query = st.session_state, st.query_params.to_dict()
    if "view" in state and query == state.address:
        state.behind = []
        return
    if "view" in state and query in state.behind and (settings(), state.view) != state.written:
        return  # somebody quick changed a second thing before the address of the first has reached the browser
    source, fields, view, notes = read_address(query)
    try:
        here = KINDS[source](**fields)
    except Wrong as wrong:  # each is right by itself, and not together
        here, notes = KINDS[source](), [*notes, wrong]
    state.source, state.behind, state.view, state.notes, state.address = source, [], View(**view), notes, query
    state.sources = state.get("sources", {}) | {source: here}
    state.wrong_source, state.typed = None, {}
    state.written = state.arrived = here, state.view


def read_address(query):
    query, notes = dict(query), []
    source = query.pop("source", next(iter(KINDS)))
    try:
        one_of("source", source, tuple(KINDS))
    except Wrong as wrong:
        source, notes = next(iter(KINDS)), [wrong]
    fields, view, more = from_address(query, KINDS[source])
    return source, fields, view, notes + more


def notes():
    """A Wrong for each value of the address that was left out, until something is changed."""
    return st.session_state.notes if (settings(), st.session_state.view) == st.session_state.arrived else []


def settings():
    """The settings of the source that is looked at."""
    state = st.session_state
    return state.sources.setdefault(state.source, KINDS[state.source]())


def choose_source(source):
    state = st.session_state
    state.source, state.wrong_source, state.typed = source, None, {}
    state.view = replace(View(), colors=state.view.colors, scale=state.view.scale)


def change(**values):
    """Set fields of the settings; what breaks a rule is said, and they stay as they were."""
    state = st.session_state
    try:
        must_change(**values)
        state.wrong_source = None
    except Wrong as wrong:
        state.wrong_source = wrong


def must_change(**values):
    """Set fields of the settings; raises Wrong for what breaks a rule."""
    st.session_state.sources[st.session_state.source] = replace(settings(), **values)


def hold(name, widget, label, spell=None, read=None, with_it=(), **options):
    """The widget of the field ``name``, holding what the settings say; ``spell`` and ``read`` are between the field and its widget.
    The fields ``with_it`` go back to their defaults when it changes.

    What is wrong stays in the widget to be mended.
    """
    key, state = f"source_{name}", st.session_state
    value = getattr(settings(), name)
    state[key] = state.typed.get(name, spell(value) if spell else value)
    return widget(label, key=key, on_change=_take, args=(name, read, with_it), **options)


def _take(name, read, with_it):
    state = st.session_state
    value = state[f"source_{name}"]
    before = settings()
    defaults = {other: type(before).__dataclass_fields__[other].default for other in with_it}
    try:
        change(**{name: read(value) if read else value}, **defaults)
    except Wrong as wrong:
        state.wrong_source = wrong
    if state.wrong_source is None:
        state.typed.pop(name, None)
        if settings() != before:
            state.notes = []
    else:
        state.typed[name] = value


def spelled(here):
    """These settings as the query part of an address."""
    return urlencode(to_address(type(here), **vars(here)))


def unspelled(query):
    """The settings, of the kind that is looked at, which ``spelled`` wrote; raises Wrong where ``query`` spells none."""
    try:
        pairs = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        rule = "must be settings as an address spells them."
        raise Wrong("pinned", query, rule, [{"pinned": None}]) from None
    kind = type(settings())
    found, _, wrong = from_address(pairs, kind)
    if wrong:
        raise wrong[0]
    return kind(**found)


def write_address():
    """Let the address say what is looked at and how it is shown."""
    state, here = st.session_state, settings()
    state.written = here, state.view
    spelled = {} if state.source == next(iter(KINDS)) else {"source": state.source}
    spelled |= to_address(type(here), **vars(here)) | to_address(**vars(state.view))
    if spelled != state.address:
        state.behind.append(state.address)
        state.address = spelled
        st.query_params.from_dict(spelled)
