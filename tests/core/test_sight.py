"""What is in sight of a map, by blocks."""

import pytest

from mha_viz.core.sight import Sight

TEXTS = [str(place) for place in range(100)]


@pytest.mark.parametrize("span", [(0, 7), (10, 20), (30, 93)])
@pytest.mark.parametrize("side", [0, 1])
def test_a_place_is_in_the_block_that_begins_at_it_or_before(side, span):
    sight = Sight.of(100, 100, rows=span, columns=span, shape=(4, 4))
    starts = sight.starts(side).tolist()
    assert (starts[0], starts[-1]) == span
    for place in range(100):
        blocks = [block for block in range(4) if starts[block] <= place < starts[block + 1]]
        assert sight.block(side, place) == (blocks[0] if blocks else None)


def test_blocks_are_named_by_their_first_and_last():
    sight = Sight.of(100, 100, rows=(10, 15), columns=(10, 13), shape=(3, 4))
    assert sight.names(0, TEXTS) == ("10–11", "12–13", "14")
    assert sight.names(1, TEXTS) == ("10", "11", "12")
