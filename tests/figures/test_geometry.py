"""At any width and for any number of heads and tokens: nothing overlaps, nothing is cut, cells are square where they can be."""

from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mha_viz.figures.arrange import arrange, arrange_all, arrange_grid
from mha_viz.figures.geometry import NARROW, ROW_PITCH, Box
from mha_viz.figures.margins import CORNER
from mha_viz.figures.parts import ALL, Parts

WIDTHS, LENGTHS = st.integers(360, 1600), st.integers(1, 128)
PLACES = st.builds(
    lambda width, heads, queries, keys, rows, columns, numbered: (
        width,
        heads,
        queries,
        keys,
        min(rows, 0.2 * width),
        columns,
        numbered,
    ),
    WIDTHS,
    st.integers(1, 64),
    LENGTHS,
    LENGTHS,
    st.floats(5, 120),
    st.floats(5, 96),
    st.booleans(),
)
PARTS = st.one_of(st.just(ALL), st.builds(Parts, *[st.booleans()] * 4))


def framed(place, case):
    """Every tile and map with the frame of a chosen one."""
    boxes = [place.strip.place(i) for i in range(case[1])] if place.strip else []
    return [Box(box.x - 3, box.y - 3, box.width + 6, box.height + 6) for box in (*boxes, *(map.box for map in place.maps))]


def boxes(place, case):
    """Everything that is drawn, by name."""
    heads, rows = case[1], case[4]
    found = {"legend": place.legend} | {f"bar {i}": bar for i, bar in enumerate(place.bars)}
    for i in range(heads if place.strip else 0):
        found |= {f"tile {i}": place.strip.place(i), f"label {i}": place.strip.label(i)}
    for i, map in enumerate((*place.maps, *([place.names] if place.names else ()))):
        name, box, band, title = f"map {i}", map.box, map.column_labels, map.title
        found[f"{name} columns"] = Box(box.x, box.y - band.height, box.width + band.overhang, band.height)
        found |= {name: box, f"{name} title": title} if place.maps else {}
        if map.row_labels:
            found |= {
                f"{name} rows": Box(box.x - max(rows + 8, CORNER), box.y, max(rows + 8, CORNER), box.height),
                f"{name} corner": Box(box.x - CORNER, box.y - 36, CORNER, 36),
            }
    return found


def overlap(a, b):
    return min(a.right, b.right) - max(a.x, b.x) > 0.01 and min(a.bottom, b.bottom) - max(a.y, b.y) > 0.01


ARRANGEMENTS = {
    "a pair": lambda *case, **parts: arrange(*case, **parts),
    "one": lambda width, heads, *case, **parts: arrange(width, 0, *case, maps=1, **parts),
    "three, names once": lambda *case, **parts: arrange(
        *case, maps=3, own_names=False, bars={1: 40, 2: 46}, captions=2, **parts
    ),
    "three, own names": lambda *case, **parts: arrange(*case, maps=3, bars={1: 26, 2: 26}, **parts),
    "all": arrange_all,
}
GRID = {"a grid": lambda width, heads, queries, keys, *_, **parts: arrange_grid(width, 1, heads, queries, keys, 60, **parts)}


@pytest.mark.parametrize("arranged", ARRANGEMENTS.values(), ids=ARRANGEMENTS)
@settings(derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(case=PLACES, parts=PARTS)
@pytest.mark.slow
def test_nothing_overlaps_and_nothing_is_cut(arranged, case, parts):
    place = arranged(*case, parts=parts)
    found = boxes(place, case)
    for name, box in found.items():
        assert box.x >= -0.01 and box.right <= place.width + 0.01, f"{name} is cut: {box} of {place.width}"
        top = 20 if parts.title else -0.01
        assert box.y >= top and box.bottom <= place.height + 0.01, f"{name} is cut: {box} of {place.height}"
    for (a, box_a), (b, box_b) in combinations(found.items(), 2):
        assert not overlap(box_a, box_b), f"{a} {box_a} and {b} {box_b}"


@pytest.mark.parametrize("arranged", (ARRANGEMENTS | GRID).values(), ids=ARRANGEMENTS | GRID)
@settings(derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(case=PLACES, parts=PARTS)
def test_a_frame_and_the_numbers_of_a_bar_are_whole_whatever_is_left_out(arranged, case, parts):
    place = arranged(*case, parts=parts)
    frames = framed(place, case)
    assert all(box.x >= 0 and box.right <= place.width and box.y >= 0 and box.bottom <= place.height for box in frames)
    assert not any(overlap(a, b) for a, b in combinations([*frames, *place.bars], 2))
    if not place.stacked:
        assert all(bar.y >= 8 and bar.bottom + 8 <= place.height for bar in place.bars)
    elif not parts.labels:
        assert all(bar.x >= 13 and bar.right + 13 <= place.width for bar in place.bars)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(PLACES, PARTS)
def test_what_is_left_out_leaves_its_room_to_the_maps(case, parts):
    whole, place = ARRANGEMENTS["one"](*case), ARRANGEMENTS["one"](*case, parts=parts)
    assert place.maps[0].box.width >= whole.maps[0].box.width - 1e-6
    assert len(place.bars) == parts.bar and bool(place.legend.height) == parts.legend


@settings(derandomize=True, deadline=None, max_examples=30)
@given(PLACES, st.booleans())
def test_a_map_with_nothing_around_it_is_as_wide_as_the_picture(case, as_tile):
    nothing = Parts(title=False, labels=False, bar=False, legend=False)
    if as_tile:
        place = arrange_all(case[0], 1, *case[2:], parts=nothing)
        box = place.strip.place(0)
    else:
        place = ARRANGEMENTS["one"](*case, parts=nothing)
        box = place.maps[0].box
    assert (box.x, box.y) == (4, 4) and box.right == pytest.approx(place.width - 4)
    assert box.bottom + 4 <= place.height < box.bottom + 5


@settings(derandomize=True, deadline=None, max_examples=150)
@given(PLACES)
def test_names_that_are_drawn_keep_apart(case):
    for map in (*arrange(*case).maps, arrange_all(*case).names):
        assert map.row_step * map.cell[1] >= ROW_PITCH - 1e-6
        assert map.column_step * map.cell[0] >= map.column_labels.pitch - 1e-6
        lying = map.column_labels.angle == 0
        assert map.column_labels.pitch >= (case[5] + 3 if lying else ROW_PITCH)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(PLACES)
def test_cells_are_square_unless_a_map_would_be_too_thin(case):
    place = arrange(*case)
    for cell, (width, height), least in (
        (place.maps[0].cell, (place.maps[0].box.width, place.maps[0].box.height), 96),
        (place.strip.cell, place.strip.tile, 32),
    ):
        assert cell[0] == pytest.approx(cell[1]) or min(width, height) <= least + 1e-6
    assert len({(map.box.width, map.box.height) for map in place.maps}) == 1


@pytest.mark.parametrize(("width", "height"), [(1104, 640), (944, 560)])  # windows of 1440 × 900 and 1280 × 720
@pytest.mark.parametrize("heads", [1, 8, 12, 16])
@pytest.mark.parametrize("length", [8, 14, 20, 64, 128])
def test_the_first_screen_holds_the_whole_picture(width, height, heads, length):
    place = arrange(width, heads, length, length, 60, 30)
    assert place.height <= height
    assert place.maps[0].box.width >= 220  # and the pair stays large


def test_a_phone_gets_rows_of_tiles_and_one_map_above_the_other():
    place = arrange(360, 8, 14, 14, 60, 50)
    assert place.stacked and place.strip.rows > 1
    above, below = (map.box for map in place.maps)
    assert below.y > above.bottom and below.x == above.x
    assert not arrange(NARROW, 8, 14, 14, 60, 50).stacked


def test_more_heads_than_a_row_holds_are_spread_over_rows_evenly_filled():
    strip = arrange(1104, 64, 20, 20, 60, 30).strip
    assert strip.columns * strip.rows >= 64 > strip.columns * (strip.rows - 1)
    assert 64 - strip.columns * (strip.rows - 1) > strip.columns / 2


@pytest.mark.parametrize("width", [1072, 1104])  # a window of 1440 with and without a scroll bar
@pytest.mark.parametrize("heads", [40, 48, 64])
@pytest.mark.parametrize("length", [20, 128])
def test_three_rows_of_tiles_at_most_stand_above_the_pair(width, heads, length):
    place = arrange(width, heads, length, length, 60, 30)
    assert place.strip.rows <= 3 and min(place.strip.tile) >= 36 and place.height <= 648


def test_short_names_lie_long_ones_are_turned():
    angles = [arrange(1104, 8, 14, 14, 60, text).maps[0].column_labels.angle for text in (8, 60)]
    assert angles == [0, -50]
    assert arrange(1104, 8, 128, 128, 60, 60).maps[0].column_labels.angle == -90
    assert arrange(1104, 8, 128, 128, 20, 20).maps[0].column_step > 1


def test_numbers_are_left_out_rather_than_turned():
    words, numbers = (arrange(944, 8, 20, 20, 60, 15, numbered).maps[0] for numbered in (False, True))
    assert (words.column_labels.angle, words.column_step) == (-90, 1)
    assert (numbers.column_labels.angle, numbers.column_step) == (0, 2)
    assert arrange(1104, 8, 20, 20, 60, 15, True).maps[0].column_step == 1


@pytest.mark.parametrize("length", [5, 14, 20, 64])
def test_maps_of_cells_of_whole_px_start_on_whole_px(length):
    place = arrange(1104, 8, length, length, 61.3, 47.9)
    for box in (*(map.box for map in place.maps), *(place.strip.place(i) for i in range(8))):
        assert box.x == int(box.x) and box.y == int(box.y)
    assert place.maps[0].cell[0] == int(place.maps[0].cell[0])


@pytest.mark.parametrize(
    ("width", "tiles", "columns"),
    [
        (1104, 3, 3),
        (794, 3, 3),
        (552, 3, 3),
        (1104, 8, 4),
        (1104, 7, 4),  # full rows, or all but
        (390, 3, 1),
        (552, 8, 2),
        (1104, 5, 3),
        (1104, 9, 3),
        (1104, 13, 4),
        (390, 13, 3),  # which would make these too small
    ],
)
def test_tiles_stand_in_full_rows_where_that_leaves_them_large(width, tiles, columns):
    strip = arrange_all(width, tiles, 20, 20, 14, 14, True).strip
    assert (strip.columns, strip.rows) == (columns, -(-tiles // columns))


@pytest.mark.parametrize(("tiles", "width"), [(5, 1104), (3, 552)])
def test_full_rows_cost_no_numbers(tiles, width):
    assert arrange_all(width, tiles, 6, 6, 40, 40).strip.cell[0] >= 30


def test_a_comparison_as_wide_as_a_page_of_text_stands_in_a_row():
    place = ARRANGEMENTS["three, names once"](794, 8, 20, 20, 14, 14, True)  # 160 mm with text of 8 pt
    assert not place.stacked and place.maps[0].box.width >= 140 and place.height < 794
