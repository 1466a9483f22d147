"""What a cell holds where it holds no weight."""

from math import inf, nan

import numpy as np
import pytest

from mha_viz.core.cells import KINDS, content, kinds, word
from mha_viz.core.maps import trace_of_maps

MASK = np.array([[False, True, True], [False, False, True], [False, False, False], [True, True, True]])


def told(values, padding=(False, False, True, True), undefined=(False, False, False, True)):
    """The kind of each cell, "" of a weight; no cell may be of two."""
    found = kinds(np.array(values, float), MASK, np.array(padding), np.array(undefined))
    assert found.keys() == set(KINDS) and (sum(of.astype(int) for of in found.values()) <= 1).all()
    return [[next((kind for kind in KINDS if found[kind][place]), "") for place in row] for row in PLACES]


PLACES = [[(query, key) for key in range(3)] for query in range(4)]


def test_where_all_is_finite_masks_and_padding_are_told():
    assert told(np.full((4, 3), 0.5)) == [
        ["", "masked", "masked"],
        ["", "", "masked"],
        ["padded", "padded", "padded"],
        ["undefined", "undefined", "undefined"],
    ]


def test_a_number_that_went_wrong_is_told_before_masks_and_padding():
    assert told([[0.5, nan, 0], [inf, 0.5, 0], [nan, 0.5, -inf], [nan, inf, -inf]]) == [
        ["", "nan", "masked"],
        ["inf", "", "masked"],
        ["nan", "padded", "-inf"],
        ["undefined", "undefined", "undefined"],
    ]


@pytest.mark.parametrize(
    ("value", "undefined", "said"),
    [(nan, False, "NaN"), (nan, True, "undefined"), (inf, True, "∞"), (-inf, False, "−∞"), (0.5, True, None)],
)
def test_a_number_that_is_none_has_a_name(value, undefined, said):
    assert word(value, undefined) == said


def test_a_cell_says_its_weight_or_what_stands_for_it():
    weights = [[[[0.25, 0.75], [nan, nan]], [[0.75, 0.25], [0.5, 0.5]]]]
    trace = trace_of_maps(weights)
    assert [content(trace, 0, head, 0, 1) for head in (0, 1, None)] == ["0.750000", "0.250000", "0.500000"]
    assert [content(trace, 0, head, 1, 1) for head in (0, 1, None)] == ["undefined", "0.500000", "undefined"]
