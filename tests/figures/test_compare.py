"""A beside B: what the picture holds is what the Traces hold, and their difference."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz import Settings, View, synthetic
from mha_viz.analysis import choose
from mha_viz.figures.compare import describe_difference, difference, difference_spec
from mha_viz.figures.serial import to_json

SMALL = Settings(embed_dim=16, num_heads=4, batch_size=2, seq_len=6, padding=(2,))
A, CAUSAL = synthetic(SMALL), synthetic(replace(SMALL, causal=True))


def tiles(figure):
    maps = [trace for trace in figure["data"] if trace["type"] == "heatmap"]
    return list(zip(figure["layout"]["meta"]["tiles"], maps, strict=True))


def texts(figure):
    return [annotation["text"] for annotation in figure["layout"]["annotations"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 944, 1104])
@pytest.mark.parametrize("other", [CAUSAL, synthetic(replace(SMALL, seq_len=9)), synthetic(replace(SMALL, num_heads=2))])
def test_plotly_accepts_it_and_its_json_is_whole(other, theme, width):
    figure = difference(A, other, View(), theme, width)
    assert isinstance(figure, go.Figure) and figure.layout.width == width
    assert to_json(difference_spec(A, other, View(), theme, width))


def test_the_chosen_head_of_a_of_b_and_what_changed():
    figure, head = difference_spec(A, CAUSAL, View(item=1, head=2)), 2
    *strip, a, b, change = tiles(figure)
    assert [tile["source"] for tile, _ in (a, b, change)] == ["a", "b", "difference"]
    assert [tile["head"] for tile, _ in strip] == list(choose(CAUSAL, View(item=1)).order)
    assert np.array_equal(a[1]["z"], A.weights[1, head]) and np.array_equal(b[1]["z"], CAUSAL.weights[1, head])
    for tile, drawn in (*strip, change):
        before, after = (trace.weights[1, tile["head"]] for trace in (A, CAUSAL))
        assert np.allclose(drawn["z"], after - before, atol=1e-7) and drawn["coloraxis"] == "coloraxis2"
        assert tile["source"] == "difference" and "change" in drawn["hovertemplate"]
    assert a[1]["coloraxis"] == b[1]["coloraxis"] == "coloraxis"


def test_one_scale_for_both_and_one_around_zero():
    layout = difference_spec(A, CAUSAL, View())["layout"]
    real = slice(0, 4)
    assert layout["coloraxis"]["cmax"] == max(trace.weights[0][:, real].max() for trace in (A, CAUSAL))
    largest = np.abs(CAUSAL.weights[0][:, real] - A.weights[0][:, real]).max()
    assert layout["coloraxis2"]["cmax"] == pytest.approx(largest) == -layout["coloraxis2"]["cmin"]
    assert [layout[axis]["colorbar"]["title"]["text"] for axis in ("coloraxis", "coloraxis2")] == ["weight", "change"]


def test_what_is_hidden_in_either_is_hatched_and_a_loss_to_a_mask_shows_through():
    figure = difference_spec(A, CAUSAL, View())
    hatches = {t["legendgroup"]: t for t in figure["data"] if t.get("legendgroup") and t["xaxis"] == "x4"}
    assert set(hatches) == {"masked", "once", "padded"}
    assert hatches["once"]["fillpattern"]["bgcolor"] == "rgba(0,0,0,0)" != hatches["masked"]["fillpattern"]["bgcolor"]
    assert "masked in one of the two" in [t["name"] for t in figure["data"] if t.get("showlegend") and "legendgroup" in t]


def test_the_chosen_cell_is_marked_in_all_of_them():
    figure = difference_spec(A, CAUSAL, View(cell=(3, 1)))
    marks = [trace for trace in figure["data"] if trace.get("meta") == "mark"]
    assert len(marks) == 8 and all(len(trace["x"]) >= 7 for trace in marks)
    assert figure["layout"]["meta"]["chosen"] == {"head": choose(CAUSAL, View()).head, "query": 3, "key": 1}


def test_other_head_counts_leave_the_averages():
    two = synthetic(replace(SMALL, num_heads=2))
    figure = difference_spec(A, two, View())
    (a, b, change) = tiles(figure)
    assert a[0]["head"] is b[0]["head"] is None
    assert np.allclose(change[1]["z"], two.mean_weights[0] - A.mean_weights[0], atol=1e-7)
    assert any("A has 4 heads and B 2" in text for text in texts(figure))


def test_other_sizes_stand_side_by_side_with_their_own_tokens():
    longer = synthetic(replace(SMALL, seq_len=9, padding=(0,)))
    figure = difference_spec(A, longer, View(cell=(8, 8)))
    layout, (a, b) = figure["layout"], tiles(figure)
    assert (a[1]["z"].shape, b[1]["z"].shape) == ((6, 6), (9, 9)) and "coloraxis2" not in layout
    sides = layout["meta"]["sides"]
    assert [len(sides[tile["side"]]["queries"]) for tile, _ in (a, b)] == [6, 9]
    assert layout["xaxis3"].get("matches") is None  # each zooms by itself
    assert any("their cells are not the same pairs of tokens" in text for text in texts(figure))
    marks = [len(trace["x"]) for trace in figure["data"] if trace.get("meta") == "mark"]
    assert marks == [0, 0, 7, 7]  # A has no such cell


def test_other_tokens_are_compared_by_position_each_under_its_own_names():
    a, b = (synthetic(replace(SMALL, words=words, padding=())) for words in ("a b c", "x y z"))
    figure = difference_spec(a, b, View())
    sides, found = figure["layout"]["meta"]["sides"], tiles(figure)
    assert [sides[tile["side"]]["keys"] for tile, _ in found[-3:]] == [["a", "b", "c"], ["x", "y", "z"], ["x", "y", "z"]]
    assert any("compared by position" in text for text in texts(figure))


def test_equal_traces_have_no_difference():
    figure = difference_spec(A, A, View())
    assert not np.any(tiles(figure)[-1][1]["z"]) and figure["layout"]["coloraxis2"]["cmax"] == 1
    assert "No weight changed." in describe_difference(A, A, View())


def test_what_is_undefined_in_one_of_them_has_no_change():
    left = replace(SMALL, padding_side="left", causal=True)  # the first rows have no key
    figure = difference_spec(A, synthetic(left), View(cell=(0, 2)))
    assert np.isnan(tiles(figure)[-1][1]["z"][0]).all()
    assert "undefined" in [t["legendgroup"] for t in figure["data"] if t.get("legendgroup") and t["xaxis"] == "x4"]
    assert "B undefined." in describe_difference(A, synthetic(left), View(cell=(0, 2)))


def test_it_is_described_in_words():
    words = describe_difference(A, CAUSAL, View(head=2, cell=(1, 0)), names=("before", "after"))
    before, after = (trace.weights[0, 2, 1, 0] for trace in (A, CAUSAL))
    assert "before and after: head 2" in words
    assert f"before {before:.6f}, after {after:.6f}, {after - before:+.6f}" in words
    assert "Largest change: query 0, key 0" in words
    longer = synthetic(replace(SMALL, seq_len=9))
    assert "their cells are not the same pairs of tokens" in describe_difference(A, longer, View())


@pytest.mark.parametrize(("heads", "said"), [(None, "of every head, as ordered"), ((1, 3), "of 2 of 4 heads, as ordered")])
def test_the_heading_counts_the_heads_that_are_shown(heads, said):
    a, b = (synthetic(Settings(embed_dim=16, num_heads=4, batch_size=1, seq_len=6, padding=(), seed=seed)) for seed in (1, 2))
    texts = [one["text"] for one in difference(a, b, View(heads=heads)).layout.annotations]
    assert any(said in text for text in texts)


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_print_draws_lines_across_what_b_has_less_of_and_the_legend_says_so(theme):
    a, b = (synthetic(Settings(embed_dim=16, num_heads=4, batch_size=1, seq_len=10, padding=(), seed=seed)) for seed in (1, 2))
    view = View(head=2, scale="linear")
    figure = difference(a, b, view, theme=theme)
    lines = [one for one in figure.data if one.name == "lower in B"]
    if theme != "print":
        assert not lines
        return
    change = b.weights[0, 2].astype(float) - a.weights[0, 2]
    lost = change < 0
    large = next(one for one in lines if one.xaxis != "x" and len(one.x) > 1)
    x, y = np.asarray(large.x), np.asarray(large.y)
    ends = np.flatnonzero(np.isnan(x))
    area = 0.0
    for start, stop in zip(np.append(0, ends[:-1] + 1), ends, strict=True):
        px, py = x[start:stop], y[start:stop]
        area += abs(np.dot(px, np.roll(py, 1)) - np.dot(py, np.roll(px, 1))) / 2
    assert area == pytest.approx(lost.sum()) and sum(one.showlegend for one in lines) == 1
