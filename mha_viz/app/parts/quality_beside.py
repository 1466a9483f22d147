"""Quality beside cost: a shipped task trained with several head counts, as it ships and, shorter, here."""

from html import escape

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.parts.save import OnScreen, keep_for_saving, save
from mha_viz.app.parts.toolbar import popover
from mha_viz.app.picture import picture, theme
from mha_viz.app.task import begin, end, going, running, task, why_off
from mha_viz.export.markdown import plain

PLACE = "save_quality"  # of its popover: the page has another one


def quality_beside():
    """What head counts do to a task that is trained, in one picture with what they cost."""
    from mha_viz.studies.quality import ASKED, quality_json, shipped, shipped_tasks, short

    found = task("quality")
    st.html("<h3 class='part'>Quality beside it</h3>")
    if found is not None:
        quality = found.results
    else:
        about = "What is trained with each head count."
        quality = shipped(st.selectbox("task", shipped_tasks(), key="quality_task", width=220, help=about))
    trial = quality.trial
    st.html(
        f"<p class='hides'>{ASKED[trial.task]} Trained with each head count at embed_dim {trial.model.embed_dim}, {trial.steps} steps, "
        f"{len(trial.seeds)} seed{'' if len(trial.seeds) == 1 else 's'}: as many parameters, the same sequences. "
        f"<b>{escape(quality.summary)}</b></p>"
    )
    if going("quality"):
        running("quality")
        return
    pictured(quality, trial.task if found is None else f"quality-{trial.task}.json")
    here = short(trial.task)
    off = why_off()
    words = f"Train a short version here: {len(here.num_heads)} head counts, {here.steps} steps, {len(here.seeds)} seed"
    with st.container(horizontal=True):
        st.button(
            words,
            key="quality_go",
            icon=":material/model_training:",
            disabled=off is not None,
            help=off,
            on_click=heard(train_it),
            args=(here,),
        )
        popover("Save", PLACE, save, PLACE)
        if found is not None:
            about = "Every outcome and every time, with the recipe, the machine and the command that does the same."
            st.download_button(
                "Save the numbers",
                lambda: quality_json(quality),
                f"quality-{trial.task}.json",
                "application/json",
                key="quality_numbers",
                on_click="ignore",
                help=about,
            )
            st.button("Show the full one again", key="quality_full", on_click=heard(end), args=("quality",))


def train_it(trial):
    from mha_viz.studies.quality import Quality, study

    begin("quality", Quality(trial), study(trial), alone=True)


def pictured(quality, name):
    """The picture of what is called ``name``."""
    from mha_viz.components.width import room
    from mha_viz.studies.quality import command_of
    from mha_viz.views import QUALITY
    from mha_viz.views.shown import Measured

    if not quality.outcomes:
        return
    shown = Measured(quality, name)
    picture(*QUALITY.drawn(shown, theme=theme(), width=room("quality")), "quality_picture")
    st.caption(
        "Points are medians; bars are the worst and the best seed, of times the quartiles. Uniform is the same weights with every head "
        "looking everywhere alike. Dotted is the formula beside the memory. The layer is timed on one batch of training. Held-out "
        "sequences were never trained on."
    )
    if quality.results is not None:
        (st.warning if quality.results.busy else st.caption)(plain(quality.results.trust))
    keep_for_saving(OnScreen(shown, QUALITY.name, "quality", f"quality-{quality.trial.task}", place=PLACE), PLACE)
    st.code(command_of(quality.trial), language="sh")
