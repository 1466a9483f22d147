"""Every analysis works on every kind of Trace: attended by a layer, recorded after projection, or maps alone. What the source knows it
says alike; what it cannot know is absent, and never a wrong answer."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from mha_viz import Batch, Layer, Settings, View, attend, synthetic
from mha_viz.analysis import (
    STATISTICS,
    choose,
    common,
    findings,
    head_distances,
    head_table,
    heads_like,
    largest_changes,
    open_number,
    statistic,
    strongest,
    what_average_hides,
    why_not,
)
from mha_viz.analysis.hiding import hidden, hidden_by, leaving_no_key, rules_of
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.mask import Mask
from tests.analysis.kinds import KINDS, of_kind

SMALL = Settings(embed_dim=12, num_heads=3, batch_size=2, seq_len=5, padding=(2,))
CASES = {
    "plain": SMALL,
    "causal, padded left": replace(SMALL, causal=True, padding_side="left"),
    "window": replace(SMALL, window=2),
    "extra columns": replace(SMALL, add_bias_kv=True, add_zero_attn=True),
    "cross": replace(SMALL, source_len=4, source_padding=(1,)),
    "one head": replace(SMALL, num_heads=1),
    "one token": replace(SMALL, seq_len=1, padding=()),
    "all padded": replace(SMALL, padding=(5,)),
    "words": replace(SMALL, words="a b a b c\nc a", padding=(), positions=True),
}
by_case = pytest.mark.parametrize("case", CASES)
by_kind = pytest.mark.parametrize("kind", KINDS)


def traces(case, kind, **values):
    """The attended Trace, and the same as this kind knows it."""
    trace = synthetic(replace(CASES[case], **values), dtype="float64")
    return trace, of_kind(kind, trace)


@by_case
@by_kind
def test_the_same_is_chosen(case, kind):
    """By every order, except where a source does not know what that needs."""
    attended, other = traces(case, kind)
    for order in STATISTICS:
        one, two = (choose(trace, View(order=order)) for trace in (attended, other))
        assert np.array_equal(one.differences.round(9), two.differences.round(9), equal_nan=True)
        if order != "contribution" or kind != "maps":
            np.testing.assert_allclose(one.values, two.values, atol=1e-12)
            assert (one.order, one.head, one.query, one.key) == (two.order, two.head, two.query, two.key)
            assert why_not(attended, 0, order) == why_not(other, 0, order)


@by_case
@by_kind
def test_the_average_hides_the_same(case, kind):
    attended, other = traces(case, kind)
    for item in range(2):
        assert what_average_hides(attended, item) == what_average_hides(other, item)


@by_case
@by_kind
def test_distances_tables_and_examples_are_the_same(case, kind):
    attended, other = traces(case, kind)
    np.testing.assert_allclose(head_distances(attended, 1), head_distances(other, 1), atol=1e-12)
    near, same = (heads_like([trace, attended], 0, 0, 1).heads for trace in (attended, other))
    assert [(a.trace, a.head, round(a.distance, 9)) for a in near] == [(a.trace, a.head, round(a.distance, 9)) for a in same]
    cells = [[(e.item, e.query, e.key, e.weight) for e in strongest([trace], 0)] for trace in (attended, other)]
    assert [cell[:3] for cell in cells[0]] == [cell[:3] for cell in cells[1]]
    for one, two in zip(*(head_table([trace], 1).rows for trace in (attended, other)), strict=True):
        known = [name for name in STATISTICS if name != "contribution" or kind != "maps"]
        np.testing.assert_allclose([one.values[name] for name in known], [two.values[name] for name in known], atol=1e-12)


@by_case
@pytest.mark.parametrize("a", KINDS)
@pytest.mark.parametrize("b", KINDS)
def test_any_two_kinds_can_be_compared(case, a, b):
    """Where they are of one computation nothing has changed; of two, the same cells have."""
    attended, before = traces(case, a)
    _, after = traces(case, b)
    assert common(before, after) == common(attended, attended)
    assert all(abs(change.change) < 1e-12 for change in largest_changes(before, after, 1))
    other, after = traces(case, b, seed=8)
    if case != "one token":
        expected = [(c.head, c.query, c.key) for c in largest_changes(attended, other, 1, range(other.weights.shape[1]))]
        found = largest_changes(before, after, 1, range(other.weights.shape[1]))
        assert [(c.head, c.query, c.key) for c in found] == expected and expected


@by_case
@by_kind
def test_a_number_opens_as_far_as_it_is_known(case, kind):
    attended, other = (asdict(open_number(trace, 1, 0, 0, 0)) for trace in traces(case, kind))
    unknown = {name for name, value in other.items() if value is None and attended[name] is not None}
    after = {"v", "weighted_value", "contribution", "norm", "share"}
    before = {"q", "k", "products", "dot", "scale", "score", "masked_scores", "largest", "exponentials", "total"}
    assert unknown == (before | after if kind == "maps" else set())
    for name in attended.keys() - unknown - {"hidden_by"}:
        if attended[name] is not None:
            np.testing.assert_allclose(other[name], attended[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert bool(other["hidden_by"]) == bool(attended["hidden_by"])


@by_case
@by_kind
def test_what_is_odd_is_found_at_the_same_places(case, kind):
    """Maps alone have no rules to name, and so no kinds of padding either."""
    attended, other = traces(case, kind)
    found, expected = findings(other), findings(attended)
    if kind == "maps":
        assert {f.kind for f in found} == ({"no_key"} if expected else set())
        assert all("the maps hold no numbers there (NaN)" in f.sentence for f in found)
    else:
        assert found == expected
    rows = np.zeros(other.undefined[0].shape, bool)
    for some in leaving_no_key(other, 0).values():
        rows |= some
    assert (rows == other.undefined[0]).all()


@by_case
@by_kind
def test_every_hidden_cell_has_its_rules(case, kind):
    attended, other = traces(case, kind)
    assert rules_of(other) == (("mask",) if kind == "maps" else rules_of(attended))
    assert (hidden(other, 0, rules_of(other)) == other.mask[0]).all()
    for cell in np.ndindex(attended.mask[0].shape):
        rules = hidden_by(other, 0, *cell)
        if kind != "maps":
            assert rules == hidden_by(attended, 0, *cell)
        else:
            assert rules == (("mask",) if attended.mask[0][cell] else ())


def recorded(**mask):
    """A Call of 4 tokens with this mask, and no layer or batch around it."""
    q = np.random.default_rng(0).normal(size=(1, 2, 4, 3))
    return trace_of_call(Call(q, q, q, Mask(4, 4, **mask)))


def test_an_inverted_mask_is_found_in_a_recorded_call():
    past = np.tri(4, dtype=bool)[None, None]
    (finding,) = [f for f in findings(recorded(dense=past)) if f.kind == "inverted_mask"]
    assert finding.sentence.endswith("“may attend”. Is the opposite meant?")
    for right in ({"dense": ~past}, {"causal": True}, {"dense": past & (np.arange(4) > 0)}, {}):
        assert not [f for f in findings(recorded(**right)) if f.kind == "inverted_mask"]


def test_a_float_mask_of_0_and_1_is_found_in_a_recorded_call():
    (finding,) = findings(recorded(bias=np.eye(4)[None, None]))
    assert finding.kind == "float_mask" and finding.sentence.endswith("To hide keys give bools.")
    assert findings(recorded(bias=np.eye(4)[None, None] / 2)) == []


@by_kind
def test_a_mask_of_large_negative_numbers_hides_for_every_kind(kind):
    """−1e9 is no −∞, and leaves weights of exactly 0 all the same."""
    mask = np.triu(np.full((4, 4), -1e9), 1)
    trace = attend(Layer.random(8, 2), Batch(np.random.default_rng(0).normal(size=(1, 4, 8)), attn_mask=mask))
    by_rule = attend(Layer.random(8, 2), Batch(trace.batch.query, causal=True))
    for name in STATISTICS:
        if name != "contribution" or kind != "maps":
            found = statistic(of_kind(kind, trace), 0, name)
            np.testing.assert_allclose(found, statistic(by_rule, 0, name), rtol=1e-5, err_msg=name)
