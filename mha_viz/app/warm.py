"""What is kept while the server runs: the heavy imports, out of the garbage collector's way, and the last Traces."""

import gc

import streamlit as st

from mha_viz.app.visitor import visitor
from mha_viz.core.budget import BUDGET, VISITOR
from mha_viz.core.memory import ALWAYS_FREE, memory, too_long
from mha_viz.core.rules import Wrong


@st.cache_resource(show_spinner="Loading PyTorch and Plotly…")
def warm_up():
    """Import what takes seconds, once per process, after the page's frame is on screen.

    Streamlit collects garbage after every rerun, and walks over every object of torch and plotly in doing so: a quarter of a
    second. Frozen, they are left alone.
    """
    import mha_viz.core.engine
    import mha_viz.figures.heads  # noqa: F401

    gc.collect()
    gc.freeze()


def kept(key, make, size, refuse=None, spinner=None):
    """The value of this ``key`` that the sessions share, made where nobody has it by ``make()``, at a peak of ``size`` bytes."""
    who = visitor()

    def made():
        return BUDGET.kept(key, make, size, refuse or (lambda available: no_room(size, available)), who)

    if BUDGET.holds(key) or spinner is None:
        return made()
    with st.spinner(spinner):
        return made()


def no_room(size, available):
    from mha_viz.core.memory import SHARE, readable_size

    may = f"{readable_size(SHARE * available)} may be used just now, half of what is free. Try again in a moment, or something smaller."
    raise Wrong("memory", readable_size(size), f"is needed for this, and {may}")


def trained_run(settings):
    """The Run of a shipped model, shared by every session that asks for the same; all snapshots of one stay while they are played."""
    from mha_viz.sources.models import MODELS
    from mha_viz.sources.trained import trained

    model, (N, L) = MODELS[settings.model], settings.tokens.shape
    size = model.num_layers * memory(N, model.num_heads, L, L, model.embed_dim)
    return kept(settings, lambda: trained(settings), size)


def pretrained_run(settings):
    """The Recording of a pretrained model that reads a text, shared by every session that asks for the same."""
    from mha_viz.sources.pretrained import peak_of, pretrained, warm_up

    warm_up()
    before = VISITOR.set(visitor())  # who has the model, and what it read
    try:
        with st.spinner("The model reads…"):
            size, refuse = peak_of(settings)
            return kept(settings, lambda: pretrained(settings), size, refuse)
    finally:
        VISITOR.reset(before)


@st.cache_resource(max_entries=64, show_spinner=False)
def kept_checks(settings, layer, what_if):
    """The Checks of one layer of these settings, shared by every session: a list that whoever has run them all fills."""
    return []


def synthetic_trace(settings):
    """The Trace of these Settings, shared by every session that asks for the same. Raises Wrong where there is no room for it now."""
    from mha_viz.sources.synthetic import check_size, peak_of, synthetic

    size = peak_of(settings)

    def make():
        trace = synthetic(settings)
        if size > ALWAYS_FREE and not too_long(trace):
            _ = trace.weights, trace.mean_weights  # within the reservation, and not when a page reads them
        return trace

    def refuse(available):
        try:
            check_size(settings, available=available)
        except Wrong as wrong:
            if wrong.nearest or not BUDGET.in_work:  # or nothing fits beside what others compute
                raise
        no_room(size, available)

    return kept(settings, make, size, refuse, "Computing…")
