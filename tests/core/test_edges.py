"""Edges of the core that no property comes near: the last byte that fits, swapped widths, NaN behind a mask, one row of a block."""

from dataclasses import replace

import numpy as np
import pytest

from mha_viz.core import attend as attending
from mha_viz.core import long, memory
from mha_viz.core.attend import attend, trace_of_call
from mha_viz.core.batch import Batch
from mha_viz.core.call import Call
from mha_viz.core.layer import Layer
from mha_viz.core.mask import Mask
from mha_viz.core.reference import softmax
from mha_viz.core.rules import Wrong
from mha_viz.core.sight import Sight
from mha_viz.core.tokens import Tokens

X = np.random.default_rng(0).standard_normal((2, 6, 8), dtype=np.float32)

CHECKS = {
    "maps": (lambda free: memory.check_memory(2, 4, 64, 64, 32, available=free), memory.peak(2, 4, 64, 64, 32)),
    "q, k and v": (
        lambda free: memory.check_projected_memory(2, 64, 64, 32, available=free),
        memory.projected_memory(2, 64, 64, 32),
    ),
    "weights": (lambda free: memory.check_layer_memory(4096, available=free), memory.layer_memory(4096)),
}


@pytest.mark.parametrize(("check", "needed"), CHECKS.values(), ids=CHECKS)
def test_half_of_what_is_free_may_be_used_and_no_byte_more(check, needed):
    check(2 * needed)
    for free in (2 * needed - 1, 2 * needed - needed // 2, needed):
        with pytest.raises(Wrong, match="half of what is free"):
            check(free)


@pytest.mark.parametrize(("key", "value", "named"), [(7, 5, "key"), (7, 7, "key"), (5, 5, "value")])
def test_keys_and_values_of_each_others_width_are_refused(key, value, named):
    batch = Batch(X, np.zeros((2, 4, key)), np.zeros((2, 4, value)))
    with pytest.raises(Wrong) as wrong:
        attend(Layer.random(8, 2, kdim=5, vdim=7), batch)
    assert wrong.value.argument == named


def test_a_long_sequence_with_dropout_is_checked_at_once(monkeypatch):
    """Without dropout no map is made before somebody asks; with it there is a number for every weight."""

    def refuse(*_, **__):
        raise Wrong("seq_len", 6, "does not fit.")

    monkeypatch.setattr(attending, "check_memory", refuse)
    layer = Layer.random(8, 2, dropout=0.5)
    assert attend(layer, Batch(X), later=True).q.shape == (2, 2, 6, 4)
    with pytest.raises(Wrong, match="does not fit"):
        attend(layer, Batch(X), later=True, training=True)


def a_call(**mask):
    rng = np.random.default_rng(1)
    q, k = (rng.standard_normal((1, 2, 6, 4), dtype=np.float32) for _ in range(2))
    return Call(q, k, mask=Mask(6, 6, **mask))


def test_a_nan_key_reaches_rows_from_which_it_is_hidden_in_long_maps_as_in_whole_ones(monkeypatch):
    """−∞ added to NaN is NaN, also in blocks of rows from which causal hides the key."""
    monkeypatch.setattr("mha_viz.core.rows.ROWS", 2)
    call = a_call(causal=True)
    k = np.array(call.k)
    k[0, :, 4, 0] = np.nan
    call = replace(call, k=k)
    whole = np.isnan(trace_of_call(call).weights[0, 0]).any(axis=1)  # [L]
    pooled = next(long.pooled(call, [0], shape=(6, 6)))
    assert whole.sum() == 6
    np.testing.assert_array_equal(np.isnan(pooled.largest).all(axis=1), whole)


def test_a_row_whose_lengths_sum_to_infinity_is_undefined_in_long_maps():
    lengths = np.ones((2, 6), np.float32)
    lengths[0, 2:] = np.inf
    first, second = long.pooled(a_call(), shape=(6, 6), lengths=lengths)
    assert np.isnan(first.largest).all() and np.isnan(first.mean).all()
    assert np.isfinite(second.largest).all()


def test_the_reference_softmax_is_shifted():
    with np.errstate(over="raise"):
        found = softmax(np.array([[1000.0, 999.0, -1000.0], [-2000.0, -2000.0, -np.inf]]))
    np.testing.assert_allclose(found, [[1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0], [0.5, 0.5, 0]], atol=1e-15)


@pytest.mark.parametrize(("rule", "one"), [({}, False), ({"window": 2}, True), ({"causal": True}, True)], ids=str)
def test_rules_about_places_make_queries_and_keys_one_sequence(rule, one):
    positions = Batch(X[:, :3], X + 1, **rule).tokens().positions
    assert positions.tolist() == [3, 4, 5] if one else positions is None


def test_a_mask_that_adds_nothing_is_none():
    for given in ({"attn_mask": np.zeros((6, 6))}, {"key_padding_mask": np.zeros((2, 6))}):
        assert Batch(X, **given).mask(2).bias is None and Batch(X, **given).mask(2).empty
        assert attend(Layer.random(8, 2), Batch(X, **given)).mask_bias is None
    hides = np.where(np.eye(6) > 0, -np.inf, 0)
    assert Batch(X, attn_mask=hides).mask(2).bias is None and Batch(X, attn_mask=hides).mask(2).dense.sum() == 6


def test_a_block_is_padding_where_all_of_its_queries_are():
    padding = np.array([[False, True, True, True, False, False]])
    seen = Tokens.of(1, 6, 6, query_padding=padding).seen(Sight.of(6, 6, shape=(3, 3)))
    assert seen.query_padding.tolist() == [[False, True, False]]


def test_positions_count_from_the_first_column_in_sight():
    seen = Tokens.of(1, 6, 6).seen(Sight.of(6, 6, rows=(3, 6), columns=(2, 6)))
    assert seen.positions.tolist() == [1, 2, 3]
    assert [seen.keys[0][place] for place in seen.positions] == list(seen.queries[0]) == ["3", "4", "5"]
