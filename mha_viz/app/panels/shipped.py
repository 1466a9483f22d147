"""A shipped model: which one, after how many steps of training, on what, and what if."""

from dataclasses import replace
from html import escape
from math import isnan

import streamlit as st

from mha_viz.app.drawing import WHOLE, heard
from mha_viz.app.fields import field
from mha_viz.app.fragment import fragment
from mha_viz.app.number_field import number_field
from mha_viz.app.panels.panel import Panel
from mha_viz.app.panels.training import train_button
from mha_viz.app.parts.what_if import what_if
from mha_viz.app.picture import picture, theme
from mha_viz.app.session import PLAYING, looking
from mha_viz.app.task import Done, begin, end, going, task
from mha_viz.app.warm import trained_run
from mha_viz.core.decimals import prose
from mha_viz.core.rules import Wrong
from mha_viz.sources.base import Source
from mha_viz.sources.models import MODELS, steps
from mha_viz.sources.models import record as made
from mha_viz.sources.source import pinned_settings
from mha_viz.sources.tasks import TASKS
from mha_viz.sources.trained import MOST_ITEMS, accuracy_name

PACE = 0.7  # seconds that a snapshot is looked at while they are played


class ShippedPanel(Panel):
    kinds = ("trained",)
    own_what_if = True

    def sidebar(self):
        form = looking().form
        held(
            "model",
            st.selectbox,
            "model",
            with_it=("snapshot", "words", "interventions"),
            options=list(MODELS),
            format_func=lambda name: MODELS[name].title,
            help="Each was trained from random weights by `python -m mha_viz train NAME`.",
        )
        model = form.value("model")
        snapshots(model)
        st.markdown("**Input**")
        text = "Words of your own: a line for each sequence. Empty draws them from the seed."
        held(
            "words",
            st.text_area,
            text,
            of="model",
            shown=lambda words: words or "",
            height=88,
            placeholder=placeholder(model),
            label_visibility="collapsed",
            help=vocabulary(model),
        )
        if form.value("words") is None:
            left, right = st.columns(2)
            with left:
                held("batch_size", number_field, "sequences", help="How many are drawn, none of them seen in training.")
            with right:
                held("seed", number_field, "seed", help="Draws the sequences.")
        else:
            form.forget_wrong("batch_size", "seed")
        what_if_here(model, form.value("interventions"))
        train_button(model)

    def open(self, settings):
        recording = trained_run(settings).recording
        return Source(self.kind.called(settings), recording.traces, settings, tuple(recording.notes))

    def title(self, settings):
        return MODELS[settings.model].title + (
            "" if settings.snapshot is None else f", after {settings.snapshot:,} steps of training"
        )

    def above(self, looked):
        """What the model is, and how well it does."""
        model = MODELS[looked.settings.model]
        st.markdown(f"**{model.title}.** {model.shows}")
        st.html(scores(looked.settings))

    def below(self, looked):
        """What the model answers here, which heads do what, and how its training went."""
        from mha_viz.components import measured_width
        from mha_viz.figures.curves import curves, describe

        s = looked.settings
        st.html(answers(s))
        words, beside = st.columns([3, 2], vertical_alignment="top")
        with words:
            st.html(roles(s))
            super().below(looked)
        told, lines, at = self.kind.curves(s)
        figure = curves(told, lines, at, theme(), max(300, int(measured_width("picture") * 0.38)))
        with beside:
            picture(figure, describe(told, lines, at), "curves")

    def left_out(self, of):
        return [] if looking().form.value("interventions") == getattr(of.settings, "interventions", "") else [AS_TRAINED]

    def inputs(self, looked):
        return [trained_run(many(looked.settings)).recording.traces[looked.index]]

    def go_to(self, looked, example):
        looking().form.change(batch_size=MOST_ITEMS, words=None)
        return {}


AS_TRAINED = "What if is left out here: this is the layer as it was trained."


def held(name, widget, label, **options):
    return field(name, widget, label, rerun=WHOLE, **options)


def many(settings):
    return replace(settings, batch_size=MOST_ITEMS, words=None)


def snapshots(model):
    """The slider over training, and the button that plays it."""
    kept = steps(model)
    last = kept[-1]
    held(
        "snapshot",
        st.select_slider,
        "training steps",
        of="model",
        options=list(kept),
        shown=lambda step: step if step in kept else last,
        read=lambda step: None if step == last else step,
        help="The model as it was after so many steps: watch the heads form.",
    )
    playing = going(PLAYING)
    st.button(
        "Stop" if playing else "Play the training",
        on_click=heard(play, of=model_now),
        args=(not playing,),
        icon=":material/stop:" if playing else ":material/play_arrow:",
    )
    if playing:
        advance()


def model_now():
    return looking().form.value("model")


def play(on):
    form = looking().form
    if not on:
        end(PLAYING)
        return
    kept = steps(form.value("model"))
    if form.value("snapshot") is None:
        form.change(snapshot=kept[0])
    later = [step for step in kept[:-1] if step > form.value("snapshot")]
    begin(PLAYING, Done(len(kept)), played(form, later), every=PACE)


def played(form, later):
    """Change the ``form`` to each of the ``later`` snapshots, and in the end to the last one of the model."""
    for step in later:
        form.change(snapshot=step)
        yield step
    form.change(snapshot=None)


@fragment(run_every=PACE)
def advance():
    """Go on to the next snapshot once this one was looked at for long enough."""
    now, before = task(PLAYING), looking().form.value("snapshot")
    if now is not None:
        now.run(0)
        if looking().form.value("snapshot") != before:
            st.rerun()


def placeholder(model):
    task = TASKS[MODELS[model].task]
    return " ".join([*task.openings[:1], *task.body[:4], *task.body[1:4]])


def vocabulary(model):
    task = TASKS[MODELS[model].task]
    first = f"The first is {' or '.join(task.openings)}; then " if task.openings else "Tokens: "
    return f"{first}{task.body[0]} to {task.body[-1]}, at most {task.length} in all, between spaces."


def what_if_here(name, interventions):
    """What is changed in the model, whose later layers read what a changed one puts out; drawn while it is unfolded."""
    model = MODELS[name]
    state, changes = st.session_state, bool(interventions)
    if changes and not state.get("had_changes"):
        state.what_if_here = True  # an address says what is changed: let it be seen
    state.had_changes = changes
    folded = st.expander("What if …", key="what_if_here", on_change="rerun")
    if not folded.open:
        return
    with folded:
        heads = dict.fromkeys(range(model.num_layers), model.num_heads)
        what_if(interventions, heads, change_model, model_now)


def change_model(text):
    """Change the model by these interventions; raises Wrong where they break a rule, and it stays as it was."""
    form = looking().form
    form.settings(interventions=text)
    form.change(interventions=text)


def scores(s):
    """Accuracy and loss on sequences that training never saw; beside A's, and without what was changed."""
    from mha_viz.sources.trained import accuracy

    without, found = accuracy(s)
    told = [
        f"{accuracy_name(name)} <b>{value:.3f}</b>{change(without.accuracy[name], value)}"
        for name, value in found.accuracy.items()
    ]
    told.append(f"loss <b>{loss(found.loss)}</b>{change(without.loss, found.loss, 4)}")
    told.append(f"chance {1 / len(TASKS[MODELS[s.model].task].body):.2f} · {made(s.model)['parameters']:,} parameters")
    if looking().view.pinned is not None:
        try:
            _, a = accuracy(pinned_settings(looking().kind, looking().view)[0])
            told.append(
                "A: "
                + ", ".join(f"{accuracy_name(name)} {value:.3f}" for name, value in a.accuracy.items())
                + f", loss {loss(a.loss)}"
            )
        except Wrong:
            pass  # said where A would be shown
    return f"<p class='mode'>held out, {made(s.model)['held_out']} sequences: {' · '.join(told)}</p>"


def loss(value):
    """A loss as a person reads it; undefined where some position has nothing to read."""
    return "undefined" if isnan(value) else f"{value:.4f}" if value >= 1e-3 else prose(value, ".1e")


def change(before, after, digits=3):
    if before == after or isnan(after):
        return ""
    return (
        f" (unchanged model {loss(before) if digits == 4 else f'{before:.{digits}f}'}, {prose(after - before, f'+.{digits}f')})"
    )


def roles(s):
    """Which heads play the parts that the task has, by the weight that they put where the part reads."""
    from mha_viz.sources.trained import accuracy

    told = []
    for name, layers in accuracy(s)[1].roles.items():
        heads = [(value, f"{layer}·{head}") for layer, values in enumerate(layers) for head, value in enumerate(values)]
        strong = [f"head {head} <b>{value:.2f}</b>" for value, head in sorted(heads, reverse=True)[:4] if value >= 0.5]
        value, head = max(heads)
        told.append(f"{name}: {', '.join(strong) or f'at most {value:.2f}, head {head}'}")
    return f"<p class='mode'>roles found, by the weight on the expected key (layer·head): {' · '.join(told)}</p>"


def answers(s):
    """The tokens of the batch item that is shown, and under each what the model answers; a wrong one is struck out beside the right."""
    run = trained_run(s)
    item = looking().view.item
    item = item if item < len(run.tokens) else 0
    texts = run.recording.traces[0].query_tokens[item]
    rows = [f"<tr><th>reads</th>{''.join(f'<td>{escape(text)}</td>' for text in texts)}</tr>"]
    for a, name in enumerate(run.answers):
        cells = [answer(run, item, place, a) for place in range(len(texts))]
        rows.append(f"<tr><th>{'says' if len(run.answers) == 1 else name}</th>{''.join(cells)}</tr>")
    return f"<div class='answers' tabindex='0'><table>{''.join(rows)}</table></div>"


def answer(run, item, place, a):
    """One answer as a cell of a table."""
    said, right = escape(run.predictions[item, place, a]), escape(run.targets[item, place, a])
    probability = run.probability[item, place, a]
    if not run.asked[item, place, a]:
        return "<td></td>"
    if isnan(probability):
        return "<td title='undefined: nothing is left to read'>–</td>"
    if run.right[item, place, a]:
        return f"<td title='right, probability {probability:.3f}'><b>{said}</b></td>"
    return f"<td title='wrong, probability {probability:.3f}; right is {right}'><s>{said}</s> <br>{right}</td>"
