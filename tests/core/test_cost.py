"""The formulas of cost against counts by hand: two sequences of 3 tokens, embed_dim 4, 2 heads."""

import pytest

from mha_viz.core.cost import call_flops, call_memory

TOKENS, MAPS = 2 * 3 * 4, 2 * 2 * 3 * 3


def test_a_multiply_add_is_two_operations():
    projections, products = 4 * (2 * 3) * 4 * 4, 2 * 2 * (3 * 3 * 4)
    assert call_flops(N=2, L=3, E=4) == 2 * (projections + products)


@pytest.mark.parametrize(
    ("N", "H", "L", "E", "numbers"),
    [(2, 2, 3, 4, 2 * MAPS + 4 * TOKENS), (1, 1, 2, 64, 6 * 2 * 64), (1, 2, 100, 4, 40_000 + 1_600)],
)
@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("float64", 8)])
def test_weights_cost_their_maps_where_these_are_larger_than_the_projections(N, H, L, E, numbers, dtype, size):
    assert call_memory(N, H, L, E, dtype=dtype) == numbers * size
    assert call_memory(N, H, L, E, causal=True, dtype=dtype) == (numbers + L * L) * size


def test_without_weights_no_map_is_held():
    assert call_memory(2, 2, 3, 4, need_weights=False) == 6 * TOKENS * 4
    assert call_memory(2, 2, 3, 4, need_weights=False, causal=True) == (6 * TOKENS + 9) * 4
