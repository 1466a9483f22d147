"""Profile: time, peak memory and work of attention by length and head count, measured on this machine while one watches; and quality."""

import os
from html import escape

import streamlit as st

from mha_viz.app.drawing import field, heard
from mha_viz.app.number_field import number_field
from mha_viz.app.parts.messages import say_error, say_notes, say_with_mends
from mha_viz.app.parts.quality_beside import quality_beside
from mha_viz.app.parts.save import OnScreen, keep_for_saving, save
from mha_viz.app.parts.toolbar import popover
from mha_viz.app.picture import picture, theme
from mha_viz.app.session import arrive, enter, place, write_address
from mha_viz.app.state import Form
from mha_viz.app.task import begin, going, running, task, why_off
from mha_viz.app.warm import warm_up
from mha_viz.core.arrays import DTYPES
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain
from mha_viz.settings.profile import BOTH, Profile
from mha_viz.studies.profiling import outlook

KEY = "profile_{}".format
FILE = "profile.json"  # what is measured here is called where it is saved
FIELDS = {  # name: (how it is asked for, label, help)
    "embed_dim": (number_field, "embed_dim", "The same for all head counts: more heads are smaller ones."),
    "num_heads": (st.text_input, "heads", "Head counts, with commas between. Each must divide embed_dim."),
    "seq_len": (
        st.text_input,
        "lengths",
        "Tokens of the sequences, with commas between. What would not fit into memory is left out.",
    ),
    "batch_size": (number_field, "batch_size", "Sequences in one call."),
    "need_weights": ((BOTH, "on", "off"), "need_weights", "With the maps returned, without, or each point both ways."),
    "mask": (("none", "causal", "padding"), "mask", "Causal, or the last quarter of the keys padded."),
    "dtype": (DTYPES, "dtype", "The type of weights, input and computation."),
    "threads": (number_field, "threads", f"That PyTorch may use. This machine has {os.cpu_count()} cores."),
    "repeats": (number_field, "repeats", "Calls of each point, in turn with all others, after one that warms up."),
}


def page():
    enter("profile")
    warm_up()
    here = arrive("profile", lambda: Form(Profile))
    say_notes(here.notes if here.untouched else [])
    with st.sidebar:
        controls()
    st.html(
        "<p class='mode'>One call of <b>nn.MultiheadAttention</b> on random tokens, timed in turn with all others; its peak memory in a "
        "process of its own, beside the formula. The same embed_dim for all: more heads are smaller ones.</p>"
    )
    profile, wrong = wanted()
    if wrong is not None:
        say_with_mends(wrong, lambda change: form().change(**change))
    buttons(profile)
    found = task("profile")
    if going("profile"):
        running("profile")
    elif found is not None:
        shown(found.results, profile)
    elif profile is not None:
        st.caption(outlook(profile))
    quality_beside()
    write_address()


def form():
    """What is set of the Profile."""
    return place("profile").content


def controls():
    """What is measured."""
    for name, (kind, label, about) in FIELDS.items():
        widget, options = (st.selectbox, {"options": kind}) if isinstance(kind, tuple) else (kind, {})
        field(widget, label, KEY(name), form().raw[name], take, (name,), help=about, **options)


def take(value, name):
    form().put(name, value)


def wanted():
    """(the Profile that is set, None), or (None, the Wrong that says what is not right with it)."""
    try:
        return form().settings(), None
    except Wrong as wrong:
        return None, wrong


def buttons(profile):
    """Measure, save and open."""
    from mha_viz.studies.profile_results import as_json

    found, measures, off = task("profile"), going("profile"), why_off()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Measure" if found is None else "Measure again",
            key="profile_go",
            type="primary",
            icon=":material/timer:",
            help=off,
            disabled=off is not None or profile is None or measures,
            on_click=heard(measure_it),
            args=(profile,),
        )
        if found is not None and not measures:
            st.download_button(
                "Save the numbers",
                lambda: as_json(found.results),
                file_name(),
                "application/json",
                on_click="ignore",
                help="Every time that was measured, with the machine, versions and the command that measures the same.",
            )
        with st.popover("Open saved numbers"):
            st.file_uploader(
                "what “Save the numbers”, profile --json or quality wrote",
                key="profile_file",
                type="json",
                on_change=heard(load, "profile_file"),
            )
    wrong = st.session_state.pop("profile_wrong", None)
    if wrong is not None:
        say_error(wrong)


def measure_it(profile):
    from mha_viz.studies.profile_results import Results, used_by_others
    from mha_viz.studies.profiling import measure

    st.session_state.profile_name = FILE
    begin("profile", Results(profile, used_by_others()), measure(profile), alone=True)


def file_name():
    """What the file is called from which these numbers are, or into which they are saved."""
    return st.session_state.get("profile_name", FILE)


def load(uploaded):
    """Show the numbers of a file, and set what they were measured of."""
    from mha_viz.studies.quality import Quality, read_measured

    state = st.session_state
    if uploaded is None:
        return
    try:
        results = read_measured(uploaded.getvalue().decode("utf-8", "replace"))
    except Wrong as wrong:
        state.profile_wrong = wrong
        return
    if isinstance(results, Quality):
        begin("quality", results, None)
        return
    state.profile_name = uploaded.name
    begin("profile", results, None)
    form().change(**vars(results.profile))


def shown(results, profile):
    """How far the numbers can be trusted, and all of them in one picture."""
    from mha_viz.figures.profile import length_of

    if results.profile != profile:
        st.html(
            f"<p class='not-current'><b>Not current.</b> Shown is what <code>{escape(results.command)}</code> measured.</p>"
        )
    (st.warning if results.busy else st.caption)(plain(results.trust))
    lengths = [length for length in results.profile.seq_len if length_of(results, length) == length]
    if not any(row.seconds or row.peak is not None for row in results.rows):
        st.info("Nothing was measured.", icon=":material/info:")
    else:
        drawn(results, lengths)
        st.caption(
            "Points are medians, bars quartiles; dotted is the memory by formula. Exponents are fitted to the three longest lengths. "
            "GFLOP/s counts the products alone, and masked scores as computed. PyTorch's fast path is off, as in training. Up to 2 MiB of "
            "a peak are the libraries' own."
        )
    skipped = [row for row in results.rows if row.skipped]
    if skipped:
        st.warning("Left out:  \n" + "  \n".join(plain(f"{told(row.point)}: {row.skipped}") for row in skipped))
    st.code(results.command, language="sh")
    about = results.machine
    st.caption(plain(f"{results.made}, {about.get('processor')}, {about['cores']} cores, torch {about.get('torch')}"))


def drawn(results, lengths):
    """The picture, with the length at which it compares head counts, and what saves it."""
    from mha_viz.components.width import room
    from mha_viz.views import PROFILE
    from mha_viz.views.shown import Measured

    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = "The length at which head counts stand beside each other."
        length = st.selectbox("head counts at length", lengths, index=len(lengths) - 1, width=180, help=about)
        shown = Measured(results, file_name(), length)
        keep_for_saving(OnScreen(shown, PROFILE.name, "profile", "profile"))
        popover("Save", "save", save)
    picture(*PROFILE.drawn(shown, theme=theme(), width=room("profile")), "profile_picture")


def told(point):
    heads = "1 head" if point.num_heads == 1 else f"{point.num_heads} heads"
    return f"{heads}, length {point.seq_len:,}, need_weights={point.need_weights}"


page()
