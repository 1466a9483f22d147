"""Train it here: a shipped model from random weights, its curves and its heads as they form."""

import os
import threading

import streamlit as st

from mha_viz.core.rules import Wrong, whole
from mha_viz.pages.messages import say_error
from mha_viz.pages.number_field import number_field
from mha_viz.settings.environment import CLASS
from mha_viz.sources.models import MODELS

_busy = threading.Lock()  # one training at a time, whoever asks


def train_button(name):
    """The button that opens the training of the model ``name``."""
    off = bool(os.environ.get(CLASS))
    why = "Off while a class is served (run --class): it would take the processor from everybody." if off else None
    if st.button("Train it here …", disabled=off, help=why or "From random weights, with the recipe of the shipped model."):
        training(name)


@st.dialog("Train it here", width="large", on_dismiss="rerun")  # which ends a run that trains
def training(name):
    """Start, stop, and what has come of it so far: what is reached when somebody stops stays on show."""
    from mha_viz.studies.training import recipe_of, train

    recipe = recipe_of(name)
    reports = st.session_state.setdefault("trained_here", {}).setdefault(name, [])  # of this model, in this session
    st.markdown(
        f"**{MODELS[name].title}**: {recipe.steps} steps of {recipe.batch_size} sequences, from weights drawn with the seed. "
        f"The shipped weights have seed {recipe.seed}."
    )
    seed_at, start_at, stop_at = st.columns([2, 1, 1], vertical_alignment="bottom")
    seed, wrong = number_field("seed", column=seed_at, value=float(recipe.seed), key="training_seed"), None
    try:
        whole("seed", seed, 0, 2**31)
    except Wrong as found:
        wrong = found
    start = start_at.button("Start", type="primary", width="stretch", disabled=wrong is not None)
    stop_at.button("Stop", width="stretch", help="Whatever is reached stays on show.")  # any press ends the run that trains
    if wrong is not None:
        say_error(wrong)
    bar, words, curve_at, maps_at = st.empty(), st.empty(), st.empty(), st.empty()
    if start:
        if not _busy.acquire(blocking=False):
            st.warning(
                "Somebody else is training on this server: try again when they have finished.", icon=":material/hourglass:"
            )
            return
        try:
            reports.clear()
            for progress in train(name, seed):
                reports.append(progress)
                bar.progress(progress.step / progress.steps, f"step {progress.step} of {progress.steps}")
                if progress.scores is not None:
                    draw(name, reports, words, curve_at, maps_at)
        finally:
            _busy.release()
    elif reports:
        bar.progress(reports[-1].step / reports[-1].steps, f"stopped after step {reports[-1].step} of {reports[-1].steps}")
        draw(name, reports, words, curve_at, maps_at)
    if any(report.scores for report in reports):
        st.button(
            "Open these heads", on_click=open_heads, args=(name, reports), help="As a file of this session, in every view."
        )


def open_heads(name, reports):
    """Look at what was trained as at any recording: every layer on the sequences that the page shows first."""
    from mha_viz.pages import from_file, source
    from mha_viz.recording import Recording

    last = [report for report in reports if report.scores is not None][-1]
    note = f"{MODELS[name].title}, trained here: {last.step} steps. It is kept in this session alone."
    source.choose_source("file")
    from_file.keep(f"{name}, trained here", "recording", Recording(heads_of(name, last), (note,)))
    st.rerun()


def heads_of(name, report):
    """A Trace per layer of the model that ``report`` holds, on the sequences that the page shows first."""
    from mha_viz.sources.models import Parameters, forward
    from mha_viz.sources.trained import Trained

    return forward(MODELS[name], Parameters.of(MODELS[name], report.state), Trained(name).tokens)[0]


def draw(name, reports, words, curve_at, maps_at):
    """The curves so far, and the heads of the last snapshot on the sequences that the page shows first."""
    from mha_viz.figures import overview
    from mha_viz.figures.curves import curves, describe
    from mha_viz.settings import View
    from mha_viz.sources.trained import accuracy_name

    scored = [report for report in reports if report.scores is not None]
    last, theme = scored[-1], st.context.theme.type or "light"
    steps = [report.step for report in scored]
    lines = {"loss": [report.scores.loss for report in scored]}
    lines |= {accuracy_name(answer): [report.scores.accuracy[answer] for report in scored] for answer in last.scores.accuracy}
    reached = ", ".join(f"{accuracy_name(answer)} {value:.3f}" for answer, value in last.scores.accuracy.items())
    words.markdown(f"After {last.step} steps, on held-out sequences: {reached}, loss {last.scores.loss:.4f}.")
    bare = {"theme": None, "width": "content", "config": {"displayModeBar": False, "staticPlot": True}}
    curve_at.plotly_chart(
        curves(steps, lines, theme=theme, width=680, height=170), key=f"curve_{last.step}", alt=describe(steps, lines), **bare
    )
    traces = heads_of(name, last)
    figure = overview.spec(traces, View(order="index"), 0, theme, 680)
    maps_at.plotly_chart(figure, key=f"maps_{last.step}", alt=overview.describe(traces, View(), 0), **bare)
