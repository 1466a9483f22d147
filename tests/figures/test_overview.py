"""The overview: every head of every layer, on one scale, named, marked and explained, at any width and of any number of layers."""

import itertools
import json

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from torch import nn

from mha_viz import Settings, Trained, View, changed, load, record, synthetic, trained
from mha_viz.analysis import choose, shown_trace
from mha_viz.core.intervention import Intervention
from mha_viz.figures.overview import alike, describe, has_gaps, place_of, spec
from mha_viz.figures.parts import Parts
from mha_viz.figures.serial import to_json

SMALL = Settings(embed_dim=16, num_heads=4, batch_size=2, seq_len=6, padding=(2,))
TWO = (synthetic(SMALL), synthetic(Settings(**vars(SMALL) | {"seed": 8})))
WIDTHS = (320, 390, 700, 1104, 2000)


def maps(figure):
    return [trace for trace in figure["data"] if trace["type"] == "heatmap"]


def texts(figure):
    return [note["text"] for note in figure["layout"]["annotations"]]


def many(layers, heads, length):
    """So many layers: the same one, which is quick."""
    return [synthetic(Settings(embed_dim=2 * heads, num_heads=heads, batch_size=1, seq_len=length, padding=()))] * layers


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_plotly_accepts_it(theme, width):
    figure = go.Figure(spec(TWO, View(), 0, theme, width))
    assert figure.layout.width == width


@pytest.mark.parametrize("item", [0, 1])
def test_each_map_is_the_traces(item):
    figure = spec(TWO, View(item=item), 1)
    assert [tile["head"] for tile in figure["layout"]["meta"]["tiles"]] == list(range(8))
    for place, drawn in enumerate(maps(figure)):
        np.testing.assert_array_equal(drawn["z"], TWO[place // 4].weights[item, place % 4])
        assert drawn["name"] == f"layer {place // 4} head {place % 4}"


def test_all_are_on_one_scale_that_reaches_the_largest_weight_of_a_real_query():
    figure = spec(TWO, View(), 0)
    assert len({drawn["coloraxis"] for drawn in maps(figure)}) == 1
    real = np.concatenate([trace.weights[0][:, ~trace.query_padding[0]] for trace in TWO])
    assert figure["layout"]["coloraxis"]["cmax"] == pytest.approx(real.max())
    assert spec(TWO, View(limits=(0, 0.5)), 0)["layout"]["coloraxis"]["cmax"] == 0.5


@pytest.mark.parametrize("layer", [0, 1])
def test_the_chosen_head_and_layer_are_marked(layer):
    view = View(head=2, cell=(1, 3))
    figure = spec(TWO, view, layer)
    assert figure["layout"]["meta"]["chosen"] == {"head": 4 * layer + 2, "query": 1, "key": 3}
    assert f"<b>layer {layer}</b>" in texts(figure) and f"layer {1 - layer}" in texts(figure)
    assert describe(TWO, view, layer) == f"Overview of 2 layers by 4 heads as small maps. Layer {layer} head 2 is chosen."


def test_where_nothing_is_chosen_it_is_the_head_that_the_picture_shows():
    for layer in (0, 1):
        head = choose(TWO[layer], View()).head
        assert spec(TWO, View(), layer)["layout"]["meta"]["chosen"]["head"] == 4 * layer + head


@pytest.mark.parametrize("order", ["difference", "index", "entropy"])
def test_heads_stand_in_their_own_order_whatever_orders_the_picture(order):
    assert [drawn["name"] for drawn in maps(spec(TWO, View(order=order), 0))] == [
        f"layer {layer} head {head}" for layer in (0, 1) for head in range(4)
    ]


def test_each_head_says_what_the_order_measures_of_it():
    figure = spec(TWO, View(order="entropy"), 0)
    labels = [text for trace in figure["data"] if trace.get("mode") == "text" for text in trace["text"]]
    assert sum("head" in str(text) or "%" in str(text) for text in labels) >= 8
    assert "entropy" in " ".join(texts(figure))


def test_layers_of_another_size_are_left_out_and_counted():
    traces = [TWO[0], synthetic(Settings(**vars(SMALL) | {"seq_len": 9})), TWO[1]]
    assert alike(traces, 0) == alike(traces, 2) == [0, 2] and alike(traces, 1) == [1]
    figure = spec(traces, View(), 2)
    assert [drawn["name"][:7] for drawn in maps(figure)] == ["layer 0"] * 4 + ["layer 2"] * 4
    assert any("1 other has maps of another size" in text for text in texts(figure))
    assert [place_of(traces, 2, tile) for tile in (0, 3, 4, 7)] == [(0, 0), (0, 3), (2, 0), (2, 3)]
    assert describe(traces, View(), 1).startswith("Overview of 1 layer by 4 heads")
    assert any("Every head of 1 layer," in text for text in texts(spec(traces, View(), 1)))


def test_a_layer_with_fewer_items_is_left_out_where_it_has_none():
    traces = [TWO[0], synthetic(Settings(**vars(SMALL) | {"batch_size": 1}))]
    assert alike(traces, 0, 0) == [0, 1] and alike(traces, 0, 1) == [0]
    assert len(maps(spec(traces, View(item=1), 0))) == 4


def test_what_holds_no_weight_is_hatched_in_each_layer_by_its_own_mask():
    causal = synthetic(Settings(**vars(SMALL) | {"causal": True}))
    plain = synthetic(Settings(**vars(SMALL) | {"padding": ()}))
    hatched = [trace["name"] for trace in spec([plain, causal], View(), 0)["data"] if "fillpattern" in trace]
    assert len(hatched) == 2 and all(one.startswith(("masked", "padded")) for one in hatched)
    assert not any("fillpattern" in trace for trace in spec([plain, plain], View(), 0)["data"])


def test_a_long_map_holds_the_largest_weight_of_each_block_and_says_so():
    traces = many(2, 2, 300)
    figure = spec(traces, View(), 0)
    for drawn in maps(figure):
        assert max(drawn["z"].shape) < 150
        assert drawn["z"].max() == traces[0].weights[0, int(drawn["name"][-1])].max()
        assert "largest" in drawn["hovertemplate"]
    assert any("largest" in text for text in texts(figure))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "traces",
    [TWO, many(12, 12, 24), many(2, 32, 8), many(2, 13, 8), many(1, 1, 3), many(3, 2, 300)],
    ids=["2×4", "12×12", "2×32", "2×13", "1×1", "long"],
)
def test_nothing_overlaps_or_leaves_the_picture(traces, width):
    figure = spec(traces, View(), 0, width=width)
    layout, tiles = figure["layout"], figure["layout"]["meta"]["tiles"]
    assert len(tiles) == sum(trace.weights.shape[1] for trace in traces)
    boxes = [tile["label"] for tile in tiles]
    for left, top, across, high in boxes:
        assert left >= 0 and top >= 0 and left + across <= width and top + high <= layout["height"]
    for (left, top, across, high), (other_left, other_top, other_across, other_high) in itertools.combinations(boxes, 2):
        beside = left + across <= other_left + 1 or other_left + other_across <= left + 1
        above = top + high <= other_top + 1 or other_top + other_high <= top + 1
        assert beside or above
    rows = [note["text"].replace("<b>", "").replace("</b>", "") for note in layout["annotations"]]
    assert {f"layer {layer}" for layer in range(len(traces))} <= {*rows}
    firsts = [tiles[layer * len(tiles) // len(traces)]["label"] for layer in range(len(traces))]
    assert len({left for left, *_ in firsts}) == 1, "each layer begins a row"


def test_many_heads_take_several_rows_a_layer_where_the_window_is_narrow():
    rows = {
        width: len({tile["y0"] for tile in spec(many(2, 32, 8), View(), 0, width=width)["layout"]["meta"]["tiles"]})
        for width in WIDTHS
    }
    assert rows[1104] == 2 and rows[390] == 4


@pytest.mark.parametrize("layers", [2, 6, 12])
def test_within_a_height_maps_are_lower_as_long_as_one_sees_them(layers):
    traces = many(layers, 4, 24)
    usual, lower = (spec(traces, View(), 0, parts=Parts(legend=False), **how)["layout"] for how in ({}, {"height": 164}))
    assert lower["height"] < usual["height"]
    assert (lower["height"] <= 164 + 9) is (layers == 2)  # and the end of the bar's numbers
    assert lower["meta"]["tiles"][4]["y0"] > 24  # a row is below the one before


def test_only_what_is_no_finite_number_needs_a_legend():
    assert not has_gaps(TWO) and not has_gaps([None, *TWO])
    none_left = synthetic(Settings(**vars(SMALL) | {"causal": True, "padding_side": "left"}))
    assert has_gaps([TWO[0], none_left])


def test_a_trained_models_overview_is_small_enough_to_send():
    traces = trained(Trained()).recording.traces
    cells = sum(trace.weights[0].size for trace in traces)
    assert len(to_json(spec(traces, View(), 0))) < 12 * cells
    json.loads(to_json(spec(traces, View(), 0)))


def test_layers_are_left_out_for_what_they_differ_in():
    heads, items = (
        synthetic(Settings(**vars(SMALL) | change)) for change in ({"num_heads": 2}, {"batch_size": 1, "padding": (0,)})
    )
    (text,) = {text for text in texts(spec([*TWO, heads, heads, items], View(item=1), 0)) if "other" in text}
    assert "2 others have another number of heads; 1 other has no batch item 1" in text and "another size" not in text


def test_steps_of_a_layer_are_steps():
    model = nn.Sequential(*[nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2)])
    with record(model) as recording:
        for _ in range(3):
            model(torch.randn(1, 4, 8))
    traces = recording.traces
    assert [trace.step for trace in traces] == [0, 0, 1, 1, 2, 2]
    figure = spec(traces, View(), 3)
    assert "<b>layer 1, step 1</b>" in texts(figure) and "layer 0, step 2" in texts(figure)
    assert any("Every head of 2 layers in 3 steps" in text for text in texts(figure))
    assert describe(traces, View(head=1), 3).endswith("Layer 1, step 1 head 1 is chosen.")
    with record(model, steps=1) as alone:
        model(torch.randn(1, 4, 8))
        model(torch.randn(1, 4, 8))
    assert [trace.step for trace in alone.traces] == [None, None]


def test_steps_stay_known_in_what_is_made_of_a_trace(tmp_path):
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    with record(model) as recording:
        model(torch.randn(1, 4, 8))
        model(torch.randn(1, 4, 8))
    recording.save(tmp_path / "run.npz")
    for trace in (recording.traces[1], load(tmp_path / "run.npz").traces[1]):
        assert (
            trace.step
            == changed(trace, Intervention({0: "zero"})).step
            == changed(trace, Intervention(temperature=2)).step
            == 1
        )
        assert shown_trace(trace, View(weighting="norms")).step == 1
