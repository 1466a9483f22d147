"""Pictures of what is in sight of a long sequence: every view of whole maps, which says how much of it there is, and how exactly."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mha_viz.analysis import choose
from mha_viz.analysis.compare import common
from mha_viz.analysis.long_maps import LongMaps, in_sight
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.intervention import Intervention, changed
from mha_viz.core.mask import Mask
from mha_viz.figures import heads, lines
from mha_viz.figures.compare import describe_difference, difference_spec
from mha_viz.figures.drawn_lines import Drawn, describe_lines
from mha_viz.figures.serial import to_json
from mha_viz.settings import View

L = 1200
CALL = Call(*(np.random.default_rng(i).normal(size=(1, 8, L, 4)).astype(np.float32) for i in range(3)), Mask(L, L, causal=True))
TRACE = trace_of_call(CALL, later=True)
PART = View(rows=(300, 360), columns=(280, 340))
PICTURES = {
    "pair": (heads.spec, heads.describe, View()),
    "all": (heads.spec, heads.describe, View(arrangement="all")),
    "one": (heads.spec, heads.describe, View(arrangement="one")),
    "lines": (lines.spec, describe_lines, View()),
    "difference": (
        lambda seen, *how, **more: difference_spec(seen, seen, *how, **more),
        lambda seen, view: describe_difference(seen, seen, view),
        View(),
    ),
}


def drawn(spec, seen, view, **how):
    return json.loads(to_json(spec(seen, view, **how)))


def texts(figure):
    found = [text["text"] for text in figure["layout"].get("annotations", [])]
    return " ".join(found + [text for trace in figure["data"] if trace.get("mode") == "text" for text in trace["text"]])


@pytest.mark.slow
@pytest.mark.parametrize("width", [1104, 390])
@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_says_that_it_is_pooled_or_exact(name, width):
    spec, describe, view = PICTURES[name]
    closer = replace(view, rows=PART.rows, columns=PART.columns)
    for part, said, quantity in ((view, "pooled, max of 5 × 5", "largest weight"), (closer, "exact", "weight")):
        seen = in_sight(TRACE, part)
        figure = drawn(spec, seen, part, width=width)
        assert said in texts(figure) and said in describe(seen, part)
        assert figure["layout"]["meta"]["quantity"] == quantity
    mean = replace(view, pooling="mean")
    assert "pooled, mean of 5 × 5" in texts(drawn(spec, in_sight(TRACE, mean), mean, width=width))


@pytest.mark.parametrize("name", PICTURES)
def test_rows_and_columns_are_called_by_their_numbers_in_the_whole(name):
    spec, describe, view = PICTURES[name]
    part = replace(view, rows=PART.rows, columns=PART.columns, cell=(310, 290))
    seen = in_sight(TRACE, part)
    meta = drawn(spec, seen, part)["layout"]["meta"]
    where = meta["sides"][0] if meta["kind"] == "maps" else meta
    assert where["first"] == [300, 280] and where["blocks"] == [False, False] and where["queries"][0] == "300"
    assert (meta["chosen"]["query"], meta["chosen"]["key"]) == (10, 10) and "query 310" in describe(seen, part)
    blocks = drawn(spec, in_sight(TRACE, view), view)["layout"]["meta"]
    where = blocks["sides"][0] if meta["kind"] == "maps" else blocks
    assert where["blocks"] == [True, True] and where["queries"][1] == "5–9"


def test_blocks_of_another_length_are_other_cells():
    short = trace_of_call(
        Call(*(array[:, :, :480] for array in (CALL.q, CALL.k, CALL.v)), Mask(480, 480, causal=True)), later=True
    )
    a, b = in_sight(short, View()), in_sight(TRACE, View())
    assert a.weights.shape == b.weights.shape and "A's maps are 480 × 480 and B's 1200 × 1200" in common(a, b).notes[0]
    said = (
        texts(drawn(lambda seen, *how, **more: difference_spec(a, seen, *how, **more), b, View())),
        describe_difference(a, b, View()),
    )
    assert all("pooled, max of 2 × 2" in one and "pooled, max of 5 × 5" in one for one in said)


def test_another_part_begins_without_the_zoom_of_the_last():
    views = PART, replace(PART, rows=(400, 460)), View()
    revisions = {drawn(heads.spec, in_sight(TRACE, view), view)["layout"]["uirevision"] for view in views}
    assert len(revisions) == 3


def test_the_scale_of_blocks_is_logarithmic_from_the_least_of_heads_and_average():
    for view in (View(), View(pooling="mean")):
        seen = in_sight(TRACE, view)
        figure = drawn(heads.spec, seen, view)
        bar = figure["layout"]["coloraxis9"]
        least = min(array[array > 0].min() for array in (seen.weights, seen.mean_weights))
        assert 10 ** bar["cmin"] == pytest.approx(max(least, figure["layout"]["meta"]["largest"]["weight"] / 1e5), rel=1e-5)
    assert "coloraxis9" not in drawn(heads.spec, in_sight(TRACE, PART), PART)["layout"]
    linear = replace(View(), scale="linear")
    assert "coloraxis9" not in drawn(heads.spec, in_sight(TRACE, linear), linear)["layout"]


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_lines_have_the_scale_of_maps(pooling):
    view = View(pooling=pooling)
    seen = in_sight(
        changed(TRACE, Intervention(dict.fromkeys(range(1, 8), "zero"))), view
    )  # the average is an eighth of head 0
    assert 10 ** drawn(heads.spec, seen, view)["layout"]["coloraxis9"]["cmin"] == pytest.approx(Drawn(seen, view).scale.low)


@pytest.mark.parametrize("order", ["difference", "entropy"])
def test_how_far_heads_are_from_the_average_is_not_said_before_it_is_known(order):
    part = replace(PART, order=order)
    seen = in_sight(TRACE, part)
    assert choose(seen, part).known == (order == "entropy")
    for picture in (heads.describe(seen, part), texts(drawn(lines.spec, seen, part))):
        assert "differs" not in picture and "n/a" not in picture


def test_before_the_average_is_there_its_place_is_kept():
    maps = LongMaps(TRACE, View())
    while len(maps.maps) < 2:
        next(maps.steps)
    seen = maps.seen("max")
    figure = drawn(heads.spec, seen, View())
    assert [tile["head"] for tile in figure["layout"]["meta"]["tiles"]] == [0, 1, 0, None]
    assert (
        "comes after the heads" in texts(figure)
        and "differs" not in texts(figure)
        and "average" not in heads.describe(seen, View())
    )
    assert [panel["head"] for panel in drawn(lines.spec, seen, View())["layout"]["meta"]["panels"]] == [0]


@pytest.mark.parametrize("swapped", [False, True])
def test_beside_blocks_every_weight_is_told_apart(swapped):
    """A long and B short, or the other way round: on a linear scale that ends at 1 the blocks would be blank."""
    short = trace_of_call(
        Call(*(array[:, :, :30] for array in (CALL.q, CALL.k, CALL.v)), Mask(30, 30, causal=True)), later=True
    )
    pair = [short, in_sight(TRACE, View())]
    a, b = pair[::-1] if swapped else pair
    bars = [difference_spec(a, b, View(scale=kind))["layout"].get("coloraxis9") for kind in ("auto", "log", "linear")]
    assert bars[0] == bars[1] != bars[2]
    assert bars[0]["colorbar"]["title"]["text"] == "weight, logarithmic"
