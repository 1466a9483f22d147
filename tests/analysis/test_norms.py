"""Maps weighted by the norms of values: cell by cell as the formula reads, rows that are distributions, and what stays as it was."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Batch, Layer, Settings, View, Wrong, attend, synthetic
from mha_viz.analysis import (
    STATISTICS,
    choose,
    norm_weighted,
    open_number,
    shown_trace,
    statistic,
    strongest,
    what_average_hides,
    why_no_norms,
    why_not,
    why_not_weighted,
)
from mha_viz.analysis.norms import lengths
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.intervention import Intervention, changed
from tests.analysis.kinds import KINDS, of_kind

NORMS = View(weighting="norms")
SMALL = Settings(embed_dim=12, num_heads=3, batch_size=2, seq_len=5, padding=(2,))
WITH_NORMS = [kind for kind in KINDS if kind != "maps"]


def slow(trace, weights):
    """[N, H, L, S]: the length of weight · v · Wᴼ's columns of the head, cell by cell."""
    found, D = np.empty(weights.shape), trace.v.shape[3]
    for n, h, i, j in np.ndindex(weights.shape):
        own = trace.out_proj[0][:, h * D : (h + 1) * D]  # [E, D]
        found[n, h, i, j] = np.linalg.norm(own @ (weights[n, h, i, j] * trace.v[n, h, j]))
    return found


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    st.builds(
        Settings,
        embed_dim=st.just(12),
        num_heads=st.sampled_from((1, 3)),
        batch_size=st.just(2),
        seq_len=st.integers(1, 4),
        padding=st.just(()) | st.just((1,)),
        padding_side=st.sampled_from(("left", "right")),
        causal=st.booleans(),
        add_bias_kv=st.booleans(),
        training=st.booleans(),
        dropout=st.just(0.4),
        source_len=st.sampled_from((None, 3)),
    ),
    st.sampled_from(WITH_NORMS),
)
def test_every_cell_is_the_length_of_what_it_adds(chosen, kind):
    trace = synthetic(chosen, dtype="float64")
    if not chosen.training:
        trace = of_kind(kind, trace)
    np.testing.assert_allclose(norm_weighted(trace), slow(trace, trace.weights), rtol=1e-7, atol=1e-12)
    shown, before = shown_trace(trace, NORMS), slow(trace, trace.probabilities)
    total = before.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(shown.probabilities, before / total, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(shown.weights, slow(trace, trace.weights) / total, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(shown.mean_weights, shown.weights.mean(axis=1))
    rows = shown.probabilities.sum(axis=-1)
    assert (np.isnan(rows) == shown.undefined).all() and rows[~shown.undefined] == pytest.approx(1)
    assert (shown.undefined == trace.undefined).all() and (shown.mask == trace.mask).all()


def test_it_agrees_with_the_number_that_is_opened():
    """The share of a cell in its row is what the derivation of that number says."""
    trace = synthetic(SMALL, dtype="float64")
    share = open_number(trace, 1, 2, 3, 4).share
    assert shown_trace(trace, NORMS).weights[1, 2, 3, 4] == pytest.approx(share)


def test_a_large_weight_on_a_small_value_shrinks():
    """Weights 0.8 and 0.2 on values of length 0.1 and 3: 0.08 and 0.6."""
    q, k = np.ones((1, 1, 1, 1)), np.log([0.8, 0.2]).reshape(1, 1, 2, 1)
    trace = trace_of_call(Call(q, k, np.array([0.1, -3]).reshape(1, 1, 2, 1), scale=1.0, out_weight=np.ones((1, 1))))
    np.testing.assert_allclose(norm_weighted(trace)[0, 0, 0], [0.08, 0.6])
    np.testing.assert_allclose(shown_trace(trace, NORMS).weights[0, 0, 0], [0.08 / 0.68, 0.6 / 0.68])


def test_values_of_one_length_leave_the_weights_as_they_are():
    rng = np.random.default_rng(0)
    v = rng.normal(size=(1, 2, 5, 3))
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    trace = trace_of_call(Call(rng.normal(size=(1, 2, 5, 3)), rng.normal(size=(1, 2, 5, 3)), v, out_weight=np.eye(6)))
    np.testing.assert_allclose(shown_trace(trace, NORMS).weights, trace.weights)


def test_the_bias_of_the_values_is_in_and_that_of_the_output_is_not():
    """f(x) = (x Wⱽ + bⱽ) Wᴼ: tokens of zeros still add their value's bias; b of out_proj is added once for all heads."""
    state = {name: np.array(weight) for name, weight in Layer.random(4, 2).weights.items()}
    state["in_proj_bias"][8:], state["out_proj.bias"][:] = 1, 100
    found = norm_weighted(attend(Layer.from_state_dict(state, 2), Batch(np.zeros((1, 3, 4)))))
    own = [np.linalg.norm(state["out_proj.weight"][:, 2 * h : 2 * h + 2].sum(axis=1)) / 3 for h in range(2)]
    np.testing.assert_allclose(found[0, :, 0, 0], own, rtol=1e-6)


def test_a_column_without_a_value_gets_nothing():
    """The column of add_zero_attn has a weight, and v = 0: what rests there adds nothing."""
    trace = synthetic(Settings(add_zero_attn=True))
    assert trace.weights[0, :, :, -1].max() > 0 and (shown_trace(trace, NORMS).weights[1, :, :, -1] == 0).all()


def test_a_vector_that_the_projection_sends_to_nothing_has_no_length():
    """Rounding may leave the square of a length below 0; no length is NaN for that."""
    rng = np.random.default_rng(0)
    across, x = rng.normal(size=(2, 500, 6))
    x -= (
        across * (x * across).sum(axis=1, keepdims=True) / (across**2).sum(axis=1, keepdims=True)
    )  # at right angles, but for rounding
    found = [lengths(one[None, None], rng.normal(size=(4, 1)) * side)[0, 0] for one, side in zip(x, across, strict=True)]
    assert all(0 <= length < 1e-6 for length in found)


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan])
def test_a_row_whose_values_are_all_zero_or_not_finite_has_no_distribution(value):
    q, v = np.zeros((1, 2, 3, 2)), np.ones((1, 2, 3, 2))
    v[0, 1] = value
    shown = shown_trace(trace_of_call(Call(q, q, v, out_weight=np.ones((2, 4)))), NORMS)
    assert (shown.undefined | shown.nonfinite).tolist() == [[[False] * 3, [True] * 3]]
    assert shown.undefined.any() == (value == 0), "no length at all leaves nothing to share out; what is not finite is NaN"
    assert np.isnan(shown.weights[0, 1]).all() and shown.weights[0, 0] == pytest.approx(1 / 3)


def test_what_dropout_took_is_still_missing():
    """Divided by their own sums, rows would hide it."""
    trace = synthetic(Settings(training=True, dropout=0.5))
    shown = shown_trace(trace, NORMS)
    assert (shown.weights[1][trace.dropped[1]] == 0).all()
    assert np.abs(shown.weights[1].sum(axis=-1) - 1).max() > 0.1 and shown.probabilities[1].sum(axis=-1) == pytest.approx(1)


def test_a_head_that_is_off_shows_no_weight():
    shown = shown_trace(changed(synthetic(SMALL), Intervention(off={1: "zero"})), NORMS)
    assert (shown.weights[1, 1] == 0).all() and shown.weights[1, 0].sum(axis=-1) == pytest.approx(1)


@pytest.mark.parametrize("kind", WITH_NORMS)
def test_every_number_can_be_had_of_it(kind):
    """Statistics, choice and average read it as any other Trace; they differ from those of the weights."""
    trace = of_kind(kind, synthetic(Settings(words="a b c a b c a\nb a", positions=True, num_heads=4)))
    shown = shown_trace(trace, NORMS)
    for name in STATISTICS:
        assert np.isfinite(statistic(shown, 0, name)).all() and why_not(shown, 0, name) is None
        same = np.array_equal(statistic(shown, 0, name), statistic(trace, 0, name))
        assert same == (name == "contribution"), "what a head contributes does not depend on how its map is shown"
    choice = choose(shown, NORMS)
    assert sorted(choice.order) == [0, 1, 2, 3]
    hidden = what_average_hides(shown, 0)
    assert hidden.weight == shown.weights[0, hidden.head, hidden.query, hidden.key]
    assert strongest([shown], 1) == strongest([trace], 1), "examples tell weights and contributions apart themselves"


def test_what_is_shown_says_what_it_is_and_whence():
    trace = synthetic(SMALL)
    shown = shown_trace(trace, NORMS)
    assert (trace.quantity, shown.quantity) == ("weight", "value-norm weight")
    assert trace.plain is trace and np.array_equal(shown.plain.weights, trace.weights, equal_nan=True)
    assert not shown.has("scores") and not shown.has("v"), "nothing can be derived from another quantity by mistake"
    assert (shown.tokens, shown.rules, shown.layer, shown.batch) == (trace.tokens, trace.rules, trace.layer, trace.batch)
    assert open_number(shown.plain, 0, 1, 2, 0).weight == trace.weights[0, 1, 2, 0]


def test_it_is_made_once_and_goes_with_its_trace():
    """Without waiting for a collection of garbage, which sessions share."""
    trace = synthetic(SMALL)
    assert shown_trace(trace, View()) is trace
    assert shown_trace(trace, NORMS) is shown_trace(trace, NORMS)
    statistic(shown_trace(trace, NORMS), 0, "entropy")
    gone = weakref.ref(trace), weakref.ref(shown_trace(trace, NORMS))
    gc.disable()
    try:
        del trace
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


def test_without_values_or_projection_the_weights_stay_and_the_reason_is_there():
    alone, q = of_kind("maps", synthetic(SMALL)), np.zeros((1, 2, 3, 2))
    reasons = {
        "the values v are not known, only weights": alone,
        "the output projection Wᴼ is not known": trace_of_call(Call(q, q, q)),
    }
    for reason, trace in reasons.items():
        assert why_no_norms(trace) == reason and shown_trace(trace, NORMS) is trace
        with pytest.raises(Wrong, match=reason) as caught:
            norm_weighted(trace)
        assert caught.value.nearest == ({"weighting": "weights"},)
    assert why_no_norms(synthetic(SMALL)) is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_coarse_types_are_weighted_in_float32(dtype):
    trace = synthetic(SMALL, dtype=dtype)
    shown = shown_trace(trace, NORMS)
    assert shown.weights.dtype == np.float32 and shown.weights[1].sum(axis=-1) == pytest.approx(1)


SOFTMAX = View(weighting="softmax")


def test_the_softmax_stands_beside_weights_that_dropout_changed():
    trace = synthetic(Settings(training=True, dropout=0.3, padding=()))
    shown = shown_trace(trace, SOFTMAX)
    assert shown.quantity == "softmax weight" and shown.plain.weights is trace.weights
    np.testing.assert_array_equal(shown.weights, trace.probabilities)
    np.testing.assert_allclose(shown.weights.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_array_equal(shown.mean_weights, trace.probabilities.mean(axis=1))


@pytest.mark.parametrize("changes", [{}, {"training": True, "dropout": 0.0}])
def test_where_nothing_changed_the_weights_they_are_the_softmax(changes):
    trace = synthetic(Settings(**changes))
    assert shown_trace(trace, SOFTMAX) is trace and "nothing changes" in why_not_weighted(trace, "softmax")


def test_of_a_head_that_is_off_no_softmax_is_shown():
    off = changed(synthetic(Settings()), Intervention({2: "zero"}))
    assert "head is off" in why_not_weighted(off, "softmax") and shown_trace(off, SOFTMAX) is off
