"""Maps and lines of another quantity than the weight say so: in captions, on the colour bar, on hover and in words."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mha_viz import Settings, View, synthetic
from mha_viz.analysis import open_number, shown_trace
from mha_viz.figures import heads, lines, overview, token_in_heads
from mha_viz.figures.compare import describe_difference, difference_spec
from mha_viz.figures.drawn_lines import describe_lines
from mha_viz.figures.scale import Scale
from mha_viz.figures.serial import to_json

VIEW = View(weighting="norms")
PLAIN = synthetic(Settings(embed_dim=16, num_heads=4, batch_size=2, seq_len=6, padding=(2,)))
SHOWN = shown_trace(PLAIN, VIEW)
PICTURES = {
    **{how: (heads.spec, heads.describe, (SHOWN, replace(VIEW, arrangement=how))) for how in ("pair", "all", "one")},
    "one scale a row": (heads.spec, heads.describe, (SHOWN, replace(VIEW, scale="row"))),
    "logarithmic": (heads.spec, heads.describe, (SHOWN, replace(VIEW, scale="log"))),
    "lines": (lines.spec, describe_lines, (SHOWN, VIEW)),
    "difference": (difference_spec, describe_difference, (SHOWN, SHOWN, VIEW)),
    "overview": (overview.spec, overview.describe, ([SHOWN, SHOWN], VIEW, 1)),
}


@pytest.mark.parametrize("width", [1104, 390])
@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_says_it(name, width):
    spec, describe, given = PICTURES[name]
    figure = json.loads(to_json(spec(*given, width=width)))
    assert figure["layout"]["meta"]["quantity"] == "value-norm weight"
    texts = [text["text"] for text in figure["layout"]["annotations"]] if "annotations" in figure["layout"] else []
    texts += [text for trace in figure["data"] if trace.get("mode") == "text" for text in trace["text"]]
    assert any("value-norm weighted" in text for text in texts), "the caption says it at any width"
    hovers = [trace["hovertemplate"] for trace in figure["data"] if "hovertemplate" in trace]
    assert hovers and all("value-norm weight" in text or "change" in text for text in hovers)
    assert "value-norm weighted" in describe(*given)


@pytest.mark.parametrize("name", PICTURES)
def test_no_picture_says_it_of_plain_weights(name):
    spec, describe, given = PICTURES[name]
    plain = [PLAIN if one is SHOWN else [PLAIN, PLAIN] if isinstance(one, list) else one for one in given]
    assert "norm" not in to_json(spec(*plain)).replace('"normal"', "") and "norm" not in describe(*plain)
    assert spec(*plain)["layout"]["meta"]["quantity"] == "weight"


def test_what_is_drawn_is_what_is_shown():
    figure = heads.spec(SHOWN, replace(VIEW, item=1, arrangement="all", order="index"))
    maps = [trace["z"] for trace in figure["data"] if trace["type"] == "heatmap"]
    np.testing.assert_array_equal(maps, [*SHOWN.weights[1], SHOWN.mean_weights[1]])


def test_a_token_in_all_heads_says_it():
    derivation = open_number(PLAIN, 0, 1, 2, 3)
    figure = token_in_heads.token_in_heads(SHOWN, derivation, "query", VIEW)
    hovers = [trace.hovertemplate for trace in figure.data if trace.type == "heatmap"]
    assert all("value-norm weight %{customdata" in text for text in hovers)


@pytest.mark.parametrize(
    ("kind", "room", "title"),
    [
        ("linear", 300, "value-norm weight"),
        ("linear", 100, "norm weight"),
        ("log", 300, "value-norm weight, logarithmic"),
        ("row", 400, "share of the row's largest value-norm weight"),
        ("row", 100, "of row's largest"),
        ("log", 10, "norm weight, log"),
    ],
)
def test_the_bar_says_it_in_the_room_that_it_has(kind, room, title):
    assert Scale(kind, 0.1, 1.0, quantity="value-norm weight").title(room) == title
