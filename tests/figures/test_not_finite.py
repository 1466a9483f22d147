"""NaN and infinite numbers that no mask made have a mark and a word of their own in every picture, and none is taken for a weight."""

import json

import numpy as np
import pytest
import torch

import mha_viz as mv
from mha_viz import View
from mha_viz.analysis import shown_trace
from mha_viz.analysis.long_maps import in_sight
from mha_viz.analysis.number import open_number
from mha_viz.analysis.walkthrough import walk
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.maps import trace_of_maps
from mha_viz.figures import heads, lines, number, overview, steps, token_in_heads
from mha_viz.figures.compare import describe_difference, difference_spec
from mha_viz.figures.drawn_lines import describe_lines
from mha_viz.figures.serial import to_json
from mha_viz.figures.tiles import LOOKS

NAN, INF, MINUS = (LOOKS[kind][0] for kind in ("nan", "inf", "-inf"))


def recorded(L, **masks):
    """One number of the input of nn.MultiheadAttention is NaN: key 1, which every query reads."""
    torch.manual_seed(0)
    module, x = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, L, 8)
    x[0, 1, 0] = np.nan
    with mv.record(module) as recording:
        module(x, x, x, **masks)
    return recording.traces[0]


def mixed(L=6):
    """A row without a key, and one cell each of NaN, ∞ and −∞ in head 0."""
    weights = np.tril(np.ones((1, 2, L, L), np.float32))
    weights /= weights.sum(axis=-1, keepdims=True)
    weights[0, :, 1] = np.nan
    weights[0, 0, 2, 1], weights[0, 0, 3, 1], weights[0, 0, 4, 2] = np.nan, np.inf, -np.inf
    return trace_of_maps(weights)


def legend(figure):
    return [trace["name"] for trace in figure["data"] if trace.get("showlegend")]


@pytest.mark.parametrize("L", [4, 40, 600])
@pytest.mark.parametrize("arrangement", ["pair", "all", "one"])
@pytest.mark.parametrize("scale", ["linear", "log", "percentile", "row"])
def test_a_nan_that_came_in_is_marked_in_maps_of_every_size(L, arrangement, scale):
    trace, view = recorded(L), View(arrangement=arrangement, scale=scale)
    figure = heads.spec(trace, view)
    assert legend(figure) == [NAN]
    json.loads(to_json(figure))
    said = heads.describe(trace, view)
    assert "NaN in head" in said and f"{L * L} NaN." in said and "undefined" not in said


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_each_kind_has_a_mark_of_its_own(theme):
    trace = mixed()
    figure = heads.spec(trace, View(), theme)
    assert legend(figure) == [LOOKS["undefined"][0], NAN, INF, MINUS, LOOKS["masked"][0]]
    said = heads.describe(trace, View(head=0, cell=(3, 1)))
    assert "∞ in head 0, ∞ in the average" in said and "6 undefined, 1 NaN, 1 ∞, 1 −∞" in said
    printed = [text for one in figure["data"] for text in one.get("text", ()) if one.get("mode") == "text"]
    assert not [text for text in printed if "nan" in text or "inf" in text]


def test_a_mask_that_hides_the_nan_does_not_save_the_row():
    """−∞ added to NaN is NaN, in PyTorch as here: the cells are marked as NaN, not as masked."""
    trace = recorded(4, attn_mask=torch.triu(torch.ones(4, 4, dtype=torch.bool), 1))
    assert trace.nonfinite.all() and not trace.undefined.any()
    assert legend(heads.spec(trace, View())) == [NAN]


def test_lines_mark_the_queries():
    figure = lines.spec(mixed(), View(arrangement="one"))
    assert {"query with +∞ in its row", "query with −∞ in its row"} <= set(legend(figure))
    assert "Query with NaN in its row, and no mask made it: 1." in describe_lines(mixed(), View())
    assert "Query with NaN in its row, and no mask made it: 40." in describe_lines(recorded(40), View())


def test_layers_difference_and_norms():
    one, other = recorded(4), mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=4, padding=()))
    assert legend(overview.spec([one, other], View(), 0)) == [NAN]
    figure = difference_spec(other, one, View())
    assert legend(figure) == [NAN]
    json.loads(to_json(figure))
    assert "B NaN." in describe_difference(other, one, View())
    assert legend(heads.spec(shown_trace(one, View(weighting="norms")), View())) == [NAN]


def test_the_opened_number_says_which_numbers_are_none():
    trace = recorded(4)
    d = open_number(trace, 0, 0, 2, 1)
    assert np.isfinite(d.q).all() and np.isnan(d.k).all() and not d.undefined
    said = number.describe_softmax(trace, d)
    assert "NaN" in said and "no key is left" not in said and "undefined" not in said
    assert "NaN in all" in number.describe_cell_in_heads(trace, d)
    assert "NaN in head 0." in token_in_heads.describe_token_in_heads(trace, d)
    assert "NaN" in number.describe_terms(trace, d) and "nan" not in number.describe_terms(trace, d)
    for figure in (number.terms, number.softmax, number.cell_in_heads, token_in_heads.token_in_heads):
        assert NAN in {one.name for one in figure(trace, d).data}, figure.__name__


def without_a_key():
    return mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=4, padding=(4,)))


def test_step_by_step_tells_nan_from_a_row_without_a_key():
    for trace, word, other in ((recorded(4), "NaN", "undefined"), (without_a_key(), "undefined", "NaN")):
        tensors = walk(trace, 0, 0, 2, 1).tensors["softmax"]
        said = steps.describe(tensors)
        assert f"at key 1 it is {word}" in said and other not in said
        assert (NAN in {one.name for one in steps.picture(tensors).data}) == (word == "NaN")


def test_a_long_map_marks_the_blocks_that_hold_a_nan():
    """One query of 700 is NaN: its block is, every other block is as it was."""
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=(1, 2, 700, 4)).astype(np.float32) for _ in range(2))
    before = in_sight(trace_of_call(Call(q, k), later=True), View())
    q[0, 1, 300] = np.nan
    after = in_sight(trace_of_call(Call(q, k), later=True), View())
    block = after.tokens.sight.block(0, 300)
    assert np.argwhere(after.nonfinite).tolist() == [[0, 1, block]] and not after.undefined.any()
    rest = np.arange(after.weights.shape[2]) != block
    np.testing.assert_array_equal(after.weights[:, :, rest], before.weights[:, :, rest])
    assert legend(heads.spec(after, View())) == [NAN]
