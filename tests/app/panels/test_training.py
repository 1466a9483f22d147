"""Train it here: what is reached is shown as it comes and stays when somebody stops; one at a time, and never while a class is served."""

import time

import numpy as np
import pytest

import mha_viz.app.opened
import mha_viz.studies.training
from mha_viz.app import task
from mha_viz.core.budget import Budget
from mha_viz.sources.models import MODELS, Parameters, forward
from mha_viz.sources.trained import Trained
from mha_viz.studies.training import train
from tests.app.screen import errors, maps, models, page_text, press, set_to

NAME = "look-both-ways-2"


@pytest.fixture
def opened(monkeypatch):
    """The page with the dialog open; one event comes in a slice of the training."""
    monkeypatch.setattr(task, "SLICE", 0)
    monkeypatch.setitem(task._taken, "by", None)
    return press(models(model=NAME), "Train it here")


@pytest.fixture
def training(monkeypatch):
    """``training(steps)``: let a training be so short; the seeds asked for."""
    seeds = []

    def short(steps):
        def trained(name, seed):
            seeds.append(seed)
            yield from train(name, seed, steps)

        monkeypatch.setattr(mha_viz.studies.training, "train", trained)
        return seeds

    return short


def button(at, label):
    return next(one for one in at.button if one.label == label)


def labels(at):
    return [one.label for one in at.button if not one.disabled]


def start(at):
    return button(at, "Start").click().run()


def reports(at):
    return at.session_state["trained_here"][NAME]


def seed_of(at):
    return next(one for one in at.text_input if one.key == "training_seed")


def charts(at):
    return [chart.proto.alt for chart in at.get("plotly_chart") if chart.key.startswith(("curve_", "maps_"))]


def told(at):
    return [bar.proto.text for bar in at.get("progress")]


def to_the_end(at):
    while "Stop" in labels(at):
        at = at.run()
    return at


def test_it_says_what_it_will_do(opened):
    assert "800 steps of 64 sequences" in page_text(opened) and "The shipped weights have seed 1" in page_text(opened)
    assert seed_of(opened).value == "1" and charts(opened) == [] and "Stop" not in labels(opened)


@pytest.mark.slow
def test_progress_curves_and_heads_are_shown_to_the_end(opened, training):
    seeds = training(steps=20)
    seed_of(opened).set_value("5")
    at = start(opened)
    assert "Start" not in labels(at) and charts(at)
    at = to_the_end(at)
    assert seeds == [5] and reports(at)[-1].step == 20 and told(at) == ["trained to the end, step 20 of 20"]
    scores = reports(at)[-1].scores
    assert f"After 20 steps, on held-out sequences: accuracy: before {scores.accuracy['before']:.3f}" in page_text(at)
    assert f"loss {scores.loss:.4f}" in page_text(at)
    assert charts(at)[0].startswith(f"Over 20 training steps: loss from {reports(at)[0].scores.loss:.3f} to {scores.loss:.3f}")
    assert "1 layer by 2 heads as small maps" in charts(at)[1]
    assert task._taken["by"] is None and not at.exception


def test_stop_ends_it_early_and_what_is_reached_stays(opened, training):
    training(steps=400)
    at = start(opened).run()
    at = button(at, "Stop").click().run()
    reached = reports(at)[-1].step
    assert 0 < reached < 400 and told(at) == [f"stopped after step {reached} of 400"]
    last = next(report.step for report in reversed(reports(at)) if report.scores)
    assert f"After {last} steps, on held-out sequences" in page_text(at) and charts(at)[0].startswith(
        f"Over {last} training steps"
    )
    at = at.run()
    assert reports(at)[-1].step == reached and task._taken["by"] is None, "nothing goes on"
    training(steps=2)
    assert reports(to_the_end(start(at)))[-1].step == 2, "begun anew"


def test_going_elsewhere_ends_it(opened, training):
    training(steps=400)
    at = start(opened)
    now = at.session_state["task_training"]
    assert now.steps is not None
    at = set_to(set_to(at, "view_source", "file"), "view_source", "trained")
    assert "Start" not in labels(at) and now.steps is None and task._taken["by"] is None


def test_a_second_one_waits_until_the_first_is_done(opened, training, monkeypatch):
    training(steps=2)
    monkeypatch.setitem(task._taken, "by", "another session")
    monkeypatch.setitem(task._taken, "until", time.monotonic() + 60)
    at = start(opened)
    assert at.info[0].value.startswith("Somebody else is measuring or training on this server") and reports(at) == [], (
        "nothing began"
    )
    monkeypatch.setitem(task._taken, "by", None)
    assert reports(to_the_end(at.run()))[-1].step == 2


def test_a_training_that_breaks_lets_the_next_one_begin(opened, monkeypatch):
    def broken(name, seed):
        yield from list(train(name, seed, 1))[:1]
        raise RuntimeError

    monkeypatch.setattr(mha_viz.studies.training, "train", broken)
    at = start(opened)
    at = at.run()
    assert at.exception and "Stop" not in labels(at.run())
    assert task._taken["by"] is None


def test_it_is_off_while_a_class_is_served_and_says_why(monkeypatch):
    button = next(one for one in models(model=NAME).button if one.label.startswith("Train it here"))
    assert not button.disabled and "From random weights" in button.proto.help
    monkeypatch.setenv("MHA_VIZ_CLASS", "1")
    button = next(one for one in models(model=NAME).button if one.label.startswith("Train it here"))
    assert button.disabled and "Off while a class is served (run --class)" in button.proto.help


def test_what_was_trained_is_opened_as_any_recording(opened):
    opened.session_state["trained_here"] = {NAME: list(train(NAME, 3, 2))}
    at = press(opened.run(), "Open these heads")
    assert "Look both ways: 2 heads, trained here: 2 steps" in page_text(at).replace("\\", "")
    last = reports(at)[-1]
    weights = forward(MODELS[NAME], Parameters.of(MODELS[NAME], last.state), Trained(NAME).tokens)[0][0].weights
    shown, _, _ = maps(at)
    assert any(np.array_equal(shown, head) for head in weights[0])


def test_a_training_that_there_is_no_room_for_is_refused_with_what_is_open(opened, training, monkeypatch):
    monkeypatch.setattr(mha_viz.app.opened, "BUDGET", Budget(limit=1000))
    at, seeds = opened, training(20)
    at = start(at)
    (said,) = errors(at)
    assert said.startswith("**training = training of look-both-ways-2**: would take 435 KiB") and seeds == []
    monkeypatch.setattr(mha_viz.app.opened, "BUDGET", Budget())
    assert not errors(start(at)) and seeds, "which is said until Start is pressed again"


def test_heads_that_there_is_no_room_for_stay_in_the_dialog(opened, monkeypatch):
    opened.session_state["trained_here"] = {NAME: list(train(NAME, 3, 2))}
    monkeypatch.setattr(mha_viz.app.opened, "BUDGET", Budget(limit=1000))
    at = press(opened.run(), "Open these heads")
    (said,) = errors(at)
    assert "trained here" in said and "would take" in said and at.query_params.get("source") != "file"
