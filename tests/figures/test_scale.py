"""From weight to colour: each scale as its bar says, in every colour map."""

import re
from dataclasses import replace

import numpy as np
import pytest

from mha_viz import Settings, Trained, synthetic, trained
from mha_viz.figures.compare import difference
from mha_viz.figures.scale import DECADES, Scale, scale_of
from mha_viz.figures.theme import THEMES, contrast, luminance, readable_on, rgb
from mha_viz.settings import COLORS, View

ROWS = [np.array([[[0.5, 0.3, 0.2, 0.0], [0.9, 0.099, 0.001, 0.0], [np.nan] * 4]], np.float32)]
both = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)


def scale(kind, limits=None, rows=ROWS):
    return Scale.of(rows, View(scale=kind, limits=limits))


def test_linear_from_zero_to_the_largest():
    found = scale("linear")
    assert (found.low, found.high, found.below, found.above) == (0, np.float32(0.9), False, False)
    assert found.ticks()[1] == ["0", "0.2", "0.4", "0.6", "0.8"]


def test_limits_are_marked_where_weights_lie_beyond():
    found = scale("linear", (0.1, 0.5))
    assert (found.low, found.high) == (0.1, 0.5)
    values, texts = found.ticks()
    assert texts[values.index(0.1)] == "≤ 0.1" and texts[values.index(0.5)] == "≥ 0.5"
    assert scale("linear", (0, 1)).ticks()[1][-1] == "1" and scale("linear", (0, 1)).title(300) == "weight, ends set by hand"


def test_a_clipped_scale_ends_at_the_99th_percentile_of_what_may_be_read():
    rows = [np.append(np.linspace(0.001, 0.1, 1000), [5.0, 0.0, 0.0]).astype(np.float32)[None, None]]
    found = scale("percentile", rows=rows)
    assert 0.098 < found.high < 0.101 and found.above
    assert found.ticks()[1][-1].startswith("≥ 0.09")


def test_logarithmic_from_the_smallest_above_zero_but_not_below_its_decades():
    assert scale("log").low == pytest.approx(0.001, rel=1e-6)
    found = scale("log", rows=[np.array([[[1, 1e-12]]], np.float32)])
    assert found.low == 10.0**-DECADES and found.below and found.ticks()[1][0] == "≤ 1e−5"
    assert scale("log", (0.01, 0.1)).low == 0.01
    assert 0 < scale("log", rows=[np.zeros((1, 1, 3))]).low < 1  # nothing but zeros


def test_shares_of_a_row():
    found = scale("row", (0.1, 0.2))  # limits are weights
    assert (found.low, found.high, found.title(300)) == (0, 1, "share of the row's largest weight")
    drawn = found.drawn(np.array([[0.5, 0.25, 0], [0, 0, 0], [np.nan, np.nan, np.nan]], np.float32))
    assert np.array_equal(drawn, [[1, 0.5, 0], [0, 0, 0], [np.nan] * 3], equal_nan=True)


def test_a_change_runs_both_ways_from_nothing():
    found, theme = Scale("change", -0.4, 0.4), THEMES["light"]
    assert found.ticks()[1] == ["−0.4", "−0.2", "0", "+0.2", "+0.4"]
    assert found.color_at(theme, 0) == rgb(theme.paper)
    assert found.color_at(theme, 0.4) == rgb(theme.more[-1]) and found.color_at(theme, -0.4) == rgb(theme.less[-1])


def plotlys(axis, value):
    """(r, g, b) as Plotly mixes it from a colour axis."""
    stops = axis["colorscale"]
    part = min(max((value - axis["cmin"]) / (axis["cmax"] - axis["cmin"]), 0), 1)
    colors = np.array([rgb(c) if c[0] == "#" else [float(n) for n in c[4:-1].split(",")] for _, c in stops])
    return [np.interp(part, [at for at, _ in stops], colors[:, channel]) for channel in range(3)]


@both
@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize("kind", ["linear", "log", "percentile", "row", "change"])
def test_the_colour_that_is_computed_is_the_one_that_plotly_draws(theme, colors, kind):
    theme = theme.dressed(colors)
    found = Scale("change", -0.9, 0.9) if kind == "change" else scale(kind)
    axis = found.coloraxes(theme, {})["coloraxis"]
    for value in np.linspace(0.02, 0.9, 23):
        assert plotlys(axis, value) == pytest.approx(found.color_at(theme, value), abs=6)
    assert plotlys(axis, 0) == pytest.approx(rgb(theme.more[0] if kind == "change" else theme.ink[0]), abs=1)


@pytest.mark.parametrize("kind", ["linear", "log", "change"])
def test_without_a_bar_the_maps_have_their_colours_alone(kind):
    found, theme = Scale(kind, -0.9 if kind == "change" else 0.1, 0.9), THEMES["light"]
    (bare,), whole = found.coloraxes(theme, None).values(), found.coloraxes(theme, {"thickness": 14})
    assert bare["showscale"] is False and "colorbar" not in bare
    assert bare["colorscale"] == whole["coloraxis"]["colorscale"]


@both
def test_logarithmic_colours_are_even_over_the_decades(theme):
    found = Scale("log", 1e-4, 1)
    axes = found.coloraxes(theme, {"bar": 1})
    lights = [luminance(plotlys(axes["coloraxis"], 10.0**-power)) for power in (4, 3, 2, 1, 0)]
    assert lights == sorted(lights, reverse=bool(lights[0] > lights[-1]))
    bar = axes["coloraxis9"]
    assert (bar["cmin"], bar["cmax"]) == (-4, 0) and bar["colorbar"] == {"bar": 1} and "colorbar" not in axes["coloraxis"]
    for power in (-3.5, -2, -0.5):  # the bar has the maps' colours
        assert plotlys(bar, power) == pytest.approx(plotlys(axes["coloraxis"], 10**power), abs=3)


@both
@pytest.mark.parametrize("colors", COLORS)
def test_every_colour_map_begins_near_the_paper_and_is_ordered_by_lightness(theme, colors):
    light = [luminance(rgb(color)) for color in theme.dressed(colors).ink]
    paper = luminance(rgb(theme.paper))
    assert abs(light[0] - paper) < abs(light[-1] - paper)
    assert light == sorted(light, reverse=light[0] > light[-1])


@both
@pytest.mark.parametrize("colors", COLORS)
def test_numbers_can_be_read_on_every_colour(theme, colors):
    theme = theme.dressed(colors)
    for value in np.linspace(-1, 1, 41):
        color = Scale("change", -1, 1).color_at(theme, value)
        assert contrast(rgb(readable_on(color)), color) >= 4.5
        assert contrast(rgb(readable_on(theme.ink_at(value))), theme.ink_at(value)) >= 4.5


@pytest.mark.parametrize("name", ["light", "dark"])
def test_losses_are_as_light_as_gains_on_screens(name):
    theme = THEMES[name]
    for less, more in zip(theme.less, theme.more, strict=True):
        assert luminance(rgb(less)) == pytest.approx(luminance(rgb(more)), abs=0.06)


UNTRAINED = Settings(padding=())


@pytest.mark.parametrize(
    ("trace", "kind"),
    [
        (lambda: synthetic(UNTRAINED), "linear"),
        (lambda: synthetic(replace(UNTRAINED, causal=True)), "log"),  # the first row's weight is 1, others' largest 0.2 or so
        (lambda: trained(Trained("induction")).recording.traces[1], "linear"),  # causal, and its rows are sharp
        (lambda: synthetic(replace(UNTRAINED, causal=True, seq_len=4)), "linear"),  # all rows see few keys
    ],
    ids=["no mask", "causal", "causal and trained", "causal and short"],
)
def test_the_automatic_scale_is_logarithmic_where_forced_weights_would_leave_the_rest_blank(trace, kind):
    assert scale_of(trace(), 0, View()).kind == kind
    assert scale_of(trace(), 0, View(scale="linear")).kind == "linear"


def test_a_causal_a_does_not_leave_b_blank():
    a, b = synthetic(replace(UNTRAINED, causal=True)), synthetic(UNTRAINED)
    for one, other in ((a, b), (b, a)):
        axes = difference(one, other, View(), theme="dark").layout
        paper = THEMES["dark"].ink[0]
        middle = float(np.median(b.weights[0].max(axis=-1)))
        stops = [color for place, color in axes.coloraxis.colorscale if place <= middle / axes.coloraxis.cmax]
        assert (
            contrast(rgb(stops[-1]) if stops[-1][0] == "#" else tuple(map(int, re.findall(r"\d+", stops[-1]))), rgb(paper)) > 2
        )
