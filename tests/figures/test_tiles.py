"""Hatches cover exactly the cells that they should; marks stay within their tile."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mha_viz.core.cells import kinds
from mha_viz.figures.theme import THEMES
from mha_viz.figures.tiles import LOOKS, THROUGH, hatches, marks, outlines, polygons

MASKS = arrays(bool, array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=7))


def covered(x, y, shape):
    """[L, S] bool: cells whose centre lies in an odd number of the polygons, which must all run along the cells' edges."""
    inside = np.zeros(shape, int)
    rows, columns = np.mgrid[: shape[0], : shape[1]] + 0.5
    starts = [0, *(np.flatnonzero(np.isnan(x)) + 1)]
    for start, end in pairwise(starts):
        px, py = x[start : end - 1], y[start : end - 1]
        crossings = np.zeros(shape, int)
        for i in range(len(px)):
            (x0, y0), (x1, y1) = (px[i - 1], py[i - 1]), (px[i], py[i])
            assert x0 == x1 or y0 == y1, "sides are vertical or level"
            crossings += ((y0 > rows) != (y1 > rows)) & (x0 > columns)
        inside += crossings % 2
    assert inside.max(initial=0) <= 1, "polygons overlap"
    return inside.astype(bool)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(MASKS)
def test_polygons_cover_exactly_the_cells(cells):
    batch, x, y = polygons(cells)
    for b in range(len(cells)):
        assert np.array_equal(covered(x[batch == b], y[batch == b], cells.shape[1:]), cells[b])


@pytest.mark.parametrize("L", [1, 2, 5, 128])
def test_causal_is_one_polygon(L):
    cells = np.triu(np.ones((1, L, L), bool), 1)
    _, x, y = polygons(cells)
    assert np.isnan(x).sum() == (L > 1)
    assert np.array_equal(covered(x, y, (L, L)), cells[0])
    assert len(x) <= 2 * L + 4  # two corners a step


def test_a_window_is_two_polygons_once_both_sides_are_masked():
    i = np.arange(64)
    cells = (abs(i[:, None] - i) > 3)[None]
    _, x, y = polygons(cells)
    assert np.isnan(x).sum() <= 4
    assert np.array_equal(covered(x, y, (64, 64)), cells[0])


def test_a_row_of_another_tile_does_not_go_on():
    batch, x, _ = polygons(np.ones((3, 1, 2), bool))
    assert np.isnan(x).sum() == 3 and sorted(set(batch.tolist())) == [0, 1, 2]


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.data(), MASKS)
def test_each_cell_has_one_look_at_most(data, mask):
    B, L, _ = mask.shape
    padding = data.draw(arrays(bool, L))
    undefined = data.draw(arrays(bool, (B, L)))
    values = data.draw(arrays(np.float32, mask.shape, elements=st.sampled_from([0.5, np.nan, np.inf, -np.inf])))
    found = kinds(values, mask, padding, undefined)
    assert list(found) == [look for look in LOOKS if look not in THROUGH]
    assert sum(where.astype(int) for where in found.values()).max() <= 1
    assert np.array_equal(
        np.any(list(found.values()), axis=0), mask | padding[:, None] | undefined[..., None] | ~np.isfinite(values)
    )
    assert np.array_equal(found["undefined"], np.broadcast_to(undefined[..., None], mask.shape))
    assert not (found["padded"] & mask).any()
    for kind, holds in (("nan", np.isnan), ("inf", np.isposinf), ("-inf", np.isneginf)):
        assert np.array_equal(found[kind], holds(values) & ~undefined[..., None])


@pytest.mark.parametrize("alike", [True, False])
def test_hatches_of_several_tiles_stand_where_the_tiles_stand(alike):
    one = np.array([[[True, False], [True, True]]])  # [1, L, S]
    cells = one if alike else np.repeat(one, 3, axis=0)
    origins = np.array([[0, 0], [5.5, 0], [0, 4.25]])
    (trace,) = hatches({"masked": cells, "padded": ~one & False}, origins, ("x", "y"), THEMES["light"], 5)
    assert trace["legendgroup"] == "masked" and trace["x"].dtype == np.float32
    for x0, y0 in origins:
        x, y = trace["x"] - x0 + 0.5, trace["y"] - y0 + 0.5
        gaps = np.isnan(x)
        near = (
            (np.where(gaps, 0, x) >= 0)
            & (np.where(gaps, 0, x) <= 2)
            & (np.where(gaps, 0, y) >= 0)
            & (np.where(gaps, 0, y) <= 2)
        )
        assert np.array_equal(covered(x[near], y[near], (2, 2)), one[0])


def test_every_look_has_a_pattern_of_its_own():
    drawn = []
    for look in LOOKS:
        *_, trace = hatches({look: np.ones((1, 1, 1), bool)}, np.zeros((1, 2)), ("x", "y"), THEMES["light"], 5)
        drawn.append(tuple(trace["fillpattern"].values()))
    assert len(set(drawn)) == len(LOOKS) == 8


@pytest.mark.parametrize("size", [(1.5, 1.5), (7, 7), (18, 18), (60, 2), (3, 40)])
@pytest.mark.parametrize("cell", [(0, 0), (29, 11), (15, 5)])
def test_marks_stay_within_their_tile(size, cell):
    for trace in marks(cell, np.array([[0, 0], [40.5, 0]]), (30, 12), size, ("x", "y"), THEMES["dark"]):
        x, y = trace["x"].reshape(2, 7)[:, :6], trace["y"].reshape(2, 7)[:, :6]
        thick = trace["line"]["width"] / 2
        for row, x0 in enumerate((0, 40.5)):
            assert x[row].min() - thick / size[0] >= x0 - 0.5001 and x[row].max() + thick / size[0] <= x0 + 29.5001
            assert y[row].min() - thick / size[1] >= -0.5001 and y[row].max() + thick / size[1] <= 11.5001
        assert (x[0].max() - x[0].min()) * size[0] >= 7.9 and (y[0].max() - y[0].min()) * size[1] >= 7.9  # always to be seen


def test_an_outline_is_one_line_with_gaps():
    x, y = outlines(*(np.array(edge) for edge in ([0, 5], [1, 6], [2, 3], [4, 8])))
    assert x[:6].tolist() == [2, 4, 4, 2, 2, 4] and y[:6].tolist() == [0, 0, 1, 1, 0, 0]
    assert np.isnan(x[[6, 13]]).all() and not np.isnan(x[7:13]).any()
