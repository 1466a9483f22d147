"""Finished maps: what their rows say is known, what they do not say stays unknown, and rows that are no distribution are refused."""

import numpy as np
import pytest
import torch

from mha_viz.core.maps import trace_of_maps
from mha_viz.core.rules import Wrong
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Missing


def maps(N=2, H=3, L=4, S=4, dtype=np.float32):
    scores = np.random.default_rng(0).normal(size=(N, H, L, S))
    return (np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)).astype(dtype)


def test_a_trace_of_weights_alone():
    weights = maps()
    trace = trace_of_maps(weights, name="layer 3")
    assert trace.name == "layer 3" and np.array_equal(trace.weights, weights) and np.array_equal(trace.probabilities, weights)
    assert np.allclose(trace.mean_weights, weights.mean(axis=1))
    assert not trace.mask.any() and not trace.undefined.any() and trace.dropped is None
    assert trace.tokens.positions.tolist() == [0, 1, 2, 3] and trace.scale is None and trace.out_proj is None
    with pytest.raises(Missing, match="layer 3 has no q"):
        trace.q  # noqa: B018


def test_they_are_copied_and_kept_in_their_dtype():
    for dtype in (np.float16, np.float32, np.float64):
        weights = maps(dtype=dtype)
        trace = trace_of_maps(weights)
        weights[:] = 0
        assert trace.weights.dtype == dtype and trace.weights.any()
    assert trace_of_maps(torch.from_numpy(maps())).weights.shape == (2, 3, 4, 4)


def test_a_key_that_no_head_weighs_is_hidden():
    weights = maps()
    weights[0, :, 1, 2:] = 0
    weights[0, 0, 2, 3] = 0  # in one head alone: a small weight, rounded
    weights /= weights.sum(axis=-1, keepdims=True)
    hidden = np.zeros((2, 3, 4, 4), bool)
    hidden[0, :, 1, 2:] = True
    assert np.array_equal(trace_of_maps(weights).mask, hidden)


def test_a_row_of_nan_is_undefined():
    weights = maps()
    weights[1, 2, 0] = np.nan
    trace = trace_of_maps(weights)
    assert np.argwhere(trace.undefined).tolist() == [[1, 2, 0]] and trace.mask[1, 2, 0].all() and not trace.mask[1, 0, 0].any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_beside_others_stays_and_is_told_from_a_row_without_a_key(value):
    weights = maps()
    weights[1, 2, 0, 3] = value
    weights[0, 1, 2] = np.nan
    trace = trace_of_maps(weights)
    assert np.argwhere(trace.nonfinite).tolist() == [[1, 2, 0]] and np.argwhere(trace.undefined).tolist() == [[0, 1, 2]]
    assert np.array_equal(trace.weights, weights, equal_nan=True)


def test_tokens_and_two_sequences():
    weights = maps(L=2, S=5)
    assert trace_of_maps(weights).tokens.positions is None
    tokens = Tokens.of(2, 2, 5, keys=[list("abcde")] * 2)
    assert trace_of_maps(weights, tokens).query_tokens == (("d", "e"),) * 2


@pytest.mark.parametrize("dtype, off, fits", [(np.float32, 5e-4, True), (np.float32, 5e-3, False), (np.float16, 5e-3, True)])
def test_rounded_maps_are_taken_and_others_not(dtype, off, fits):
    weights = (maps(dtype=np.float64) * (1 + off)).astype(dtype)
    if fits:
        trace_of_maps(weights)
    else:
        with pytest.raises(Wrong, match="does not sum to 1"):
            trace_of_maps(weights)


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda w: w[0], r"\[N, H, L, S\]"),
        (lambda w: w[:, :, :0], "no axis empty"),
        (lambda w: w.swapaxes(2, 3), "Is another axis the keys'"),
        (lambda w: np.log(w), "negative numbers"),
        (lambda w: np.where(w == w.max(), -1, np.where(w == w.min(), np.nan, w)), "negative numbers"),
        (lambda w: np.where(np.arange(4) == 1, np.inf, w), "no row is finite"),
        (lambda w: np.where(np.arange(4) == 1, -np.inf, w), "no row is finite"),
    ],
)
def test_what_is_no_distribution_is_refused_with_what_it_looks_like(spoil, message):
    with pytest.raises(Wrong, match=message):
        trace_of_maps(spoil(maps()))


def test_the_first_bad_row_is_named():
    weights = maps()
    weights[1, 2, 3] *= 2
    with pytest.raises(Wrong, match=r"1 of 24 rows; the first, \[1, 2, 3\], sums to 2"):
        trace_of_maps(weights)
