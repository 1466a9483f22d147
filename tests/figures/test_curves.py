"""How training went, as curves: every value stands, each line is named at its end, and the step that is shown is marked."""

import itertools
import math

import plotly.graph_objects as go
import pytest

from mha_viz.figures.curves import curves, describe
from mha_viz.figures.widths import width_of

STEPS = (0, 10, 20, 50, 800)
LINES = {"loss": [2.5, 1.2, 0.6, 0.2, 0.05], "accuracy": [0.1, 0.4, 0.7, 0.95, 1.0]}


def names(figure):
    """Where the lines are named: text → how high, 0 to 1."""
    return {note.text: note.y for note in figure.layout.annotations}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_holds_every_value(theme):
    figure = curves(STEPS, LINES, theme=theme)
    assert isinstance(figure, go.Figure)
    assert {line.name: list(line.y) for line in figure.data} == LINES
    assert [line.text for line in figure.data] == [tuple(map(str, STEPS))] * 2, "hovering names the step"
    assert figure.layout.xaxis.ticktext == tuple(map(str, STEPS)) and figure.layout.xaxis.title.text == "training steps"


def test_lines_are_told_apart_without_colour():
    figure = curves(STEPS, LINES | {"third": LINES["loss"], "fourth": LINES["loss"]})
    assert len({line.line.dash for line in figure.data}) == 4


def test_each_line_is_named_at_its_end_and_no_two_names_meet():
    figure = curves(STEPS, {"a": [1, 0.5], "b": [1, 0.5], "c": [1, 0.501], "d": [0, 0.9]}, height=170)
    places, apart = names(figure), 13 / (170 - 46)  # the height of a name in a plot of that height
    assert list(places) == ["a", "b", "c", "d"]
    ordered = sorted(places.values())
    assert all(above - below >= apart for below, above in itertools.pairwise(ordered))
    assert all(0 <= place <= 1 for place in ordered)


def test_names_that_all_end_at_the_top_stay_in_the_picture():
    places = sorted(names(curves(STEPS, {name: [0, 1.0] for name in "abc"})).values())
    assert places[-1] <= 1 and places[0] >= 0 and len(set(places)) == 3


def test_names_have_room_at_the_right():
    name = "accuracy: the token before"
    figure = curves(STEPS, {name: LINES["accuracy"]}, width=300)
    assert figure.layout.margin.r >= width_of(name, 13)
    assert figure.layout.margin.r + figure.layout.margin.l < 300


@pytest.mark.parametrize(("step", "place"), [(0, 0), (20, 2), (800, 4)])
def test_the_step_is_marked(step, place):
    [mark] = curves(STEPS, LINES, step).layout.shapes
    assert (mark.x0, mark.x1) == (place, place)
    assert describe(STEPS, LINES, step).endswith(f"Marked: after {step} steps.")


def test_without_a_step_or_with_one_that_was_not_kept_nothing_is_marked():
    assert not curves(STEPS, LINES).layout.shapes and not curves(STEPS, LINES, 11).layout.shapes
    assert "Marked" not in describe(STEPS, LINES)


def test_the_axis_reaches_the_largest_value_and_one():
    assert curves(STEPS, LINES).layout.yaxis.range[1] >= 2.5
    assert 1 <= curves(STEPS, {"accuracy": LINES["accuracy"]}).layout.yaxis.range[1] < 1.1


@pytest.mark.parametrize("value", [math.nan, math.inf, None])
def test_a_value_that_is_none_breaks_nothing(value):
    figure = curves(STEPS, {"loss": [2.0, value, 1.0], "accuracy": [0.1, 0.2, value]})
    assert figure.layout.yaxis.range[1] == pytest.approx(2.0 * 1.04)
    assert all(math.isfinite(place) for place in names(figure).values())
    figure.to_json()
    said = describe(STEPS, {"loss": [2.0, value, 1.0], "accuracy": [0.1, 0.2, value], "none": [value]})
    assert said == "Over 800 training steps: loss from 2.000 to 1.000; accuracy from 0.100 to 0.200."


def test_one_step_alone_is_drawn():
    figure = curves((0,), {"loss": [2.5]}, 0)
    low, high = figure.layout.xaxis.range
    assert low < 0 < high
    assert describe((0,), {"loss": [2.5]}) == "Over 0 training steps: loss from 2.500 to 2.500."


def test_many_steps_share_few_numbers_below():
    assert len(curves(range(200), {"loss": [1.0] * 200}).layout.xaxis.tickvals) <= 8
