"""What is in sight of a long Trace is what the whole maps would show, and grows step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.analysis import choose, long_maps, open_number, statistic, why_not
from mha_viz.analysis.choice import place_of
from mha_viz.analysis.long_maps import LongMaps, in_sight, open_in_sight
from mha_viz.analysis.norms import shown_trace
from mha_viz.analysis.statistics import STATISTICS, is_known
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.intervention import Intervention, changed
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Wrong
from mha_viz.settings import View
from tests.core.test_long import calls


def with_values(call):
    """The same Call, with values and an output projection."""
    rng = np.random.default_rng(1)
    (N, H, _, D), G, S = call.q.shape, call.k.shape[1], call.k.shape[2]
    v, weight = rng.normal(size=(N, G, S, D)), rng.normal(size=(6, H * D))
    return Call(call.q, call.k, v, call.mask, out_weight=weight, tokens=call.tokens)


def finished(trace, view, **how):
    maps = LongMaps(trace, view, **how)
    for _ in maps.steps:
        if maps.complete:
            return maps


@settings(derandomize=True, deadline=None, max_examples=40)
@given(calls(), st.sampled_from(["weights", "norms"]), st.data())
def test_an_exact_sight_is_cut_from_the_whole(call, weighting, data):
    trace = trace_of_call(with_values(call))
    L, S = trace.shape[2:]
    rows, columns = (sorted(data.draw(st.lists(st.integers(0, most), min_size=2, max_size=2, unique=True))) for most in (L, S))
    view = View(item=1, rows=tuple(rows), columns=tuple(columns), weighting=weighting)
    seen, whole = finished(trace, view).seen("max"), shown_trace(trace, view)
    cut = np.s_[1, :, slice(*rows), slice(*columns)]
    for name in ("weights", "probabilities", "mask"):
        np.testing.assert_allclose(getattr(seen, name)[1], getattr(whole, name)[cut], rtol=0, atol=1e-5)
    np.testing.assert_allclose(seen.mean_weights[1], whole.mean_weights[1, slice(*rows), slice(*columns)], rtol=0, atol=1e-5)
    assert np.array_equal(seen.undefined[1], whole.undefined[1, :, slice(*rows)])
    assert np.array_equal(seen.query_padding, whole.query_padding[:, slice(*rows)])
    assert seen.query_tokens[1] == whole.query_tokens[1][slice(*rows)]
    assert seen.quantity == whole.quantity and seen.plain is trace and seen.tokens.sight.exact


@settings(derandomize=True, deadline=None, max_examples=25)
@given(calls(), st.sampled_from([None, "zero", "uniform"]), st.sampled_from(["weights", "norms"]))
def test_every_statistic_is_that_of_the_whole(call, off, weighting):
    trace = trace_of_call(with_values(call))
    trace = changed(trace, Intervention({1: off})) if off else trace
    view = View(item=1, order="entropy", weighting=weighting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mha_viz.core.rows.ROWS", 7)
        seen = finished(trace, view).seen("mean")
    whole = shown_trace(trace, view)
    for name in STATISTICS if off is None else [name for name in STATISTICS if name != "difference"]:  # which is not read then
        assert is_known(seen, 1, name)
        np.testing.assert_allclose(statistic(seen, 1, name), statistic(whole, 1, name), rtol=0, atol=2e-5, err_msg=name)
        assert (why_not(seen, 1, name) is None) == (why_not(trace, 1, name) is None)


def test_heads_come_one_by_one_and_the_average_last():
    rng = np.random.default_rng(0)
    trace = trace_of_call(
        Call(*(rng.normal(size=(2, 3, 600, 4)).astype(np.float32) for _ in range(3)), Mask(600, 600, causal=True))
    )
    maps = LongMaps(trace, View(item=1))
    done, heads = [], []
    for part in maps.steps:
        done.append(part)
        heads.append(len(maps.maps))
        if maps.complete:
            break
        if maps.maps and maps.average is None:
            seen = maps.seen("max")
            assert seen.shape == (2, len(maps.maps), 200, 200) and not seen.has("mean_weights")
            assert not choose(seen, View()).known and choose(seen, View()).order == tuple(range(len(maps.maps)))
    assert done == sorted(done) and done[-1] == 1 and heads == sorted(heads) and {1, 2, 3} <= set(heads)
    seen = maps.seen("max")
    assert maps.seen("max") is seen and maps.seen("mean") is not seen
    assert seen.quantity == "largest weight" and maps.seen("mean").quantity == "mean weight"
    choice = choose(seen, View(item=1))
    np.testing.assert_allclose(choice.differences, statistic(trace, 1, "difference"), atol=1e-5)
    assert choice.order == choose(trace, View(item=1)).order
    assert maps.seen("mean").query_tokens[0][:2] == ("0–2", "3–5")
    np.testing.assert_allclose(seen.mean_weights[1][199, 199], trace.mean_weights[1, 597:, 597:].max(), atol=1e-6)


def test_a_cell_of_the_whole_is_found_in_its_block():
    rng = np.random.default_rng(0)
    trace = trace_of_call(Call(*(rng.normal(size=(1, 2, 600, 4)) for _ in range(3))))
    seen = finished(trace, View()).seen("max")
    choice = choose(seen, View(cell=(301, 5)))
    assert (choice.query, choice.key) == (100, 1)
    exact = finished(trace, View(rows=(300, 310), columns=(0, 10))).seen("max")
    choice = choose(exact, View(cell=(301, 5)))
    assert (choice.query, choice.key) == (1, 5)
    elsewhere = choose(exact, View(cell=(20, 5)))  # out of sight: another is chosen
    assert 0 <= elsewhere.query < 10 and 0 <= elsewhere.key < 10


def test_spans_beyond_the_map_show_what_there_is():
    trace = trace_of_call(Call(*(np.random.default_rng(0).normal(size=(1, 2, 20, 4)) for _ in range(3))))
    assert finished(trace, View(rows=(15, 99), columns=(50, 60))).sight.spans == ((15, 20), (0, 20))


def test_some_heads_alone_are_enough_for_some():
    trace = trace_of_call(Call(*(np.random.default_rng(0).normal(size=(1, 3, 20, 4)) for _ in range(3))))
    maps = finished(trace, View(), heads=[2], average=False)
    assert list(maps.maps) == [2] and maps.average is None


def test_what_cannot_be_looked_at_is_said_at_once():
    trace = trace_of_call(Call(*(np.random.default_rng(0).normal(size=(1, 3, 20, 4)) for _ in range(3))))
    with pytest.raises(Wrong, match="puts head 1 off by the mean"):
        LongMaps(changed(trace, Intervention({1: "mean"})), View())
    off = finished(changed(trace, Intervention({1: "zero"})), View()).seen("max")
    assert not off.weights[0, 1].any() and np.isnan(statistic(off, 0, "difference")).all()
    assert "before any was off" in why_not(off, 0, "difference")


@settings(derandomize=True, deadline=None, max_examples=25)
@given(calls(), st.sampled_from([None, "zero", "uniform"]), st.data())
def test_a_number_is_opened_as_in_the_whole(call, off, data):
    trace = trace_of_call(with_values(call))
    trace = changed(trace, Intervention({1: off})) if off else trace
    L, S = trace.shape[2:]
    query, key = data.draw(st.integers(0, L - 1)), data.draw(st.integers(0, S - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_maps, "SIDE", 9)
        part, found = open_in_sight(trace, 1, 1, query, key)
    whole = open_number(trace, 1, 1, query, key)
    first = part.tokens.sight.columns[0]
    assert (found.query, found.key + first) == (0, key) and part.shape[3] == min(9, S)
    assert found.hidden_by == whole.hidden_by
    for name in ("dot", "score", "bias", "total", "probability", "weight", "in_all_heads", "contribution", "norm", "share"):
        ours, theirs = getattr(found, name), getattr(whole, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(found.exponentials, whole.exponentials[first : first + 9], rtol=0, atol=1e-5)


def test_of_a_block_the_cell_that_is_named_is_opened():
    trace = trace_of_call(Call(*(np.random.default_rng(0).normal(size=(1, 2, 600, 4)) for _ in range(3))))
    for named, opened in ((View(), (301, 301)), (View(cell=(300, 302)), (300, 302)), (View(cell=(None, 302)), (301, 302))):
        seen = in_sight(trace, View())
        choice = choose(seen, View(cell=(300, 300)))
        assert place_of(seen, named, choice) == opened
        part, found = open_in_sight(trace, 0, choice.head, *place_of(seen, named, choice))
        assert (part.tokens.place(0, found.query), part.tokens.place(1, found.key)) == opened
        assert found.weight == pytest.approx(trace.weights[0, choice.head, opened[0], opened[1]])
