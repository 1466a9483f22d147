"""A shipped model: which one, after how many steps of training, on what, and what if."""

import time
from dataclasses import replace
from html import escape
from math import isnan

import streamlit as st

from mha_viz.app import source
from mha_viz.app.drawing import heard
from mha_viz.app.fragment import fragment
from mha_viz.app.number_field import number_field
from mha_viz.app.parts.training import train_button
from mha_viz.app.parts.what_if import what_if
from mha_viz.app.warm import trained_run
from mha_viz.core.decimals import prose
from mha_viz.core.rules import Wrong
from mha_viz.sources.models import MODELS, steps
from mha_viz.sources.models import record as made
from mha_viz.sources.tasks import TASKS
from mha_viz.sources.trained import MOST_ITEMS, accuracy_name

PACE = 0.7  # seconds that a snapshot is looked at while they are played


def sidebar():
    s = source.settings()
    source.hold(
        "model", st.selectbox, "model", with_it=("snapshot", "words", "interventions"), options=list(MODELS),
        format_func=lambda name: MODELS[name].title,
        help="Each was trained from random weights by `python -m mha_viz train NAME`.",
    )  # fmt: skip
    snapshots(s)
    st.markdown("**Input**")
    text = "Words of your own: a line for each sequence. Empty draws them from the seed."
    source.hold(
        "words", st.text_area, text, of="model", spell=lambda words: words or "", read=lambda typed: typed.strip() or None, height=88,
        placeholder=placeholder(s), label_visibility="collapsed", help=vocabulary(s),
    )  # fmt: skip
    if s.words is None:
        left, right = st.columns(2)
        with left:
            source.hold(
                "batch_size", number_field, "sequences", help="How many are drawn, none of them seen in training."
            )
        with right:
            source.hold("seed", number_field, "seed", help="Draws the sequences.")
    else:
        source.let_go("batch_size", "seed")
    what_if_here(s)
    train_button(s.model)


def snapshots(s):
    """The slider over training, and the button that plays it."""
    kept = steps(s.model)
    last = kept[-1]
    source.hold(
        "snapshot", st.select_slider, "training steps", of="model", options=list(kept),
        spell=lambda step: last if step is None else step, read=lambda step: None if step == last else step,
        help="The model as it was after so many steps: watch the heads form.",
    )  # fmt: skip
    state = st.session_state
    playing = state.get("playing", False)
    st.button(
        "Stop" if playing else "Play the training",
        on_click=heard(play, of=model_now),
        args=(not playing,),
        icon=":material/stop:" if playing else ":material/play_arrow:",
    )
    if playing:
        advance()


def model_now():
    return source.settings().model


def play(on):
    state = st.session_state
    state.playing, state.next_at = on, time.monotonic() + PACE
    if on and source.settings().snapshot is None:
        source.change(snapshot=steps(source.settings().model)[0])


@fragment(run_every=PACE)
def advance():
    """Go on to the next snapshot once this one was looked at for PACE seconds, until the last."""
    state, now = st.session_state, time.monotonic()
    if now < state.next_at:
        return
    state.next_at = now + PACE
    s = source.settings()
    after = [step for step in steps(s.model) if s.snapshot is not None and step > s.snapshot]
    state.playing = len(after) > 1
    source.change(snapshot=after[0] if len(after) > 1 else None)
    st.rerun()


def placeholder(s):
    task = TASKS[MODELS[s.model].task]
    return " ".join([*task.openings[:1], *task.body[:4], *task.body[1:4]])


def vocabulary(s):
    task = TASKS[MODELS[s.model].task]
    first = f"The first is {' or '.join(task.openings)}; then " if task.openings else "Tokens: "
    return f"{first}{task.body[0]} to {task.body[-1]}, at most {task.length} in all, between spaces."


def what_if_here(s):
    """What is changed in the model, whose later layers read what a changed one puts out; drawn while it is unfolded."""
    model = MODELS[s.model]
    state, changes = st.session_state, bool(s.interventions)
    if changes and not state.get("had_changes"):
        state.what_if_here = True  # an address says what is changed: let it be seen
    state.had_changes = changes
    folded = st.expander("What if …", key="what_if_here", on_change="rerun")
    if not folded.open:
        return
    with folded:
        heads = dict.fromkeys(range(model.num_layers), model.num_heads)
        what_if(s.interventions, heads, lambda text: source.change(interventions=text), model_now)


def recording():
    return trained_run(source.settings()).recording


def unchanged():
    """The Recording of the model as it was trained, whatever is changed in it."""
    return trained_run(replace(source.settings(), interventions="")).recording


def title():
    s = source.settings()
    return MODELS[s.model].title + ("" if s.snapshot is None else f", after {s.snapshot:,} steps of training")


def about():
    """What the model is, how well it does, its training, and what it answers here."""
    from mha_viz.components import measured_width
    from mha_viz.figures.curves import curves, describe
    from mha_viz.sources.trained import training_curves

    s = source.settings()
    model = MODELS[s.model]
    words, picture = st.columns([3, 2], vertical_alignment="top")
    with words:
        st.markdown(f"**{model.title}.** {model.shows}")
        st.html(scores(s))
        st.html(roles(s))
    told, lines, at = training_curves(s)
    figure = curves(told, lines, at, st.context.theme.type or "light", max(300, int(measured_width("picture") * 0.38)))
    picture.plotly_chart(
        figure, key="curves", theme=None, width="content", config={"displayModeBar": False}, alt=describe(told, lines, at)
    )
    st.html(answers(s))


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
    pinned = st.session_state.view.pinned
    if pinned is not None:
        try:
            _, a = accuracy(source.unspelled(pinned))
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
    return "undefined" if isnan(value) else f"{value:.4f}" if value >= 1e-3 else f"{prose(value, '.1e')}"


def change(before, after, digits=3):
    if before == after or isnan(after):
        return ""
    return f" (unchanged model {loss(before) if digits == 4 else f'{before:.{digits}f}'}, {prose(after - before, f'+.{digits}f')})"


def roles(s):
    """Which heads play the parts that the task has, by the weight that they put where the part reads."""
    from mha_viz.sources.trained import accuracy

    told = []
    for name, layers in accuracy(s)[1].roles.items():
        heads = [(value, f"{layer}·{head}") for layer, values in enumerate(layers) for head, value in enumerate(values)]
        strong = [f"head {head} <b>{value:.2f}</b>" for value, head in sorted(heads, reverse=True)[:4] if value >= 0.5]
        value, head = max(heads)
        told.append(f"{name}: {', '.join(strong) or f'at most {value:.2f}, head {head}'}")
    return f"<p class='mode'>weight where a part reads (layer·head): {' · '.join(told)}</p>"


def answers(s):
    """The tokens of the batch item that is shown, and under each what the model answers; a wrong one is struck out beside the right."""
    run = trained_run(s)
    item = st.session_state.view.item
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


def trace_of(other, layer):
    """The Trace of a layer in the model of other settings."""
    traces = trained_run(other).recording.traces
    if layer >= len(traces):
        raise Wrong("pinned", layer, f"points to layer {layer}, and {other.model} has {len(traces)}.", [{"pinned": None}])
    return traces[layer]


def inputs(layer):
    """Traces of this layer on more sequences than are shown, to find a head's strongest examples in."""
    return [trained_run(many()).recording.traces[layer]]


def go_to(example):
    """Show the input of an example."""
    source.change(batch_size=MOST_ITEMS, words=None)
    return {}


def many():
    return replace(source.settings(), batch_size=MOST_ITEMS, words=None)
