"""Difference from the average: by hand at its two ends and between them, and a slow version that says the same."""

import math

import numpy as np
import pytest

from mha_viz import Batch, Settings, Trace, synthetic
from mha_viz.analysis import difference_from_average


def given_map(*heads, **batch):
    """A Trace with these probabilities [1, H, L, S]; a row of NaN is undefined."""
    p = np.array(heads, np.float64)[None]  # [1, H, L, S]
    fields = {"probabilities": p, "undefined": np.isnan(p).any(axis=-1)}
    return Trace(fields, tokens=Batch(np.zeros((1, p.shape[2], 1)), **batch).tokens())


def test_equal_heads_differ_by_nothing():
    row = [[0.2, 0.8], [0.0, 1.0]]
    assert difference_from_average(given_map(row, row), 0).tolist() == [0, 0]


def test_two_heads_without_a_key_in_common():
    # p = (1, 0), average m = (½, ½), their middle (¾, ¼): H(¾, ¼) − (0 + ln 2) / 2
    middle = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    expected = (middle - math.log(2) / 2) / math.log(2)
    found = difference_from_average(given_map([[1, 0]], [[0, 1]]), 0)
    assert found == pytest.approx([expected, expected], abs=1e-15)


def test_a_lone_head_in_a_crowd_comes_near_to_one():
    S = 400  # as many heads, each with a key of its own: the average spreads over all keys, a head is on one
    heads = np.eye(S)[:, None]  # [H, L 1, S]
    found = difference_from_average(given_map(*heads), 0)
    assert 0.98 < found.min() <= found.max() < 1


def test_padded_and_undefined_queries_do_not_count():
    nan = [math.nan, math.nan]
    kept = difference_from_average(given_map([[1, 0]], [[0, 1]]), 0)
    rows = given_map(
        [[1, 0], [1, 0], nan],
        [[0, 1], [1, 0], nan],
        query_padding_mask=np.array([[False, True, False]]),
        key=np.zeros((1, 2, 1)),
    )
    assert difference_from_average(rows, 0).tolist() == kept.tolist()


def test_a_row_that_one_head_lacks_counts_for_none():
    nan = [math.nan, math.nan]
    trace = given_map([[1, 0], nan], [[0, 1], [0.5, 0.5]])
    assert difference_from_average(trace, 0) == pytest.approx(difference_from_average(given_map([[1, 0]], [[0, 1]]), 0))


def test_no_real_query_no_number():
    trace = given_map([[1.0]], [[1.0]], query_padding_mask=np.array([[True]]))
    assert np.isnan(difference_from_average(trace, 0)).all()


def slow(trace, item):
    """The same as sums of p · ln(p / q), the divergence's other form, row by row."""
    found = []
    for p in trace.probabilities[item]:
        rows = []
        for i, row in enumerate(p):
            if not trace.query_padding[item, i]:
                average = trace.probabilities[item, :, i].mean(axis=0)
                pairs = [(a, b, (a + b) / 2) for a, b in zip(row, average, strict=True)]
                rows.append(
                    sum(a * math.log(a / m) for a, _, m in pairs if a) + sum(b * math.log(b / m) for _, b, m in pairs if b)
                )
        found.append(np.mean(rows) / 2 / math.log(2))
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_a_slow_version_says_the_same(causal):
    trace = synthetic(Settings(embed_dim=12, num_heads=3, seq_len=6, padding=(2, 0), causal=causal), dtype="float64")
    for item in range(3):
        assert difference_from_average(trace, item) == pytest.approx(slow(trace, item), abs=1e-14)


def test_float32_is_near_enough_to_be_shown():
    settings = Settings(seq_len=20)
    exact, single = (difference_from_average(synthetic(settings, dtype=dtype), 0) for dtype in ("float64", "float32"))
    assert single == pytest.approx(exact, abs=1e-6)
