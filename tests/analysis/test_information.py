"""Entropy and divergence by hand, at their ends, and in every type of number."""

import math

import numpy as np
import pytest

from mha_viz.analysis.information import entropy_of, jensen_shannon


def test_entropy_by_hand():
    """Also of weights that are small: 1024 of them, alike, make ten bits."""
    rows = np.zeros((3, 1024))
    rows[0, 5], rows[1, :2], rows[2] = 1, 0.5, 1 / 1024
    np.testing.assert_allclose(entropy_of(rows), [0, math.log(2), math.log(1024)], atol=1e-12)


def test_divergence_by_hand():
    p, q = np.array([[1, 0], [1, 0], [0.25, 0.75]]), np.array([[1, 0], [0, 1], [0.5, 0.5]])
    middle = (
        0.25 * math.log(0.25 / 0.375)
        + 0.75 * math.log(0.75 / 0.625)
        + 0.5 * math.log(0.5 / 0.375)
        + 0.5 * math.log(0.5 / 0.625)
    )
    np.testing.assert_allclose(jensen_shannon(p, q), [0, 1, middle / 2 / math.log(2)], atol=1e-12)
    np.testing.assert_array_equal(jensen_shannon(p, q), jensen_shannon(q, p))


@pytest.mark.parametrize(("dtype", "kept"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")])
def test_the_type_of_the_result(dtype, kept):
    rows = np.full((2, 3), 1 / 3, dtype)
    assert entropy_of(rows).dtype == jensen_shannon(rows, rows).dtype == kept
