"""What a person has set so far, right or wrong: the one place between widgets, the address and Settings.

A widget's key is the name of its field. Streamlit forgets a widget that is not drawn; the draft does not, so that nothing that a
person set is lost, whatever is folded away or wrong meanwhile.
"""

import math
from dataclasses import asdict, fields
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from mha_viz.app.drawing import STAGE, WHOLE, draw, field, renew, uninterrupted
from mha_viz.core.rules import Wrong
from mha_viz.settings import (
    Settings,
    View,
    fit_mask,
    from_address,
    parsed,
    read,
    read_mask,
    ruled_value,
    to_address,
    write_mask,
)
from mha_viz.settings.settings import TINY

TYPED = ("padding", "source_padding")  # fields that are typed as text and read by settings.read
SWITCHES = {  # beside fields that may be None
    "words": "own_words",
    "source_words": "cross",
    "source_len": "cross",
    "window": "windowed",
    "attn_mask": "masked",
}
STAND_INS = {  # what a widget holds at first whose field is None until a switch says otherwise
    "words": "the cat sat on the mat because the cat was tired\nthe dog slept",
    "source_words": "die Katze schlief müde auf der Matte\nder Hund schlief",
    "source_len": 12,
    "window": 4,
    "attn_mask": "0",
}


@uninterrupted()
def arrive():
    """Take the address over where a person went to another one: a first visit, a shared link, Back.

    Somebody quick changes a second thing before the address of the first has reached the browser. Such an address is an earlier
    one and comes with a change; Back to it comes with none.
    """
    state, query = st.session_state, st.query_params.to_dict()
    if "draft" in state and query == state.address:
        state.behind = []
        return
    if "draft" in state and query in state.behind and (state.with_change or held() != state.written):
        return
    settings, view, notes = from_address(query)
    renew()
    state.draft, state.behind = {}, []
    for remembered in ("wanted", "left", "left_padding", "typed_view"):
        state.pop(remembered, None)
    for name, value in raw(settings).items():
        put(name, value)
    state.view, state.notes, state.address = View(**view), notes, query
    state.written = state.arrived = held()


def notes(trace):
    """A Wrong for each value of the address that was left out, or points beyond the Trace, until something is changed."""
    if held() != st.session_state.arrived:
        return []
    return st.session_state.notes + st.session_state.view.misfits(*trace.shape)


def held():
    """All that a person has set, as of now: the draft and the View."""
    state = st.session_state
    return dict(state.draft), state.view, state.get("paint")


def raw(values):
    """What the widgets hold where Settings hold ``values``, the rest at their defaults.

    Padding is typed as text; what may be None has a switch beside it.
    """
    held = {f.name: f.default for f in fields(Settings)} | values
    for name in TYPED:
        held[name] = ", ".join(map(str, held[name]))
    held["own_words"] = held["words"] is not None
    held["cross"] = held["source_len"] is not None or held["source_words"] is not None
    held["windowed"] = held["window"] is not None
    held["masked"] = held["attn_mask"] is not None
    held["attn_mask"] = held["attn_mask"] and held["attn_mask"].replace("/", "\n")
    return held | {name: value for name, value in STAND_INS.items() if held[name] is None}


def put(name, value):
    """Set one field; its widget holds it when it is next drawn."""
    if name == "num_heads":
        st.session_state.wanted = value  # also where only divisors are offered
    st.session_state.draft[name] = value


def change(**values):
    """Set fields of Settings as their widgets would, and the switches beside them: what a button with a nearest right value does."""
    shown = raw(values)
    for name in values:
        put(name, shown[name])
        if name in SWITCHES:
            put(SWITCHES[name], shown[SWITCHES[name]])


def change_case(case):
    """Between the tiny case and the random layer: each comes back as it was left."""
    draft = st.session_state.draft
    left, st.session_state.left = st.session_state.get("left"), dict(draft)
    for name, value in (left or raw(TINY if case == "tiny" else {})).items():
        put(name, value)
    put("case", case)


def change_input(own):
    """Between random tokens and one's own words: each has a padding of its own, words at first none."""
    state = st.session_state
    state.left_padding, padding = state.draft["padding"], state.get("left_padding", "" if own else raw({})["padding"])
    put("padding", padding)
    put("own_words", own)


def prepare_mask(masked):
    """Let a mask of one's own begin at the present size, with what it hid before, at first nothing."""
    put("masked", masked)
    try:
        now = of(values() | {"attn_mask": None})
        put("attn_mask", lines(fit_mask(read_mask(st.session_state.draft["attn_mask"]), now.L, now.S)))
    except Wrong:
        pass  # something else is wrong and says so, or the mask is, which is there to be mended


def paint(query, key):
    """Hide a cell of the map by one's own mask, or show it again. A mask that cannot be read says so itself and is left alone."""
    try:
        mask = read_mask(st.session_state.draft["attn_mask"])
    except Wrong:
        return
    if query < mask.shape[0] and key < mask.shape[1]:
        shown, hiding = (False, True) if mask.dtype == bool else (0, -math.inf)
        mask[query, key] = shown if mask[query, key] == hiding else hiding
        put("attn_mask", lines(mask))


def lines(mask):
    """``mask`` as text for a person to edit: a line per query."""
    return write_mask(mask).replace("/", "\n")


def control(name, widget, label, rerun=STAGE, take_all=None, **options):
    """Draw the ``widget`` of the field ``name``, holding what the draft says, and return that.

    A change draws the fragments ``rerun`` anew, and nothing else where nothing else says anything new. ``take_all(value)`` is for a field
    that others follow: the whole page is drawn.
    """
    act, args = (take, (name, rerun)) if take_all is None else (take_with_others, (take_all,))
    field(widget, label, name, st.session_state.draft[name], act, args, **options)
    return st.session_state.draft[name]


def take(value, name, rerun):
    """Keep what the widget of the field ``name`` holds now, and draw what depends on it."""
    if name != "attn_mask" or not st.session_state.get("paint"):  # or it is the text from before the last cells were painted
        st.session_state.draft[name] = value
        draw(rerun)


def take_with_others(value, take_all):
    take_all(value)
    draw(WHOLE)


def settings(**change):
    """The Settings that the widgets spell, with this ``change``; raises Wrong, the first of them, where they spell none."""
    return of(values(), **change)


def of(held, **change):
    spelled = {name: parsed(Settings, name, value) if name in TYPED else value for name, value in held.items()}
    return Settings(**spelled | change)


def values():
    """The fields as the widgets hold them, with None, or no padding, where a switch says that they do not count."""
    draft = st.session_state.draft
    held = {f.name: draft[f.name] for f in fields(Settings)}
    off = {
        "words": not draft["own_words"],
        "source_len": not draft["cross"] or draft["own_words"],
        "source_words": not (draft["cross"] and draft["own_words"]),
        "window": not draft["windowed"],
        "attn_mask": not draft["masked"],
    }
    empty = {name: "" for name in off if held[name] is None}  # switched on and left empty: wrong, and not the same as off
    held |= empty | {name: None for name, is_off in off.items() if is_off}
    return held if draft["cross"] else held | {"source_padding": ""}


def spelled(settings):
    """These Settings as the query part of an address, "" for the defaults."""
    return urlencode(to_address(**asdict(settings)))


def unspelled(query):
    """The Settings that ``spelled`` wrote; raises Wrong where ``query`` spells none."""
    try:
        found, _, notes = from_address(dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))))
    except ValueError:
        rule = "must be settings as an address spells them, as in seed=8&causal=1."
        raise Wrong("pinned", query, rule, [{"pinned": None}]) from None
    if notes:
        raise notes[0]
    return Settings(**found)


def address():
    """What is set and how it is shown, as an address: a wrong pair too, so that a class can be sent to it."""
    spelled = {}
    for name, value in values().items():
        try:
            spelled |= to_address(
                **{name: read(Settings, name, value) if name in TYPED else ruled_value(Settings, name, value)}
            )
        except Wrong:
            continue  # what spells nothing cannot be in an address
    return spelled | to_address(**asdict(st.session_state.view))


@uninterrupted()
def write_address():
    """Let the browser's address say what is set and how it is shown."""
    spelled, st.session_state.written = address(), held()
    if spelled != st.session_state.address:
        st.session_state.behind.append(st.session_state.address)  # which the browser shows until it hears of this one
        st.session_state.address = spelled
        st.query_params.from_dict(spelled)
