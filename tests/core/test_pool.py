"""Pooled maps hold the largest of each block, and every cell knows its block."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mha_viz.core.pool import Pool

POOLS = st.builds(Pool.fitting, *[st.integers(1, 40)] * 4)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.data(), POOLS)
def test_each_block_is_the_largest_of_its_cells(data, pool):
    values = data.draw(arrays(np.float32, (2, pool.L, pool.S), elements=st.floats(-1, 1, width=32) | st.just(np.nan)))
    largest, signed = pool.largest(values), pool.largest(values, signed=True)
    rows = np.arange(pool.L) * pool.rows // pool.L  # the block of each cell, as the browser finds it
    columns = np.arange(pool.S) * pool.columns // pool.S
    for i in range(pool.rows):
        for j in range(pool.columns):
            block = values[:, rows == i][:, :, columns == j].reshape(2, -1)
            assert block.shape[1] > 0
            assert np.array_equal(np.fmax.reduce(block, axis=1), largest[:, i, j], equal_nan=True)
            assert np.array_equal(np.fmax.reduce(np.abs(block), axis=1), np.abs(signed[:, i, j]), equal_nan=True)
    hidden = np.isnan(values)
    assert np.array_equal(pool.all(hidden), np.isnan(largest))
    assert np.array_equal(pool.any(hidden), ~pool.all(~hidden))


def test_of_two_that_are_as_far_from_zero_the_positive_is_the_largest():
    assert Pool(1, 2, 1, 1).largest(np.array([[-1.0, 1.0]]), signed=True) == 1
    assert Pool(2, 2, 2, 1).any(np.array([[True, False], [False, False]])).tolist() == [[True], [False]]
    assert Pool(1, 2, 1, 2).any(np.array([[True, False]])).tolist() == [[True, False]]


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(1, 600), st.floats(1, 600))
def test_there_are_never_more_blocks_than_room(L, S, high, wide):
    pool = Pool.fitting(L, S, high, wide)
    assert 1 <= pool.rows <= min(L, high) and 1 <= pool.columns <= min(S, wide)
    assert pool.step == (S / pool.columns, L / pool.rows)
    assert pool.whole == (int(high) >= L and int(wide) >= S)


def test_blocks_are_named_by_their_ends():
    assert Pool.fitting(5, 4, 2, 4).ranges(["a", "b", "c", "d", "e"], 0) == ["a … c", "d … e"]
    assert Pool(3, 1, 2, 1).ranges(["a", "b", "c"], 0) == ["a … b", "c"]
    assert Pool.fitting(5, 4, 2, 4).ranges(["a", "b", "c", "d"], 1) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("pool", "size"), [(Pool(128, 128, 64, 64), (2, 2)), (Pool(7, 9, 3, 9), (3, 1))])
def test_the_size_of_a_block(pool, size):
    assert pool.size == size
