"""What a page looks at: the layer of Explore, or a layer of a model, whichever its address names."""

import re
from dataclasses import dataclass, replace
from html import escape

import streamlit as st

from mha_viz.app import draft, explored, model, source
from mha_viz.app.panels.random import controls
from mha_viz.app.parts.messages import say_notes
from mha_viz.app.parts.shapes import mode
from mha_viz.app.places import enter, link
from mha_viz.app.warm import warm_up
from mha_viz.core.memory import too_long
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace
from mha_viz.export.markdown import plain
from mha_viz.settings import Settings
from mha_viz.sources.base import Source, kind_of

KINDS = {"explore": "Explore's layer", "models": "A model's layer"}


@dataclass(frozen=True, eq=False)
class LookedAt:
    """One layer: its ``trace``; the ``settings`` that made it, None of a model's; and the Wrong in those that are set, else None."""

    trace: Trace
    settings: Settings | None = None
    wrong: Wrong | None = None

    @property
    def batch_first(self):
        return self.settings is None or self.settings.batch_first


def begin(page, sidebar=controls):
    """What each page of either begins with: its address taken over, the sidebar drawn, Explore's by ``sidebar()``, PyTorch and Plotly
    imported. Returns whether there is a layer to look at; says what is missing where there is none."""
    enter(page)
    with st.sidebar, st.container(horizontal=True, key="looked_at_links"):
        for place, title in KINDS.items():
            icon = "checked" if place == st.session_state.place else "unchecked"
            link(page, title, place, icon=f":material/radio_button_{icon}:")
    if of_model():
        found = model.begin()
        if found and len(model.here().recording().traces) > 1:
            with st.sidebar:
                model.choose_layer("visible", rerun=None)  # of which another page may lack something
        return found and is_whole()
    draft.arrive()
    sidebar()
    warm_up()
    return is_whole()


def is_whole():
    """Whether the maps of what is looked at are there whole; says so where they are not."""
    if not (too_long(current().trace) if of_model() else explored.is_long()):
        return True
    st.info(
        "This layer is too long for its maps to be whole, as this page needs them. Its heads are shown pooled where it was opened."
    )
    return False


def of_model():
    return st.session_state.place == "models"


def current():
    """The layer that is looked at. What if is left out of a shipped model: the layer is as it was trained."""
    if not of_model():
        settings, trace, wrong = explored.current()
        return LookedAt(trace, settings, wrong)
    return LookedAt(unchanged().traces[model.layer()[0]])


def to_save(looked, view):
    """The Shown of what ``current`` is, for files: as ``view`` shows it, without what Explore changes in it and compares it with."""
    from mha_viz.views.shown import Shown

    if looked.settings is not None:
        of = Source(kind_of(looked.settings).called(looked.settings), (looked.trace,), looked.settings)
    else:
        of = replace(model.looked_at(), traces=unchanged().traces)
        if hasattr(of.settings, "interventions"):
            of = replace(of, settings=replace(of.settings, interventions=""))
    return Shown(of, looked.trace, replace(view, what_if="", weighting="weights", pinned=None))


def say_what_is_wrong(changed=False):
    """Say what is wrong with what is set, and what of the address cannot be shown; of a model what is to be known of its run. What if
    is left out of ``current``; a page that shows the layer ``changed`` by it says so."""
    if not of_model():
        explored.say_what_is_wrong()
        return
    with st.container(key="messages"):
        say_of_model(changed)


def say_of_model(changed=False):
    """What of the address cannot be shown, and what is to be known of the run."""
    run = model.here().recording() if changed else unchanged()
    say_notes(source.notes(run.traces))
    left_out = [] if run is model.here().recording() else ["What if is left out here: this is the layer as it was trained."]
    if run.notes or left_out:
        st.caption(" ".join(map(plain, (*left_out, *run.notes))))


def unchanged():
    """The Recording of the model without what is changed in it: of a shipped one, which runs again; others hold what they hold."""
    return getattr(model.here(), "unchanged", model.here().recording)()


def told(looked):
    """Which layer it is, and of what kind, as HTML."""
    if looked.settings is not None:
        return mode(looked.settings)
    return f"<p class='mode'>{escape(model.here().title())} · {escape(looked.trace.name)}</p>"


def file_name(looked):
    """What a file with the numbers of a model's layer is called: ``induction-layer-1.npz``."""
    words = re.findall(r"[a-z0-9]+", f"{model.here().title()} {looked.trace.name}".lower())
    return f"{'-'.join(words)}.npz"


def write_address():
    """Let the browser's address say what is looked at and how; not while a training is played: Back should not lead through it."""
    if not of_model():
        draft.write_address()
    elif not st.session_state.get("playing"):
        source.write_address()
