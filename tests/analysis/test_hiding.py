"""The rules behind a mask: each apart, and the smallest set that leaves a row without a key."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Batch, Layer, attend
from mha_viz.analysis.hiding import hidden, leaving_no_key, rules_of

N, H, L, S = 2, 2, 3, 4
LAYER = Layer.random(4, H)


def masks(shape):
    bits = st.integers(0, 2 ** int(np.prod(shape)) - 1)
    some = bits.map(lambda n: np.array([n >> i & 1 for i in range(np.prod(shape))], bool).reshape(shape))
    return st.one_of(st.none(), some, some.map(lambda mask: np.where(mask, -np.inf, 0.5)))


@st.composite
def traces(draw):
    attn_mask = draw(st.one_of(masks((L, S)), masks((N * H, L, S))))
    batch = Batch(
        np.ones((N, L, 4)),
        np.ones((N, S, 4)),
        key_padding_mask=draw(masks((N, S))),
        attn_mask=attn_mask,
        causal=draw(st.booleans()),
        window=draw(st.sampled_from((None, 1, 2))),
    )
    return attend(LAYER, batch)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(traces())
def test_every_row_without_a_key_is_explained_by_rules_that_are_all_needed(trace):
    for item in range(N):
        explained = np.zeros((H, L), bool)
        for rules, rows in leaving_no_key(trace, item).items():
            assert rows.any() and not (rows & explained).any(), "each row once"
            assert hidden(trace, item, rules)[rows].all(), "together they leave no key"
            for fewer in combinations(rules, len(rules) - 1):
                assert not hidden(trace, item, fewer)[rows].all(axis=-1).any(), "and without one of them there is a key"
            explained |= rows
        np.testing.assert_array_equal(explained, trace.undefined[item])


@settings(derandomize=True, deadline=None, max_examples=50)
@given(traces())
def test_the_rules_together_are_the_mask(trace):
    for item in range(N):
        alone = [hidden(trace, item, (rule,)) for rule in rules_of(trace)]
        np.testing.assert_array_equal(np.any([*alone, np.zeros((H, L, S), bool)], axis=0), trace.mask[item])


def test_two_float_masks_that_hide_by_their_sum_are_both_needed():
    batch = Batch(np.ones((1, 2, 4)), attn_mask=np.full((2, 2), -4e4), key_padding_mask=np.full((1, 2), -4e4))
    trace = attend(LAYER, batch, dtype="float16")
    assert trace.undefined.all()
    assert list(leaving_no_key(trace, 0)) == [("key padding", "attn_mask")]
