"""What is kept while the server runs: the heavy imports, out of the garbage collector's way, and the last Traces."""

import gc

import streamlit as st


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


@st.cache_resource(max_entries=2, show_spinner=False, scope="session")
def synthetic_trace(settings):
    """The Trace of these Settings. A session keeps the last two, its A and B, whatever the others compute meanwhile."""
    return shared_trace(settings)


@st.cache_resource(max_entries=48, show_spinner=False)
def trained_run(settings):
    """The Run of a shipped model, shared by every session that asks for the same; all snapshots of one stay while they are played."""
    from mha_viz.sources.trained import trained

    return trained(settings)


@st.cache_resource(max_entries=4, show_spinner="The model reads…")
def pretrained_run(settings):
    """The Recording of a pretrained model that reads a text, shared by every session that asks for the same."""
    from mha_viz.sources.pretrained import pretrained, warm_up

    warm_up()
    return pretrained(settings)


@st.cache_resource(max_entries=64, show_spinner=False)
def kept_checks(settings, layer, what_if):
    """The Checks of one layer of these settings, shared by every session: a list that whoever has run them all fills."""
    return []


@st.cache_resource(max_entries=8, show_spinner="Computing…")
def shared_trace(settings):
    """The Trace of these Settings, shared by every session that asks for the same."""
    from mha_viz.sources.synthetic import synthetic

    return synthetic(settings)
