"""Train it here: what is reached is shown as it comes and stays when somebody stops; one at a time, and never while a class is served."""

import re

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import mha_viz.studies.training
from mha_viz.pages import training as page
from mha_viz.sources.models import MODELS, Parameters, forward
from mha_viz.sources.trained import Trained
from mha_viz.studies.training import train
from tests.app.screen import maps, models, page_text, press

NAME = "look-both-ways-2"


def dialog():
    """The dialog alone: on the page it is open until it is closed."""
    import streamlit as st

    from mha_viz.pages.training import training

    st.session_state.setdefault("trained_here", {})
    training("look-both-ways-2")


@pytest.fixture
def opened():
    return AppTest.from_function(dialog, default_timeout=60).run()


@pytest.fixture
def training(monkeypatch):
    """``training(steps, stopped=None)``: let a training be so short, and be stopped after so many reports; the seeds asked for."""
    seeds = []

    def short(steps, stopped=None):
        def trained(name, seed):
            seeds.append(seed)
            for count, progress in enumerate(train(name, seed, steps)):
                if count == stopped:
                    st.stop()  # as any press does
                yield progress

        monkeypatch.setattr(mha_viz.studies.training, "train", trained)
        return seeds

    return short


def start(at):
    return next(button for button in at.button if button.label == "Start").click().run()


def charts(at):
    return [chart.proto.alt for chart in at.get("plotly_chart")]


def test_it_says_what_it_will_do(opened):
    assert "800 steps of 64 sequences" in page_text(opened) and "The shipped weights have seed 1" in page_text(opened)
    assert opened.number_input[0].value == 1 and charts(opened) == []


def test_progress_curves_and_heads_are_shown_to_the_end(opened, training):
    seeds = training(steps=20)
    opened.number_input[0].set_value(5)
    at = start(opened)
    reports = at.session_state["trained_here"][NAME]
    assert seeds == [5] and [report.step for report in reports][-1] == 20
    scores = reports[-1].scores
    assert f"After 20 steps, on held-out sequences: accuracy: before {scores.accuracy['before']:.3f}" in page_text(at)
    assert f"loss {scores.loss:.4f}" in page_text(at)
    assert charts(at)[0].startswith(f"Over 20 training steps: loss from {reports[0].scores.loss:.3f} to {scores.loss:.3f}")
    assert "1 layer by 2 heads as small maps" in charts(at)[1]
    assert not page._busy.locked() and not at.exception


def test_what_is_reached_stays_when_somebody_stops(opened, training):
    training(steps=40, stopped=3)
    start(opened)
    assert not page._busy.locked()
    at = opened.run()  # the press that stopped it
    steps = [report.step for report in at.session_state["trained_here"][NAME]]
    assert len(steps) == 3 and steps[-1] < 40
    last = next(report.step for report in reversed(at.session_state["trained_here"][NAME]) if report.scores)
    assert f"After {last} steps, on held-out sequences" in page_text(at)
    assert re.match(rf"Over {last} training steps", charts(at)[0])
    assert at.get("progress")[0].proto.text == f"stopped after step {steps[-1]} of 40"
    assert 0 < at.get("progress")[0].proto.value < 100
    training(steps=2)
    assert [report.step for report in start(at).session_state["trained_here"][NAME]][-1] == 2, "begun anew"


def test_a_second_one_is_told_to_wait(opened, training):
    seeds = training(steps=2)
    with page._busy:
        at = start(opened)
        assert "Somebody else is training on this server" in page_text(at)
    assert seeds == [] and at.session_state["trained_here"][NAME] == [], "nothing began"
    assert start(at).session_state["trained_here"][NAME][-1].step == 2, "the next one may"


def test_a_training_that_breaks_lets_the_next_one_begin(opened, monkeypatch):
    def broken(name, seed):
        yield from list(train(name, seed, 1))[:1]
        raise RuntimeError

    monkeypatch.setattr(mha_viz.studies.training, "train", broken)
    start(opened)
    assert not page._busy.locked()


def test_it_is_off_while_a_class_is_served_and_says_why(monkeypatch):
    button = next(one for one in models(model=NAME).button if one.label.startswith("Train it here"))
    assert not button.disabled and "From random weights" in button.proto.help
    monkeypatch.setenv("MHA_VIZ_CLASS", "1")
    button = next(one for one in models(model=NAME).button if one.label.startswith("Train it here"))
    assert button.disabled and "Off while a class is served (run --class)" in button.proto.help


def test_it_opens_from_the_page():
    at = press(models(model=NAME), "Train it here")
    assert "Look both ways: 2 heads: 800 steps" in page_text(at).replace("**", "") and not at.exception


def test_what_was_trained_is_opened_as_any_recording():
    at = models(model=NAME)
    at.session_state["trained_here"] = {NAME: list(train(NAME, 3, 2))}
    press_now(at, "Train it here …")
    press_now(at, "Open these heads")
    assert "Look both ways: 2 heads, trained here: 2 steps" in page_text(at).replace("\\", "")
    last = at.session_state["trained_here"][NAME][-1]
    weights = forward(MODELS[NAME], Parameters.of(MODELS[NAME], last.state), Trained(NAME).tokens)[0][0].weights
    shown, _, _ = maps(at)
    assert any(np.array_equal(shown, head) for head in weights[0])


def press_now(at, label):
    """Press and draw once: another run would close the dialog."""
    next(button for button in at.button if button.label == label).click().run()
