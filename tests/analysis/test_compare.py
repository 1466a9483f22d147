"""A against B: the largest changes as a slow loop finds them, and a reason wherever two Traces do not match."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Settings, Trace, View, Wrong, synthetic
from mha_viz.analysis import shown_trace
from mha_viz.analysis.compare import common, largest_changes, output_change

SMALL = Settings(embed_dim=12, num_heads=3, batch_size=2, seq_len=5, padding=(1,))


def slow(a, b, item, heads):
    """Every cell of real queries that changed, largest change first."""
    cells = []
    for head in heads:
        before, after = (trace.mean_weights[item] if head is None else trace.weights[item, head] for trace in (a, b))
        for query, key in np.ndindex(before.shape):
            real = not any(t.query_padding[item, query] or t.undefined[item, :, query].any() for t in (a, b))
            change = float(after[query, key]) - float(before[query, key])
            if real and change:
                cells.append((head, query, key, float(before[query, key]), float(after[query, key]), change))
    return sorted(cells, key=lambda cell: -abs(cell[-1]))  # stable: equal ones stay in order


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.sampled_from([{"seed": 8}, {"causal": True}, {"padding": (2, 1)}, {"training": True}, {"padding_side": "left"}, {}]),
    st.sampled_from([[0, 1, 2], [2, 0], None]),
    st.integers(0, 80),
    st.integers(0, 1),
)
def test_the_largest_changes_are_those_of_a_slow_loop(change, heads, count, item):
    a, b = synthetic(SMALL), synthetic(replace(SMALL, **change))
    found = largest_changes(a, b, item, heads, count)
    expected = slow(a, b, item, [None] if heads is None else heads)[:count]
    assert [(c.head, c.query, c.key, c.a, c.b, c.change) for c in found] == expected


def test_equal_traces_have_no_changes_and_order_of_a_and_b_is_the_sign():
    a, b = synthetic(SMALL), synthetic(replace(SMALL, seed=8))
    assert largest_changes(a, a, 0, range(3)) == []
    there, back = largest_changes(a, b, 0, range(3), 5), largest_changes(b, a, 0, range(3), 5)
    assert [change.change for change in there] == [-change.change for change in back]
    assert there[0].change == there[0].b - there[0].a


def test_equal_changes_come_in_the_order_of_their_cells():
    """Every other cell changes by 0.5, the rest by 0.25, and the cut after ``count`` falls into a tie."""
    a = synthetic(Settings(padding=()))
    steps = np.where(np.arange(a.weights.size) % 2, 0.25, 0.5).reshape(a.weights.shape)
    fields = {name: getattr(a, name) for name in ("mean_weights", "undefined")}
    zero, b = (Trace(fields | {"weights": weights}, tokens=a.tokens) for weights in (0 * steps, steps))
    for count in (7, 200, 1700):
        found = [(c.head, c.query, c.key) for c in largest_changes(zero, b, 0, range(8), count)]
        cells = list(np.ndindex(8, 20, 20))
        assert found == (cells[::2] + cells[1::2])[:count]


def test_undefined_rows_in_either_do_not_count():
    a, b = synthetic(SMALL), synthetic(replace(SMALL, padding=(2, 2), padding_side="left", causal=True))
    assert {change.query for change in largest_changes(a, b, 0, range(3), 1000)} == {2, 3}
    assert {change.query for change in largest_changes(a, b, 1, range(3), 1000)} == {2, 3, 4}


def test_other_head_counts_leave_the_average_and_the_heads_of_both():
    a, b = synthetic(SMALL), synthetic(replace(SMALL, num_heads=2))
    shared = common(a, b)
    assert (shared.items, shared.heads, shared.average) == (2, (0, 1), True)
    assert "A has 3 heads and B 2" in shared.notes[0]
    assert largest_changes(a, b, 0, None, 1)[0].head is None
    assert largest_changes(a, b, 0, [1], 1)[0].head == 1
    with pytest.raises(Wrong, match="heads = 2"):
        largest_changes(a, b, 0, [0, 2])


@pytest.mark.parametrize("change", [{"seq_len": 6}, {"source_len": 7}, {"add_zero_attn": True}])
def test_maps_of_other_sizes_share_no_cells(change):
    a, b = synthetic(SMALL), synthetic(replace(SMALL, **change))
    shared = common(a, b)
    assert (shared.heads, shared.average) == ((), False)
    L, S = b.weights.shape[2:]
    for heads in (None, [0]):
        with pytest.raises(Wrong, match=f"A's maps are 5 × 5 and B's {L} × {S}"):
            largest_changes(a, b, 0, heads)


def test_items_that_only_one_has_are_refused():
    a, b = synthetic(SMALL), synthetic(replace(SMALL, batch_size=1))
    assert common(a, b).items == 1 and "A has 2 batch items and B 1" in common(a, b).notes[0]
    with pytest.raises(Wrong, match="item = 1"):
        largest_changes(a, b, 1)


def test_other_tokens_are_noted_and_compared_by_position():
    a, b = (synthetic(Settings(words=words, embed_dim=8, num_heads=2, padding=())) for words in ("a b\nc d", "a b\nc e"))
    assert common(a, a).notes == ()
    assert common(a, b).notes == ("The tokens differ in 1 of 2 batch items: cells are compared by position.",)
    assert largest_changes(a, b, 1)
    read = [
        synthetic(Settings(words="a b", source_words=words, embed_dim=8, num_heads=2, padding=())) for words in ("x y", "x z")
    ]
    assert "differ in 1 of 1" in common(*read).notes[0]


def test_weights_and_norms_are_numbers_of_two_kinds():
    trace = synthetic(SMALL)
    norms = shown_trace(trace, View(weighting="norms"))
    found = common(trace, norms)
    assert (found.heads, found.average) == ((), False)
    assert found.notes == (
        "A's cells are weights and B's value-norm weights: numbers of two kinds, which no difference relates.",
    )
    with pytest.raises(Wrong, match="two kinds"):
        largest_changes(trace, norms, 0)
    assert common(norms, norms) == common(trace, trace)


def test_the_output_moves_by_the_mean_length_of_what_its_real_queries_change():
    a, b = synthetic(Settings(padding=(3,))), synthetic(Settings(padding=(3,), seed=8))
    steps = [math.dist(a.output[0, i].tolist(), b.output[0, i].tolist()) for i in range(17)]
    lengths = [math.hypot(*a.output[0, i].tolist()) for i in range(17)]
    assert output_change(a, b, 0) == pytest.approx((sum(steps) / 17, sum(lengths) / 17), rel=1e-6)
    assert output_change(a, a, 0)[0] == 0


def test_an_output_that_cannot_be_compared_is_not():
    a = synthetic(Settings())
    maps = Trace({"weights": a.weights, "undefined": a.undefined}, tokens=a.tokens)
    assert output_change(a, maps, 0) is None, "not known"
    assert output_change(a, synthetic(Settings(embed_dim=64)), 0) is None, "of another width"
    assert output_change(a, a, 3) is None, "no such item"
    all_padded = synthetic(Settings(padding=(20,)))
    assert output_change(all_padded, all_padded, 0) is None, "no real query"
