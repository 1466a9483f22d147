"""A file of the person's own: a recording, weights, maps; token lists for what is open."""

import os
from dataclasses import dataclass

import streamlit as st

from mha_viz.core.rules import Wrong
from mha_viz.settings.rules import number, optional, ruled

TYPES = ["safetensors", "pt", "pth", "npy", "npz", "txt", "json"]
FILE = "MHA_VIZ_FILE"  # the file that the command line names


@dataclass(frozen=True)
class Opened:
    """``file`` is the name of one that was opened in this session, "" for none; ``layer`` is kept where a layer is pinned as A."""

    file: str = ruled("", lambda argument, value: value)
    layer: int | None = ruled(None, optional(number(0)))


def sidebar():
    """The upload, and a choice among what was opened before."""
    state = st.session_state
    st.file_uploader(
        "Open a file", TYPES, key="upload", on_change=take_upload,
        help="A recording (recording.save), weights (a state_dict as .safetensors or .pt), or attention maps (.npy, .npz, .safetensors) "
        "from any framework. A token list (.txt, .json) names the rows and columns of what is open. Nothing leaves this machine.",
    )  # fmt: skip
    opened = state.setdefault("opened", {})
    if len(opened) > 1:
        st.selectbox("opened", list(opened), key="opened_file", index=list(opened).index(current()), on_change=go_to_opened)


def current():
    """The name of the file that is looked at, None before one is opened."""
    name = st.session_state.sources["file"].file
    return name if name in st.session_state.get("opened", {}) else None


def go_to_opened():
    show(st.session_state.opened_file)


def open_named():
    """Open the file that the command line named, once; it is looked at first."""
    state, path = st.session_state, os.environ.get(FILE)
    if path and "opened" not in state:
        state.opened = {}
        from mha_viz.sources.files import look

        take(lambda: look(path, path))


def take_upload():
    """Look at what was uploaded; open it where nothing has to be asked."""
    upload = st.session_state.upload
    if upload is not None:
        from mha_viz.sources.files import look

        take(lambda: look(upload.name, upload.getvalue()))


def take(look):
    state = st.session_state
    try:
        found = look()
        if found.kind == "tokens" and current() is not None:
            name_tokens(found)
        elif found.questions:
            state.asked = found
        else:
            state.asked = None
            put(found, {})
        state.wrong_source = None
    except Wrong as wrong:
        state.wrong_source = wrong  # what was open stays open


def name_tokens(found):
    """Give what is open the names in a token list."""
    from mha_viz.sources.files import open_found

    of, answers, _ = st.session_state.opened[current()]
    queries, keys = found.content.lists()
    st.session_state.opened[current()] = of, answers, open_found(of, tokens=queries, key_tokens=keys, **answers)


def put(found, answers):
    from mha_viz.sources.files import open_found

    recording = open_found(found, **answers)
    st.session_state.opened[found.name] = found, answers, recording
    show(found.name)


def show(name):
    """Look at an opened file, at the cause of what went wrong in it if there is one."""
    state = st.session_state
    state.sources["file"] = Opened(name)
    cause = state.opened[name][2].cause
    from mha_viz.settings import View

    place = {}
    if cause is not None:
        cell = None if cause.query is None else (cause.query, None)
        place = {"layer": cause.trace, "item": cause.item or 0, "head": cause.head, "cell": cell}
    state.view = View(**place)


def questions():
    """What has to be known before the file is opened: what it holds, each question with its guess, and a button."""
    state = st.session_state
    found = state.get("asked")
    if found is None:
        return
    with st.container(border=True, key="asked"):
        st.markdown(f"**{escape(found.name)}** · {found.kind}")
        for sentence in found.holds:
            st.markdown(escape(sentence))
        answers = {}
        for question in found.questions:
            answers |= ask(found, question, answers)
        open_it, leave = st.columns([1, 5])
        open_it.button("Open", type="primary", on_click=open_asked, args=(found, answers))
        leave.button("Not now", on_click=forget)


def ask(found, question, answers):
    """One question as a widget: its answer by its field, {} where there is none yet."""
    now = next((q for q in found.ask(**answers) if q.field == question.field), question)
    key = f"answer_{found.name}_{now.field}"
    if isinstance(now.choices, range):
        value = st.number_input(now.text, now.choices[0], now.choices[-1], now.guess, key=key)
    else:
        index = now.choices.index(now.guess) if now.guess in now.choices else None
        value = st.selectbox(now.text, now.choices, index, key=key, format_func=in_words)
    if now.check:
        st.caption(escape(now.check))
    return {} if value is None else {now.field: value}


def in_words(choice):
    return ", ".join(map(str, choice)) if isinstance(choice, tuple) else str(choice)


def open_asked(found, answers):
    state = st.session_state
    try:
        put(found, answers)
        state.asked = state.wrong_source = None
    except Wrong as wrong:
        state.wrong_source = wrong


def forget():
    st.session_state.asked = None


def recording():
    """The Recording that is looked at, None before a file is opened."""
    name = current()
    return None if name is None else st.session_state.opened[name][2]


def escape(text):
    from mha_viz.pages.messages import plain

    return plain(text)


def about():
    """Which file it is."""
    found = st.session_state.opened[current()][0]
    st.markdown(f"**{escape(found.name)}** · {found.kind}")


def here(layer):
    """What would be pinned: this file's layer."""
    return Opened(current(), layer)


def trace_of(other, layer):
    """The Trace of the pinned layer of an opened file; raises Wrong where it is not open any more."""
    opened = st.session_state.opened
    if other.file not in opened:
        raise Wrong("pinned", other.file, "is not open in this session: open the file again.", [{"pinned": None}])
    traces = opened[other.file][2].traces
    index = layer if other.layer is None else other.layer
    if index >= len(traces):
        raise Wrong("pinned", index, f"points to layer {index}, and {other.file} has {len(traces)}.", [{"pinned": None}])
    return traces[index]


def inputs(layer):
    """The calls of the same module: each ran on an input of its own."""
    traces = recording().traces
    return [trace for trace in traces if trace.name == traces[layer].name]


def go_to(example):
    """Which layer of the View shows the input of an example."""
    traces = recording().traces
    layer = st.session_state.view.layer
    same = [i for i, trace in enumerate(traces) if trace.name == traces[layer].name]
    return {"layer": same[example.trace]}
