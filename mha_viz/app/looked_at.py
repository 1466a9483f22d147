"""What the pages of a layer look at: a source as it is set, the layer that is chosen of it, and what is wrong with either."""

import re
from dataclasses import dataclass

import streamlit as st

from mha_viz.app import drawing
from mha_viz.app.drawing import field, rooms
from mha_viz.app.panels import panel_of
from mha_viz.app.parts.messages import say_not_current, say_notes, say_wrong
from mha_viz.app.parts.toolbar import show
from mha_viz.app.session import arrive, enter, let_go, looking, place, write_address
from mha_viz.app.warm import warm_up
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace
from mha_viz.export.markdown import plain
from mha_viz.sources.base import SOURCES, Source, kind_of


@dataclass(frozen=True, eq=False)
class LookedAt:
    """One layer of a source ``of``, by its ``index``; ``wrong`` is what is wrong with what is set, None where it is what is shown."""

    of: Source
    index: int
    wrong: Wrong | None = None

    @property
    def trace(self) -> Trace:
        return self.of.traces[self.index]

    @property
    def settings(self):
        return self.of.settings

    @property
    def panel(self):
        """The Panel of the source."""
        return panel_of(self.of.kind)

    def other(self, settings):
        """The Source of other settings, perhaps of another kind, to compare with. Raises Wrong where it cannot be had."""
        return panel_of(kind_of(settings)).open(settings)

    @property
    def batch_first(self):
        return getattr(self.settings, "batch_first", True)


AS_SET = "as_set"  # what is opened of settings: all that they say
UNCHANGED = "unchanged"  # without interventions: as a model was trained
BARE = "bare"  # and without masks and padding, for experiments that bring their own


def begin(page, sidebar="sidebar", part=AS_SET, follow=()):
    """What each page of a layer begins with: its address taken over, the sidebar drawn, PyTorch and Plotly imported.

    ``sidebar`` names the method of a Panel that draws what a page needs of the controls of a source. ``part`` says what is opened of its
    settings. Returns whether there is a layer to look at; says what is missing where there is none.
    """
    enter(page, follow)
    arrive(page)
    look = looking()
    for kind in SOURCES.values():
        panel_of(kind).begin()
    panel = panel_of(look.kind)
    with st.sidebar:
        choose_source()
        getattr(panel, sidebar)()
    (said,) = rooms("source")
    with said:
        warm_up()
        found = current(part)
        panel.ask()
        if found is None:
            say_nothing(panel)
            return False
    return True


def choose_source():
    """Where the weights come from."""
    field(
        st.selectbox,
        "look at",
        "view_source",
        looking().kind.name,
        take_source,
        options=list(SOURCES),
        format_func=lambda name: SOURCES[name].title,
        help="Where the weights come from. Each source waits as you leave it.",
    )


def take_source(name):
    looking().choose(name)
    drawing.renew()
    let_go()


def say_nothing(panel):
    """That there is no layer to look at, and why."""
    of, wrong = opened()
    if wrong is not None:
        say_wrong(wrong, panel)
    say_notes(notes())
    said = panel.nothing() if of is None else f"This recording holds no attention. {plain(' '.join(of.notes))}"
    st.markdown(said)
    write_address()


def opened(part=AS_SET):
    """(the Source that is set, or a ``part`` of it, and the Wrong in what is set): beside a Wrong the last that could be shown, None where
    there was none."""
    look = looking()
    panel, form = panel_of(look.kind), look.form
    try:
        settings = form.settings()
        of = panel.open(part_of(panel.kind, settings, part))
        form.good = settings
        return of, None
    except Wrong as wrong:
        return last_good(panel, form, part), panel.with_room(wrong)


def last_good(panel, form, part):
    """The Source that was shown last, that of the first settings where there is no room for it any more; None where neither can be had."""
    for settings in (form.good, panel.kind.made()):
        try:
            return panel.open(part_of(panel.kind, settings, part))
        except Wrong:
            continue
    return None


def part_of(kind, settings, part):
    return settings if part == AS_SET else getattr(kind, part)(settings)


def current(part=AS_SET):
    """The layer that is looked at, None where there is none; the first where the View's is beyond the source. See ``opened``."""
    of, wrong = opened(part)
    if of is None or not of.traces:
        return None
    index = looking().view.layer
    return LookedAt(of, index if index < len(of.traces) else 0, wrong)


def choose_layer(looked, rerun=None):
    """A choice among the layers, each with the name of its module."""
    from mha_viz.analysis.layers import layer_names

    traces = looked.of.traces
    names = layer_names(traces)
    named = [one.name if one.name == name else f"{name} · {one.name}" for name, one in zip(names, traces, strict=True)]
    options = {"options": list(range(len(named))), "format_func": named.__getitem__}
    show("layer", st.selectbox, "layer", looked.index, "visible", rerun, **options)


def is_whole():
    """Whether the maps of what is looked at are there whole; says so where they are not."""
    panel = panel_of(looking().kind)
    if not panel.is_long():
        return True
    st.info(
        "This layer is too long for its maps to be whole, as this page needs them. Its heads are shown pooled where it was opened."
    )
    return False


def begin_whole(page, sidebar="sidebar", part=AS_SET):
    """``begin`` for a page that looks at one layer and needs its maps whole."""
    if not begin(page, sidebar, part):
        return False
    looked = current(part)
    if len(looked.of.traces) > 1:
        with st.sidebar:
            choose_layer(looked)  # the whole page: it may lack something of another layer
    return is_whole()


def notes(of=None):
    """A Wrong for each value of the address that was left out, or points beyond the source ``of``, until something is changed."""
    here, display = place("explore"), looking().display
    if not here.untouched:
        return []
    if of is None or not of.traces:
        return here.notes
    count, layer = len(of.traces), display.view.layer
    if layer < count:
        return here.notes + display.misfits(*of.traces[layer].shape)
    there = "is 1, layer 0" if count == 1 else f"are {count}, from 0 to {count - 1}"
    beyond = Wrong("layer", layer, f"points to layer {layer}, and there {there}.", [{"layer": 0}])
    return [*here.notes, beyond, *display.misfits(*of.traces[0].shape)]


def say_what_is_wrong(looked, more=()):
    """Say what is wrong with what is set, and what of the address, or of ``more`` besides, cannot be shown."""
    panel = panel_of(looking().kind)
    with st.container(key="messages"):  # there also when empty: what follows keeps its place
        if looked.wrong is not None:
            say_wrong(looked.wrong, panel)
            say_not_current(looking().form)
        say_notes([*notes(looked.of), *more])
        said = [*panel.left_out(looked.of), *looked.of.notes]
        if said:
            st.caption(" ".join(map(plain, said)))


def to_save(looked, **change):
    """The Shown of a layer, for files: as it is shown with this ``change``, without what Explore changes in it and compares it with."""
    from mha_viz.views.shown import Shown

    shown = looking().display.changed(**change, what_if="", weighting="weights", pinned=None)
    return Shown(looked.of, looked.trace, shown.view, walk=shown.walk, caching=shown.caching)


def told(looked):
    """Which layer it is, and of what kind, as HTML."""
    return panel_of(looking().kind).told(looked)


def file_name(looked):
    """What a file with the numbers of a layer is called: ``induction-layer-1.npz``."""
    words = re.findall(r"[a-z0-9]+", f"{panel_of(looking().kind).title(looked.settings)} {looked.trace.name}".lower())
    return f"{'-'.join(words)}.npz"
