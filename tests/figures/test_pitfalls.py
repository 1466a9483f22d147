"""The small maps of experiments: they hold the numbers, share one scale, and say in words what they show."""

import re
from itertools import combinations

import numpy as np
import pytest

from mha_viz import Settings, synthetic
from mha_viz.analysis.pitfalls import PITFALLS, Bench, Map
from mha_viz.figures.pitfalls import WIDTH, describe, shared_scale, small_map
from mha_viz.figures.theme import THEMES
from mha_viz.figures.widths import width_of

WORDS = Settings(words="internationalisation the cat\nthe <pad> & dog sleeps", padding=())


def maps(name, settings=None, **values):
    return PITFALLS[name].run(Bench.of(synthetic(settings or Settings())), **values).maps


@pytest.mark.slow
@pytest.mark.parametrize("settings", [Settings(num_heads=32), WORDS], ids=["32 heads", "words"])
@pytest.mark.parametrize("name", PITFALLS)
def test_every_map_holds_its_numbers_and_no_name_lies_on_another(name, settings):
    found = maps(name, settings)
    for one in found:
        figure = small_map(one, shared_scale(found))
        heatmap = next(trace for trace in figure.data if trace.type == "heatmap")
        np.testing.assert_array_equal(heatmap.z, one.values.astype(np.float32))
        assert figure.layout.width == WIDTH
        for a, b in combinations(boxes(figure), 2):
            assert a[2] <= b[0] + 1 or b[2] <= a[0] + 1 or a[3] <= b[1] + 1 or b[3] <= a[1] + 1, (a, b)
        for left, top, right, bottom in boxes(figure):
            assert left >= -1 and top >= -1 and right <= WIDTH + 1 and bottom <= figure.layout.height + 1


def boxes(figure):
    """(left, top, right, bottom) of every text around the map, in px."""
    width, height = figure.layout.width, figure.layout.height
    for note in figure.layout.annotations:
        text = re.sub(r"<[^>]*>", "", note.text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        size = width_of(text, note.font.size), note.font.size
        across, down = size[::-1] if note.textangle == -90 else size
        left = note.x * width - {"left": 0, "center": across / 2, "right": across}[note.xanchor]
        top = (1 - note.y) * height - down / 2
        yield left, top, left + across, top + down


def test_names_wider_than_their_column_stand_upright():
    found = maps("true-means-the-opposite", WORDS)
    names = [
        note for note in small_map(found[0], shared_scale(found)).layout.annotations if note.text.startswith("internation")
    ]
    assert sorted(note.textangle for note in names) == [-90, 0], "above its column, and beside its row"


@pytest.mark.parametrize("theme", THEMES)
def test_maps_share_one_scale_and_zero_is_paper(theme):
    found = maps("float-mask-of-zeros-and-ones")
    scale = shared_scale(found)
    assert scale.high == pytest.approx(max(one.values.max() for one in found))
    for one in found:
        axis = small_map(one, scale, theme).layout.coloraxis
        assert (axis.cmin, axis.cmax) == (0, scale.high)
        assert axis.colorscale[0][1] == THEMES[theme].paper


def test_cells_of_a_small_map_are_printed_and_hatched_where_they_hold_nothing():
    found = maps("true-means-the-opposite")
    figure = small_map(found[0], shared_scale(found))
    printed = next(trace for trace in figure.data if trace.type == "scatter" and trace.mode == "text")
    shown = ~np.isnan(found[0].values) & ~found[0].hidden
    assert list(printed.text) == [f"{value:.2f}" for value in found[0].values[shown]]
    assert {trace.legendgroup for trace in figure.data if trace.type == "scatter" and trace.fill == "toself"} == {
        "masked",
        "undefined",
    }


def test_a_hidden_cell_that_is_read_shows_its_number():
    """A mask that was meant and did not work must not be hatched over: the leak is what is to be seen."""
    one = Map("leak", np.float32([[0.25, 0.75], [1, 0]]), ("0", "1"), ("0", "1"), np.array([[False, True], [False, True]]))
    figure = small_map(one, shared_scale([one]))
    assert list(next(trace for trace in figure.data if trace.type == "scatter" and trace.mode == "text").text) == [
        "0.25",
        "0.75",
        "1.00",
    ]


def test_a_map_is_told_in_words():
    lost, kept = maps("causal-with-left-padding", padded=3)
    assert describe(lost).startswith(
        "padded on the left: a map of 8 × 8, query by key. 49 of 64 cells are hidden by a mask. 3 of 8 rows"
    )
    assert "The largest weight is 1.0000, at query 3, key 3." in describe(lost)
    assert "undefined" not in describe(kept)
    assert describe(maps("every-key-masked")[0]).endswith("8 of 8 rows are undefined.")
