"""What the page of a model looks at: a kind of source and its settings, the one place between widgets, the address and dataclasses.

Each kind of source has its settings, a frozen dataclass. All are kept, so that going from one source to another and back loses
nothing.
"""

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from mha_viz.app.drawing import field, renew, uninterrupted
from mha_viz.core.rules import Wrong, one_of
from mha_viz.settings import View, from_address, to_address
from mha_viz.sources.files.kind import Opened
from mha_viz.sources.pretrained import Pretrained
from mha_viz.sources.trained import Trained

KINDS = {"trained": Trained, "pretrained": Pretrained, "file": Opened}  # by the name of the source, the default first


@uninterrupted()
def arrive():
    """Take the address over where a person went to another one: a first visit, a shared link, Back."""
    state, query = st.session_state, st.query_params.to_dict()
    if "view" in state and query == state.address:
        state.behind = []
        return
    if "view" in state and query in state.behind and (state.with_change or (settings(), state.view) != state.written):
        return  # somebody quick changed a second thing before the address of the first has reached the browser
    renew()
    source, fields, view, notes = read_address(query)
    here, more = fitting(KINDS[source], fields)
    notes += more
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


def fitting(kind, fields):
    """The settings with those of the ``fields`` that go together, and a Wrong for each that is right by itself and does not."""
    notes = []
    while True:
        try:
            return kind(**fields), notes
        except Wrong as wrong:
            if wrong.argument not in fields:  # one that is left out already: the defaults do not go with the others
                return kind(), [*notes, wrong]
            notes.append(wrong)
            fields = {name: value for name, value in fields.items() if name != wrong.argument}


def notes(traces=()):
    """A Wrong for each value of the address that was left out, or points beyond these Traces, until something is changed."""
    state, view = st.session_state, st.session_state.view
    if (settings(), view) != state.arrived:
        return []
    if not traces:
        return state.notes
    count = len(traces)
    if view.layer < count:
        return state.notes + view.misfits(*traces[view.layer].shape)
    rule = (
        f"points to layer {view.layer}, and there {'is 1, layer 0' if count == 1 else f'are {count}, from 0 to {count - 1}'}."
    )
    return [*state.notes, Wrong("layer", view.layer, rule, [{"layer": 0}]), *view.misfits(*traces[0].shape)]


def settings():
    """The settings of the source that is looked at."""
    state = st.session_state
    return state.sources.setdefault(state.source, KINDS[state.source]())


def choose_source(source):
    state = st.session_state
    renew()
    state.source, state.wrong_source, state.typed, state.playing = source, None, {}, False
    state.view = replace(View(), colors=state.view.colors, scale=state.view.scale)


def wrongs():
    """What is wrong with a file that was to be opened, and with each value that waits in its widget to be mended."""
    state = st.session_state
    return [wrong for wrong in (state.wrong_source, *(wrong for _, wrong in state.typed.values())) if wrong is not None]


def change(**values):
    """Set fields of the settings; raises Wrong for what breaks a rule, and they stay as they were."""
    let_go(*values)
    st.session_state.sources[st.session_state.source] = replace(settings(), **values)


def let_go(*names):
    """Forget what waits to be mended in the widgets of fields that are not drawn: nobody could mend it."""
    for name in names:
        st.session_state.typed.pop(name, None)


def hold(name, widget, label, spell=None, read=None, with_it=(), of=None, **options):
    """The widget of the field ``name``, holding what the settings say; ``spell`` and ``read`` are between the field and its widget.
    The fields ``with_it`` go back to their defaults when it changes. A field that only means something beside the present value of the
    field ``of`` names that.

    What is wrong stays in the widget to be mended.
    """
    key, state = f"source_{name}", st.session_state
    value = getattr(settings(), name)
    value = state.typed[name][0] if name in state.typed else spell(value) if spell else value
    about = None if of is None else lambda: getattr(settings(), of)
    return field(widget, label, key, value, _take, (name, read, with_it), about, **options)


def _take(value, name, read, with_it):
    state = st.session_state
    state.playing = False  # somebody looks at something else
    before = settings()
    defaults = {other: type(before).__dataclass_fields__[other].default for other in with_it}
    try:
        change(**{name: read(value) if read else value}, **defaults)
    except Wrong as wrong:
        state.typed[name] = value, wrong
    else:
        state.wrong_source = None
        if settings() != before:
            state.notes = []


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


def address():
    """What is looked at and how it is shown, as the address of the page that is open."""
    state, here = st.session_state, settings()
    spelled = {"source": state.source} | to_address(type(here), **vars(here)) | to_address(**vars(state.view))
    return unnamed(spelled) if state.page == "models" else spelled


def named(address):
    """An address of the Models page as other pages have it: they look at a model where it names a source."""
    return {"source": next(iter(KINDS))} | address


def unnamed(address):
    """The address as the Models page has it, where the first source goes without saying."""
    return {name: text for name, text in address.items() if (name, text) != ("source", next(iter(KINDS)))}


@uninterrupted()
def write_address():
    """Let the browser's address say what is looked at and how it is shown."""
    state, spelled = st.session_state, address()
    state.written = settings(), state.view
    if spelled != state.address:
        state.behind.append(state.address)
        state.address = spelled
        st.query_params.from_dict(spelled)
