"""Pictures of long sequences: pooled maps say what their blocks are, windows are exact."""

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz.core.call import Call
from mha_viz.core.long import pooled, window
from mha_viz.core.mask import Mask
from mha_viz.core.tokens import Tokens
from mha_viz.figures.long import describe, every_head, exact_head, pooled_head
from mha_viz.settings import View

L = 300
PADDING = np.arange(L)[None] >= 290
TOKENS = Tokens.of(1, L, L, [[f"t{i}" for i in range(L)]], query_padding=PADDING)
RANDOM = np.random.default_rng(0)
CALL = Call(
    *(RANDOM.normal(size=(1, 3, L, 8)).astype(np.float32) for _ in range(2)), mask=Mask(L, L, causal=True, padded=PADDING)
)
MAPS = list(pooled(CALL, [0, 2], shape=(30, 30)))


def maps_of(figure):
    return [trace for trace in go.Figure(figure).data if trace.type == "heatmap"]


def words(figure):
    return " ".join(annotation["text"] for annotation in figure["layout"]["annotations"])


@pytest.mark.parametrize(("pooling", "quantity"), [("max", "largest weight"), ("mean", "mean weight")])
def test_a_pooled_head_holds_its_blocks_and_says_so(pooling, quantity):
    figure = pooled_head(TOKENS, MAPS, (2, 7, 3), View(pooling=pooling))
    (map,) = maps_of(figure)
    assert np.array_equal(map.z, MAPS[1].largest if pooling == "max" else MAPS[1].mean, equal_nan=True)
    assert f"pooled, {pooling} of 10 × 10" in words(figure)
    meta = figure["layout"]["meta"]
    assert meta["quantity"] == quantity and meta["chosen"] == {"head": 2, "query": 7, "key": 3}
    (side,) = meta["sides"]
    assert side["blocks"] and side["queries"][:2] == ["0–9", "10–19"] and side["rows"][:2] == ["0", "10"]


def test_every_head_so_far_stands_beside_the_others():
    figure = every_head(TOKENS, MAPS, (2, 7, 3), View())
    assert [map.name for map in maps_of(figure)] == ["head 0", "head 2"]
    assert "pooled: each pixel is the largest weight among 10 × 10 cells" in words(figure)
    assert {trace.get("name") for trace in figure["data"]} >= {"masked: may not be read", "padded query"}


def test_a_window_is_exact_and_its_tokens_keep_their_numbers():
    found = window(CALL, 2, (100, 120), (90, 115))
    figure = exact_head(TOKENS, found, (105, 91), View())
    (map,) = maps_of(figure)
    assert np.array_equal(map.z, found.p)
    assert "exact: queries 100–119, keys 90–114" in words(figure)
    meta = figure["layout"]["meta"]
    (side,) = meta["sides"]
    assert side["first"] == [100, 90] and side["queries"][0] == "t100" and not side["blocks"]
    assert meta["chosen"] == {"head": 2, "query": 5, "key": 1} and meta["quantity"] == "weight"


def test_the_words_for_those_who_do_not_see_it():
    from mha_viz.core.attend import trace_of_call

    said = describe(trace_of_call(CALL, later=True), MAPS, MAPS[0], View())
    what = "3 heads, 300 queries by 300 keys, pooled: each cell is the largest weight of a block of 10 × 10."
    assert said.startswith(f"Attention maps of 2 of {what}")
