"""At any width and for any number of heads and tokens: nothing overlaps, nothing is cut, cells are square where they can be."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.figures.geometry import CORNER, NARROW, ROW_PITCH, Box, arrange

WIDTHS, LENGTHS = st.integers(360, 1600), st.integers(1, 128)
PLACES = st.builds(
    lambda width, heads, queries, keys, rows, columns, numbered: (width, heads, queries, keys, min(rows, 0.2 * width), columns, numbered),
    WIDTHS, st.integers(1, 64), LENGTHS, LENGTHS, st.floats(5, 120), st.floats(5, 96), st.booleans(),
)  # fmt: skip


def boxes(place, case):
    """Everything that is drawn, by name."""
    heads, rows = case[1], case[4]
    found = {"legend": place.legend, "bar": place.bar}
    for i in range(heads):
        found |= {f"tile {i}": place.strip.place(i), f"label {i}": place.strip.label(i)}
    for name, box in (("head", place.head), ("average", place.average)):
        band, title = place.column_labels, place.title(box)
        left = max(rows + 8, CORNER)
        found |= {
            name: box,
            f"{name} title": title,
            f"{name} columns": Box(box.x, box.y - band.height, box.width + band.overhang, band.height),
            f"{name} rows": Box(box.x - left, box.y, left, box.height),
            f"{name} corner": Box(box.x - CORNER, box.y - 36, CORNER, 36),
        }
    return found


def overlap(a, b):
    return min(a.right, b.right) - max(a.x, b.x) > 0.01 and min(a.bottom, b.bottom) - max(a.y, b.y) > 0.01


@settings(derandomize=True, deadline=None, max_examples=150)
@given(PLACES)
def test_nothing_overlaps_and_nothing_is_cut(case):
    place = arrange(*case)
    found = boxes(place, case)
    for name, box in found.items():
        assert box.x >= -0.01 and box.right <= place.width + 0.01, f"{name} is cut: {box} of {place.width}"
        assert box.y >= 20 and box.bottom <= place.height + 0.01, f"{name} is cut: {box} of {place.height}"
    for (a, box_a), (b, box_b) in combinations(found.items(), 2):
        assert not overlap(box_a, box_b), f"{a} {box_a} and {b} {box_b}"


@settings(derandomize=True, deadline=None, max_examples=150)
@given(PLACES)
def test_names_that_are_drawn_keep_apart(case):
    place = arrange(*case)
    assert place.row_step * place.cell[1] >= ROW_PITCH - 1e-6
    assert place.column_step * place.cell[0] >= place.column_labels.pitch - 1e-6
    lying = place.column_labels.angle == 0
    assert place.column_labels.pitch >= (case[5] + 3 if lying else ROW_PITCH)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(PLACES)
def test_cells_are_square_unless_a_map_would_be_too_thin(case):
    place = arrange(*case)
    for cell, (width, height), least in (
        (place.cell, (place.head.width, place.head.height), 96),
        (place.strip.cell, place.strip.tile, 32),
    ):
        assert cell[0] == pytest.approx(cell[1]) or min(width, height) <= least + 1e-6
    assert (place.head.width, place.head.height) == (place.average.width, place.average.height)


@pytest.mark.parametrize(("width", "height"), [(1104, 640), (944, 560)])  # windows of 1440 × 900 and 1280 × 720
@pytest.mark.parametrize("heads", [1, 8, 12, 16])
@pytest.mark.parametrize("length", [8, 14, 20, 64, 128])
def test_the_first_screen_holds_the_whole_picture(width, height, heads, length):
    place = arrange(width, heads, length, length, 60, 30)
    assert place.height <= height
    assert place.head.width >= 220  # and the pair stays large


def test_a_phone_gets_rows_of_tiles_and_one_map_above_the_other():
    place = arrange(360, 8, 14, 14, 60, 50)
    assert place.stacked and place.strip.rows > 1
    assert place.average.y > place.head.bottom and place.average.x == place.head.x
    assert not arrange(NARROW, 8, 14, 14, 60, 50).stacked


def test_more_heads_than_a_row_holds_are_spread_over_rows_evenly_filled():
    strip = arrange(1104, 64, 20, 20, 60, 30).strip
    assert strip.columns * strip.rows >= 64 > strip.columns * (strip.rows - 1)
    assert 64 - strip.columns * (strip.rows - 1) > strip.columns / 2


def test_short_names_lie_long_ones_are_turned():
    angles = [arrange(1104, 8, 14, 14, 60, text).column_labels.angle for text in (8, 60)]
    assert angles == [0, -50]
    assert arrange(1104, 8, 128, 128, 60, 60).column_labels.angle == -90
    assert arrange(1104, 8, 128, 128, 20, 20).column_step > 1


def test_numbers_are_left_out_rather_than_turned():
    words, numbers = (arrange(944, 8, 20, 20, 60, 15, numbered) for numbered in (False, True))
    assert (words.column_labels.angle, words.column_step) == (-90, 1)
    assert (numbers.column_labels.angle, numbers.column_step) == (0, 2)
    assert arrange(1104, 8, 20, 20, 60, 15, True).column_step == 1


@pytest.mark.parametrize("length", [5, 14, 20, 64])
def test_maps_of_cells_of_whole_px_start_on_whole_px(length):
    place = arrange(1104, 8, length, length, 61.3, 47.9)
    for box in (place.head, place.average, *map(place.strip.place, range(8))):
        assert box.x == int(box.x) and box.y == int(box.y)
    assert place.cell[0] == int(place.cell[0])
