"""Train it here: a shipped model from random weights, its curves and its heads as they form."""

import streamlit as st

from mha_viz.app.drawing import WHOLE, heard
from mha_viz.app.drawing import draw as draw_fragments
from mha_viz.app.number_field import number_field, typed, written
from mha_viz.app.opened import count
from mha_viz.app.panels.file import keep
from mha_viz.app.parts.messages import say_error, say_with_mends
from mha_viz.app.picture import picture, theme
from mha_viz.app.task import begin, end, going, running, task, why_off
from mha_viz.core.rules import Wrong, whole
from mha_viz.sources.models import MODELS

WORK = "training"


class Reports(list):
    """The Progress of a training, all of it so far."""

    add = list.append

    @property
    def share(self):
        return self[-1].step / self[-1].steps if self else 0.0


def train_button(name):
    """The button that opens the training of the model ``name``, and the dialog while it is open."""
    off = why_off()
    about = off or "From random weights, with the recipe of the shipped model."
    st.button("Train it here …", disabled=off is not None, help=about, on_click=heard(open_dialog), args=(name,))
    st.session_state.training_asked = False
    if st.session_state.get("training_open") == (st.session_state.form, name):
        st.dialog("Train it here", width="large", on_dismiss=heard(close_dialog))(training)(name)
    elif task(WORK) is not None:  # somebody went away, and came back
        close_dialog()


def open_dialog(name):
    st.session_state.training_open, st.session_state.training_asked = (st.session_state.form, name), True


def close_dialog():
    """Which ends a training. One that was asked for meanwhile opens: somebody may press faster than the page is drawn."""
    if not st.session_state.get("training_asked"):
        st.session_state.training_open = None
    end(WORK)


def training(name):
    """Start, stop, and what has come of it so far: what is reached when somebody stops stays on show."""
    from mha_viz.studies.training import recipe_of

    recipe = recipe_of(name)
    reports = st.session_state.setdefault("trained_here", {}).setdefault(name, Reports())  # of this model, in this session
    st.markdown(
        f"**{MODELS[name].title}**: {recipe.steps} steps of {recipe.batch_size} sequences, from weights drawn with the seed. "
        f"The shipped weights have seed {recipe.seed}."
    )
    trains = going(WORK)
    seed_at, start_at = st.columns([2, 1], vertical_alignment="bottom")
    seed = number_field("seed", column=seed_at, value=written(recipe.seed), key="training_seed", disabled=trains)
    wrong = wrong_seed(seed)
    start_at.button(
        "Start", type="primary", width="stretch", disabled=trains or wrong is not None, on_click=heard(start), args=(name,)
    )
    if wrong is not None:
        say_with_mends(wrong, set_seed, key="wrong_seed")
    if no_room := st.session_state.pop("no_room_for_training", None):
        say_error(no_room)
    if trains:
        running(WORK, draw=lambda: draw(name, reports))
        return
    if reports:
        last = reports[-1]
        ended = "trained to the end, step" if last.step == last.steps else "stopped after step"
        st.progress(last.step / last.steps, f"{ended} {last.step} of {last.steps}")
        draw(name, reports)
    if any(report.scores for report in reports):
        about = "As a file of this session, in every view."
        st.button("Open these heads", on_click=heard(open_heads), args=(name, reports), help=about)


def wrong_seed(seed):
    try:
        whole("seed", seed, 0, 2**31)
    except Wrong as wrong:
        return wrong
    return None


def set_seed(right):
    st.session_state.training_seed = written(right["seed"])


def start(name):
    seed = typed(st.session_state.training_seed)  # as it is now: it may have been typed just before
    if wrong_seed(seed) is not None:
        return  # which is said beside it
    from mha_viz.sources.models import record
    from mha_viz.studies.training import recipe_of, train

    try:  # every snapshot stays, in float32
        count(f"training of {name}", 4 * record(name)["parameters"] * len(recipe_of(name).snapshots), "training")
    except Wrong as wrong:
        st.session_state.no_room_for_training = wrong
        return
    reports = st.session_state.trained_here[name]
    reports.clear()
    begin(WORK, reports, train(name, seed), alone=True)


def open_heads(name, reports):
    """Look at what was trained as at any recording: every layer on the sequences that the page shows first."""
    from mha_viz.recording import Recording

    last = [report for report in reports if report.scores is not None][-1]
    note = f"{MODELS[name].title}, trained here: {last.step} steps. It is kept in this session alone."
    try:
        keep(f"{name}, trained here", "recording", Recording(heads_of(name, last), (note,)))
    except Wrong as wrong:
        st.session_state.no_room_for_training = wrong
        return
    close_dialog()
    draw_fragments(WHOLE)


def heads_of(name, report):
    """A Trace per layer of the model that ``report`` holds, on the sequences that the page shows first."""
    from mha_viz.sources.models import Parameters, forward
    from mha_viz.sources.trained import Trained

    return forward(MODELS[name], Parameters.of(MODELS[name], report.state), Trained(name).tokens)[0]


def draw(name, reports):
    """The curves so far, and the heads of the last snapshot on the sequences that the page shows first."""
    from mha_viz.figures import overview
    from mha_viz.figures.curves import curves, describe
    from mha_viz.settings import View
    from mha_viz.sources.trained import accuracy_name

    scored = [report for report in reports if report.scores is not None]
    if not scored:
        return
    last = scored[-1]
    steps = [report.step for report in scored]
    lines = {"loss": [report.scores.loss for report in scored]}
    lines |= {accuracy_name(answer): [report.scores.accuracy[answer] for report in scored] for answer in last.scores.accuracy}
    reached = ", ".join(f"{accuracy_name(answer)} {value:.3f}" for answer, value in last.scores.accuracy.items())
    st.markdown(f"After {last.step} steps, on held-out sequences: {reached}, loss {last.scores.loss:.4f}.")
    drawn = curves(steps, lines, theme=theme(), width=680, height=170)
    picture(drawn, describe(steps, lines), f"curve_{last.step}", staticPlot=True)
    traces = heads_of(name, last)
    drawn = overview.spec(traces, View(order="index"), 0, theme(), 680)
    picture(drawn, overview.describe(traces, View(), 0), f"maps_{last.step}", staticPlot=True)
