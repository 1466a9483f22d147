"""The picture of heads: what it holds is what the Trace holds, and all of it is named, marked and explained."""

import json
import re
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz import Batch, Layer, Settings, View, attend, synthetic
from mha_viz.analysis import choose
from mha_viz.core.decimals import in_decimals
from mha_viz.figures.heads import average, describe, describe_average, heads, largest_weight, spec
from mha_viz.figures.serial import to_json

SMALL = Settings(embed_dim=16, num_heads=4, batch_size=2, seq_len=6, padding=(2,))


def maps(figure):
    return [trace for trace in figure["data"] if trace["type"] == "heatmap"]


def marked(figure):
    """Per trace of an outline: the [K, 2] centres of its rectangles."""
    found = [trace for trace in figure["data"] if trace.get("meta") == "mark"]
    return [np.stack([t["x"].reshape(-1, 7)[:, :2].mean(1), t["y"].reshape(-1, 7)[:, 1:3].mean(1)], 1) for t in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1104])
def test_plotly_accepts_it(theme, width):
    figure = heads(synthetic(SMALL), View(), theme, width)
    assert isinstance(figure, go.Figure)
    assert (figure.layout.width, figure.layout.height) == (
        width,
        spec(synthetic(SMALL), View(), theme, width)["layout"]["height"],
    )


@pytest.mark.parametrize(
    "settings", [SMALL, Settings(embed_dim=6, num_heads=3, seq_len=4, source_len=9, padding=(), causal=True)]
)
def test_each_map_is_the_traces(settings):
    trace, view = synthetic(settings), View(item=1)
    figure, choice = spec(trace, view), choose(trace, view)
    tiles = figure["layout"]["meta"]["tiles"]
    assert [tile["head"] for tile in tiles] == [*choice.order, choice.head, None]
    assert len(maps(figure)) == len(tiles)
    for tile, drawn in zip(tiles, maps(figure), strict=True):
        expected = trace.mean_weights[1] if tile["head"] is None else trace.weights[1, tile["head"]]
        assert drawn["z"].dtype == np.float32 and np.array_equal(drawn["z"], expected, equal_nan=True)
        assert (drawn["xaxis"], drawn["yaxis"], drawn["x0"], drawn["y0"]) == (*tile["axes"], tile["x0"], tile["y0"])


def test_only_the_chosen_heads_are_shown_beside_the_average_of_all():
    trace = synthetic(SMALL)
    figure = spec(trace, View(heads=(3, 1), order="index"))
    assert [trace["name"] for trace in maps(figure)] == ["head 1", "head 3", "head 1", "average of 4 heads"]
    assert np.array_equal(maps(figure)[-1]["z"], trace.mean_weights[0])


@pytest.mark.parametrize(
    ("arrangement", "names"), [("all", ["head 1", "head 3"]), ("pair", ["head 1", "head 3", "head 1"]), ("one", ["head 1"])]
)
def test_heads_stand_without_the_average_where_it_is_left_out(arrangement, names):
    figure = spec(synthetic(SMALL), View(heads=(3, 1), order="index", arrangement=arrangement), average=None)
    assert [trace["name"] for trace in maps(figure)] == names
    assert not any("average of" in note["text"] for note in figure["layout"]["annotations"])
    assert figure["layout"]["meta"]["order"] == [1, 3]


@pytest.mark.parametrize("arrangement", ["pair", "all", "one"])
def test_the_average_stands_alone_as_it_stands_beside_a_head(arrangement):
    trace, view = synthetic(SMALL), View(item=1, heads=(2, 0), scale="log", arrangement=arrangement)
    figure, beside = average(trace, view), spec(trace, replace(view, arrangement="pair"))
    (drawn,) = maps(figure)
    assert np.array_equal(drawn["z"], trace.mean_weights[1]) and drawn["name"] == "average of 4 heads"
    assert figure["layout"]["coloraxis"] == beside["layout"]["coloraxis"]
    meta = figure["layout"]["meta"]
    assert [tile["head"] for tile in meta["tiles"]] == [None] and meta["order"] == [] and meta["chosen"]["head"] is None
    assert len(marked(figure)[0]) == 1 and to_json(figure)


def test_the_average_alone_is_told_in_words():
    trace, view = synthetic(replace(SMALL, causal=True)), View(item=1, cell=(3, 2))
    weight = trace.mean_weights[1, 3, 2]
    assert describe_average(trace, view) == (
        "Attention map of the average of 4 heads, 6 queries by 6 keys. "
        f"Chosen cell: query 3, key 2: {weight:.6f}. Of 36 cells: 15 masked."
    )


@pytest.mark.parametrize(("average_at", "place"), [(-1, 1), (None, 1), (0, 2), (1, 2)])
def test_a_map_among_heads_with_and_without_the_average_has_its_own_mask(average_at, place):
    mask = np.zeros((2, 3, 3), bool)  # [N·H, L, S]
    mask[1, 0, 2] = True  # in head 1 alone
    trace = attend(Layer.random(4, 2, seed=1), Batch(np.ones((1, 3, 4), np.float32), attn_mask=mask))
    figure = spec(trace, View(arrangement="all", order="index"), average=average_at)
    (hatched,) = [one for one in figure["data"] if "fillpattern" in one]
    tile = figure["layout"]["meta"]["tiles"][place]
    assert (np.nanmin(hatched["x"]), np.nanmax(hatched["x"])) == pytest.approx((tile["x0"] + 1.5, tile["x0"] + 2.5), abs=1e-4)


def test_one_scale_from_zero_to_the_largest_real_weight():
    trace = synthetic(SMALL)
    axis = spec(trace, View(heads=(0,)))["layout"]["coloraxis"]
    assert (
        axis["cmin"] == 0 and axis["cmax"] == trace.weights[0][:, :4].max()
    )  # of all heads, shown or not; two queries are padded
    assert axis["colorbar"]["title"]["text"] == "weight"
    assert all(drawn["coloraxis"] == "coloraxis" for drawn in maps(spec(trace, View())))


def test_the_scale_survives_undefined_and_absent_rows():
    weights = np.array([[[np.nan, np.nan], [0.25, 0.75]]], np.float32)
    assert largest_weight(weights, np.array([False, False])) == 0.75
    assert largest_weight(weights, np.array([False, True])) == 1
    assert largest_weight(weights[:, :1], np.array([True])) == 1


def test_the_chosen_cell_is_marked_in_every_tile():
    figure = spec(synthetic(SMALL), View(cell=(3, 1)))
    origins = {}
    for tile in figure["layout"]["meta"]["tiles"]:
        origins.setdefault(tuple(tile["axes"]), []).append((tile["x0"] + 1, tile["y0"] + 3))
    centres = marked(figure)
    assert len(centres) == 6  # an outline and its halo: in the strip, in the head's map, in the average's
    for found, expected in zip(centres, np.repeat(np.array(list(origins.values()), object), 2), strict=True):
        assert found == pytest.approx(np.array(expected, float), abs=0.02)


def looks(figure):
    return {trace["legendgroup"] for trace in figure["data"] if "legendgroup" in trace}


def test_masked_padded_and_undefined_have_looks_and_a_legend():
    assert looks(spec(synthetic(SMALL), View())) == {"masked", "padded"}
    assert looks(spec(synthetic(SMALL), View(item=1))) == set()
    left = synthetic(
        Settings(embed_dim=16, num_heads=4, batch_size=1, seq_len=6, padding=(2,), padding_side="left", causal=True)
    )
    figure = spec(left, View())
    assert looks(figure) == {"masked", "undefined"}  # a padded query without a key is undefined
    named = [trace["name"] for trace in figure["data"] if trace.get("showlegend") and trace["type"] == "scatter"]
    assert named == ["undefined: no key left", "masked: may not be read"]
    assert [a["text"] for a in figure["layout"]["annotations"]].count("undefined") == 2  # in both large maps


def test_heads_with_masks_of_their_own():
    mask = np.zeros((2, 3, 3), bool)
    mask[0, 1, 2] = mask[1, 2, :] = True  # head 0: one cell; head 1: a whole row
    rng = np.random.default_rng(0)
    trace = attend(Layer.random(4, 2), Batch(rng.normal(size=(1, 3, 4)).astype("float32"), attn_mask=mask))
    for head, in_head in ((0, {"masked"}), (1, {"undefined"})):
        figure = spec(trace, View(head=head, order="index"))
        assert {t["legendgroup"] for t in figure["data"] if t.get("legendgroup") and t["xaxis"] == "x2"} == in_head
        assert {t["legendgroup"] for t in figure["data"] if t.get("legendgroup") and t["xaxis"] == "x3"} == {"undefined"}
        assert {t["legendgroup"] for t in figure["data"] if t.get("legendgroup") and t["xaxis"] == "x"} == {
            "masked",
            "undefined",
        }


def test_without_a_real_value_there_is_still_a_picture():
    trace = synthetic(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=3, padding=(3,)))
    figure = heads(trace, View())
    assert figure.layout.coloraxis.cmax == 1 and "undefined" in to_json(spec(trace, View()))
    assert "differs n/a" in describe(trace, View()) and "undefined in head 0" in describe(trace, View())


def test_weights_are_printed_up_to_eight_by_eight_and_only_where_there_are_any():
    def printed(length):
        trace = synthetic(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=length, padding=(1,)))
        return trace, [t for t in spec(trace, View(head=0))["data"] if t.get("mode") == "text" and t["xaxis"] == "x2"]

    trace, (numbers,) = printed(8)
    assert numbers["text"] == [in_decimals(float(w), 3) for w in trace.weights[0, 0, :7, :7].ravel()]
    assert printed(9)[1] == []


def test_tokens_are_named_exactly_on_every_axis_that_cells_lie_on():
    words = "<s> the the $5 <b>x</b>"
    trace = synthetic(Settings(embed_dim=8, num_heads=4, words=words, padding=()))
    figure = spec(trace, View(), width=360)  # the strip has rows
    exact = ["0 “&lt;s&gt;”", "1 “the”", "2 “the”", "3 “&#36;5”", "4 “&lt;b&gt;x&lt;/b&gt;”"]
    tiles = figure["layout"]["meta"]["tiles"]
    for tile in tiles:
        for axis, first in zip(tile["axes"], (tile["x0"], tile["y0"]), strict=True):
            ticks = figure["layout"][f"{axis[0]}axis{axis[1:]}"]
            names = dict(zip(np.round(ticks["tickvals"], 6), ticks["ticktext"], strict=True))
            assert [names[round(first + i, 6)] for i in range(5)] == exact
            assert ticks["showticklabels"] is False
    assert figure["layout"]["meta"]["keys"] == words.split()


def test_few_names_are_drawn():
    trace = synthetic(Settings(embed_dim=8, num_heads=1, batch_size=1, seq_len=128, padding=()))
    layout = spec(trace, View())["layout"]
    for axis in ("xaxis4", "yaxis4", "xaxis5", "yaxis5"):
        assert len(layout[axis]["tickvals"]) == len(layout[axis]["ticktext"]) <= 40


def test_large_maps_zoom_together():
    layout = spec(synthetic(SMALL), View())["layout"]
    for side in "xy":
        assert [layout[f"{side}axis{n}"].get("matches") for n in (2, 3, 4, 5)] == [None, *[f"{side}2"] * 3]
        assert layout[f"{side}axis"]["fixedrange"] is True


def test_zoom_is_kept_as_long_as_sizes_are():
    revision = lambda **more: spec(synthetic(Settings(embed_dim=8, num_heads=2, **more)), View())["layout"]["uirevision"]  # noqa: E731
    assert revision(seq_len=5, seed=1) == revision(seq_len=5, causal=True)
    assert revision(seq_len=5) != revision(seq_len=6)


def test_labels_say_what_the_numbers_are():
    figure = json.loads(to_json(spec(synthetic(SMALL), View())))
    texts = [annotation["text"] for annotation in figure["layout"]["annotations"]]
    assert any("differs most from the average first (Jensen–Shannon" in text for text in texts)
    assert sum("key → is read<br>query ↓ asks" in text for text in texts) == 2
    (labels,) = [trace["text"] for trace in figure["data"] if trace.get("mode") == "text" and trace["xaxis"] == "x"]
    assert len(labels) == 4 and all("differs" in label and "%" in label for label in labels)


def test_extra_columns_are_named():
    trace = synthetic(
        Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=4, padding=(), add_bias_kv=True, add_zero_attn=True)
    )
    assert spec(trace, View())["layout"]["meta"]["keys"][4:] == list(trace.key_tokens[0][4:])
    assert maps(spec(trace, View()))[0]["z"].shape == (4, 6)


def test_it_is_described_in_words():
    trace = synthetic(SMALL)
    words = describe(trace, View(head=2, cell=(1, 3)))
    assert "all 4 heads, 6 queries by 6 keys" in words
    assert (
        f"{trace.weights[0, 2, 1, 3]:.6f} in head 2" in words and f"{trace.mean_weights[0, 1, 3]:.6f} in the average" in words
    )
    assert "12 masked" in words and "8 padded" in words
    assert "2 of 4 heads" in describe(trace, View(heads=(0, 1)))
    assert "query 1, key 3:" in words, "a token that is its number is not named twice"
    named = describe(synthetic(Settings(embed_dim=8, num_heads=2, words="the cat", padding=())), View(cell=(1, 0)))
    assert "query 1 “cat”, key 0 “the”:" in named


@pytest.mark.parametrize("order", ["difference", "index", "entropy"])
def test_what_heads_are_told_apart_by_is_said_to_be_before_dropout(order):
    said = {}
    for training in (False, True):
        trace = synthetic(replace(SMALL, training=training))
        for width in (360, 700, 1600):
            caption = spec(trace, View(order=order), width=width)["layout"]["annotations"][0]["text"]
            said.setdefault(training, []).append("before dropout" in caption)
        said[training].append("before dropout" in describe(trace, View(order=order)))
    assert said == {False: [False] * 4, True: [True] * 4}


def test_sixty_four_heads_leave_room_for_the_pair():
    trace = synthetic(Settings(embed_dim=128, num_heads=64, batch_size=1, seq_len=32, padding=()))
    figure = spec(trace, View())["layout"]
    assert figure["height"] <= 640
    (labels,) = [t for t in spec(trace, View())["data"] if t.get("mode") == "text" and t["xaxis"] == "x"]
    assert [re.sub("<[^>]*>", "", text) for text in labels["text"]] == [str(head) for head in figure["meta"]["order"]]
    assert labels["textfont"]["size"] >= 12


LONG = Settings(embed_dim=24, num_heads=6, batch_size=1, seq_len=150, padding=(20,), causal=True)


def test_all_heads_large_and_the_average_last():
    trace = synthetic(SMALL)
    figure = spec(trace, View(arrangement="all", head=1))
    tiles = figure["layout"]["meta"]["tiles"]
    assert [tile["head"] for tile in tiles] == [*choose(trace, View()).order, None]
    assert {tuple(tile["axes"]) for tile in tiles} == {("x", "y")} and all(tile["named"][1] for tile in tiles)
    assert np.array_equal(maps(figure)[-1]["z"], trace.mean_weights[0])
    for axis in ("xaxis2", "yaxis2"):  # names of tokens, at tiles that there are
        texts = figure["layout"][axis]["ticktext"]
        assert set(texts) >= set("0123") and len(texts) == len(figure["layout"][axis]["tickvals"])
    printed = [t for t in figure["data"] if t.get("mode") == "text" and t["hoverinfo"] == "skip"]
    assert len(printed) == 1 + len(tiles)  # the labels, and the weights of each map of 6 × 6


def test_one_head_alone():
    figure = spec(synthetic(SMALL), View(arrangement="one", head=2))
    assert [trace["name"] for trace in maps(figure)] == ["head 2"]
    assert figure["layout"]["meta"]["order"] == list(choose(synthetic(SMALL), View()).order)  # keys still walk them
    pair = spec(synthetic(SMALL), View(head=2))
    across = [np.diff(layout["xaxis2"]["domain"])[0] for layout in (figure["layout"], pair["layout"])]
    assert across[0] > across[1]


@pytest.mark.parametrize("arrangement", ["pair", "all", "one"])
@pytest.mark.parametrize("scale", ["linear", "log", "percentile", "row"])
@pytest.mark.parametrize("colors", ["ink", "viridis"])
def test_plotly_accepts_every_view(arrangement, scale, colors):
    for trace, width in ((synthetic(SMALL), 1104), (synthetic(LONG), 360)):
        view = View(arrangement=arrangement, scale=scale, colors=colors)
        assert to_json(heads(trace, view, "dark", width).to_plotly_json())


@pytest.mark.parametrize("scale", ["linear", "log", "percentile"])
def test_on_every_scale_but_one_a_map_holds_the_weights_themselves(scale):
    trace = synthetic(SMALL)
    figure = spec(trace, View(scale=scale, head=1))
    assert np.array_equal(maps(figure)[-2]["z"], trace.weights[0, 1]) and "customdata" not in maps(figure)[-2]


def test_shares_of_a_row_have_the_weights_beside_them():
    trace = synthetic(SMALL)
    drawn = maps(spec(trace, View(scale="row", head=1)))[-2]
    assert np.array_equal(drawn["customdata"], trace.weights[0, 1])
    assert np.allclose(drawn["z"].max(axis=1), 1) and "%{customdata:.6f}" in drawn["hovertemplate"]


@pytest.mark.parametrize("kind", ["once", "stacked"])
def test_limits_set_the_ends_of_the_colours(kind):
    axis = spec(synthetic(SMALL), View(limits=(0.1, 0.15)), width=1104 if kind == "once" else 360)["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (0.1, 0.15)
    assert {"≤ 0.1", "≥ 0.15"} <= set(axis["colorbar"]["ticktext"])


@pytest.mark.parametrize("arrangement", ["pair", "all"])
def test_a_tile_never_has_more_cells_than_pixels(arrangement):
    trace = synthetic(LONG)
    figure = spec(trace, View(arrangement=arrangement), width=360)
    layout = figure["layout"]
    tile, drawn = layout["meta"]["tiles"][0], maps(figure)[0]
    across = (
        (layout["xaxis"]["domain"][1] - layout["xaxis"]["domain"][0]) * 360 / np.diff(layout["xaxis"]["range"])[0]
    )  # px a cell
    assert drawn["z"].shape[1] * 1.0 <= 150 * across + 1e-6 and drawn["z"].shape[1] < 150
    assert drawn["dx"] * drawn["z"].shape[1] == pytest.approx(150)  # the blocks fill the tile
    assert drawn["x0"] - drawn["dx"] / 2 == pytest.approx(tile["x0"] - 0.5)
    assert drawn["z"].max() == trace.weights[0, tile["head"]].max()
    assert "queries %{y}" in drawn["hovertemplate"] and "largest weight" in drawn["hovertemplate"]
    assert any("pooled" in text["text"] for text in layout["annotations"])


def test_a_large_map_is_pooled_beyond_512_and_says_so():
    trace = synthetic(Settings(embed_dim=2, num_heads=1, batch_size=1, seq_len=600, padding=()))
    figure = spec(trace, View(arrangement="one"))
    assert maps(figure)[0]["z"].shape == (300, 300)
    assert any("the largest weight of 2 × 2 cells" in text["text"] for text in figure["layout"]["annotations"])
    assert len(figure["layout"]["xaxis2"]["ticktext"]) == 300 and figure["layout"]["xaxis2"]["ticktext"][1] == "2 … 3"


@pytest.mark.parametrize(
    ("order", "words"), [("entropy", "entropy "), ("distance", "distance "), ("self", "own "), ("index", "differs ")]
)
def test_labels_say_what_the_heads_are_ordered_by(order, words):
    figure = spec(synthetic(Settings(embed_dim=16, num_heads=4, batch_size=1, seq_len=6, padding=())), View(order=order))
    (labels,) = [trace["text"] for trace in figure["data"] if trace.get("mode") == "text" and trace["xaxis"] == "x"]
    assert all(re.search(rf"{words}\d", label) for label in labels)
    assert ("%" in labels[0]) == (order != "distance")
    caption = figure["layout"]["annotations"][0]["text"]
    assert {"entropy": "entropy, the largest first", "index": "by number"}.get(order, "the largest first") in caption


def test_values_are_printed_in_black_or_white_by_their_colour():
    figure = spec(synthetic(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=4, padding=())), View(scale="row"))
    printed = next(t for t in figure["data"] if t.get("mode") == "text" and t["xaxis"] == "x2")
    assert set(printed["textfont"]["color"]) == {"#000000", "#ffffff"}


@pytest.mark.parametrize("order", ["difference", "index", "listed", "entropy"])
@pytest.mark.parametrize("arrangement", ["pair", "all"])
def test_the_heading_counts_the_heads_that_are_shown(order, arrangement):
    trace = synthetic(SMALL)
    for shown, said in ((None, "Every head"), ((1, 3), "2 of 4 heads")):
        view = View(order=order, arrangement=arrangement, heads=shown)
        assert spec(trace, view)["layout"]["annotations"][0]["text"].startswith((said, "Heads"))
    listed = spec(trace, View(order="listed", heads=(3, 1, 2), arrangement="all"))["layout"]["meta"]["tiles"]
    assert [tile["head"] for tile in listed] == [3, 1, 2, None]
