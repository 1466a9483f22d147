"""What a View leaves open is decided, and what the Trace no longer has gives way."""

from dataclasses import replace

import numpy as np
import pytest

from mha_viz import Batch, Layer, Settings, View, attend, synthetic
from mha_viz.analysis import STATISTICS, choose, difference_from_average, statistic


@pytest.fixture(scope="module")
def trace():
    words = "a b a b\nc a c a b a"
    return synthetic(Settings(embed_dim=16, num_heads=4, words=words, padding=(2, 0), positions=True, causal=True))


def test_heads_are_ordered_by_difference(trace):
    choice = choose(trace, View())
    differences = difference_from_average(trace, 0)
    assert choice.differences.tolist() == differences.tolist()
    assert sorted(choice.order) == [0, 1, 2, 3]
    assert np.all(np.diff(differences[list(choice.order)]) <= 0)
    assert choice.head == choice.order[0] == differences.argmax()


def test_heads_by_index(trace):
    choice = choose(trace, View(order="index", heads=(3, 1)))
    assert choice.order == (1, 3) and choice.statistic == "difference"


@pytest.mark.parametrize("name", STATISTICS)
def test_heads_by_any_statistic_the_largest_first(trace, name):
    choice = choose(trace, View(item=1, order=name))
    expected = statistic(trace, 1, name)
    assert choice.statistic == name and np.array_equal(choice.values, expected, equal_nan=True)
    assert sorted(choice.order) == [0, 1, 2, 3]
    known = expected[list(choice.order)][~np.isnan(expected[list(choice.order)])]
    assert np.all(np.diff(known) <= 0)
    assert np.array_equal(choice.differences, difference_from_average(trace, 1))


def test_heads_without_a_value_come_last_in_their_order():
    mask = np.zeros((3, 3, 3), bool)
    mask[1, :, 1:] = True  # head 1 sees one key only: no entropy
    trace = attend(Layer.random(6, 3), Batch(np.random.default_rng(0).normal(size=(1, 3, 6)), attn_mask=mask), dtype="float64")
    choice = choose(trace, View(order="entropy"))
    assert np.isnan(choice.values[1]) and choice.order[-1] == 1
    assert choose(trace, View(order="next", heads=(2, 1, 0))).order[-1] == 1


def test_a_statistic_is_computed_once(trace, monkeypatch):
    first = choose(trace, View(item=1, order="entropy"))
    again = replace(STATISTICS["entropy"], function=lambda *_: pytest.fail("computed again"))
    monkeypatch.setitem(STATISTICS, "entropy", again)
    assert choose(trace, View(item=1, order="entropy", head=2)).order == first.order
    with pytest.raises(pytest.fail.Exception):
        choose(trace, View(item=0, order="entropy"))


def test_the_first_cell_is_where_head_and_average_differ_most(trace):
    choice = choose(trace, View(item=1))
    gap = np.abs(trace.probabilities[1, choice.head] - trace.probabilities[1].mean(axis=0))
    assert gap[choice.query, choice.key] == gap.max()


def test_a_padded_query_is_never_chosen_for_a_person(trace):
    for head in range(4):
        assert not trace.query_padding[0, choose(trace, View(head=head)).query]


def test_what_the_view_says_is_taken(trace):
    choice = choose(trace, View(item=1, heads=(2, 0), order="index", head=0, cell=(5, 3)))
    assert (choice.item, choice.order, choice.head, choice.query, choice.key) == (1, (0, 2), 0, 5, 3)
    assert len(choice.differences) == 4  # of all heads


@pytest.mark.parametrize("head", range(4))
def test_of_a_chosen_token_the_cell_is_in_its_row_or_column(trace, head):
    gap = np.abs(trace.probabilities[1, head] - trace.probabilities[1].mean(axis=0))
    row, column = (choose(trace, View(item=1, head=head, cell=cell)) for cell in ((4, None), (None, 2)))
    assert (row.query, column.key) == (4, 2)
    assert gap[4, row.key] == gap[4].max() and gap[column.query, 2] == gap[:, 2].max()


@pytest.mark.parametrize(
    "view",
    [
        View(item=7),
        View(heads=(9,)),
        View(head=9),
        View(heads=(1, 2), head=3),
        View(cell=(6, 0)),
        View(cell=(0, 6)),
        View(cell=(None, 6)),
    ],
)
def test_what_the_trace_does_not_have_gives_way(trace, view):
    choice = choose(trace, view)
    assert choice.item < 2 and choice.order and choice.head in choice.order
    assert choice.query < 6 and choice.key < 6


def test_one_head_equals_its_average_and_shows_its_largest_weight():
    trace = synthetic(Settings(embed_dim=8, num_heads=1, batch_size=1, seq_len=5, padding=()))
    choice = choose(trace, View())
    weights = trace.probabilities[0, 0]
    assert weights[choice.query, choice.key] == weights.max()


def test_without_a_real_query_there_is_still_a_choice():
    trace = synthetic(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=3, padding=(3,)))
    choice = choose(trace, View())
    assert (choice.order, choice.head, choice.query, choice.key) == ((0, 1), 0, 0, 0)
    assert np.isnan(choice.differences).all()
