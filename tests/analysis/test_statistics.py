"""Head statistics: values worked out by hand, a naive loop that says the same, and what each may never do."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Batch, Layer, Settings, Trace, Wrong, attend, synthetic
from mha_viz.analysis.statistics import HIDING, STATISTICS, statistic

POSITIONAL = ("distance", "previous", "self", "next")


def given_map(*heads, extra=0, **batch):
    """A Trace whose probabilities [1, H, L, S] are these, as a batch with these masks would mask them."""
    p = np.array(heads, np.float64)[None]  # [1, H, L, S]
    H, L = p.shape[1:3]
    batch = Batch(np.zeros((1, L, 1)), **batch)
    mask = np.broadcast_to(batch.mask(H, extra).hidden(), p.shape)
    fields = {"probabilities": p, "mask": mask, "mask_bias": None, "undefined": mask.all(axis=-1)}
    return Trace(fields, tokens=batch.tokens(("extra",) * extra), batch=batch)


def naive(trace, item, head):
    """Every statistic of one head, cell by cell, as its formula reads; self-attention of one's own positions."""
    L, S = trace.batch.L, trace.batch.S
    p, mask = trace.probabilities[item, head], trace.mask[item]
    real = [i for i in range(L) if not trace.query_padding[item, i] and not trace.undefined[item, :, i].any()]
    shift, columns = S - L, p.shape[1]
    start = next((j for j in range(S) if any(not mask[h, i, j] for i in real for h in range(len(mask)))), 0)
    gathered = {name: [] for name in ("entropy", "confidence", "previous", "self", "next", "first")}
    reach = weight = 0.0
    for i in real:
        seen = [j for j in range(columns) if not mask[head, i, j]]
        if len(seen) < 2:
            continue
        gathered["entropy"].append(-sum(p[i, j] * math.log(p[i, j]) for j in seen if p[i, j] > 0) / math.log(len(seen)))
        gathered["confidence"].append(max(p[i, :S]))
        for name, key in (("previous", i + shift - 1), ("self", i + shift), ("next", i + shift + 1), ("first", start)):
            if key in seen and key < S and not (name == "first" and i + shift == start):
                gathered[name].append(p[i, key])
        reach += sum(p[i, j] * abs(i + shift - j) for j in range(S))
        weight += sum(p[i, :S])
    values = {name: np.mean(found) if found else np.nan for name, found in gathered.items()}
    return values | {"distance": reach / weight if weight else np.nan}


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.builds(
        Settings, embed_dim=st.just(12), num_heads=st.sampled_from((1, 3)), batch_size=st.integers(1, 2), seq_len=st.integers(4, 6),
        padding=st.tuples(st.integers(0, 4)), padding_side=st.sampled_from(("left", "right")), causal=st.booleans(),
        window=st.sampled_from((None, 1, 2, 4)), add_bias_kv=st.booleans(), add_zero_attn=st.booleans(),
    )
)  # fmt: skip
def test_a_naive_loop_says_the_same(chosen):
    trace = synthetic(chosen, dtype="float64")
    for item in range(chosen.N):
        loops = [naive(trace, item, head) for head in range(chosen.num_heads)]
        for name in loops[0]:
            np.testing.assert_allclose(statistic(trace, item, name), [loop[name] for loop in loops], rtol=1e-12, err_msg=name)


def test_cross_positions_are_aligned_bottom_right():
    """Two queries at the end of five keys: query 0 stands at key 3, as the causal mask has it."""
    rng = np.random.default_rng(0)
    trace = attend(
        Layer.random(8, 2), Batch(rng.normal(size=(1, 2, 8)), rng.normal(size=(1, 5, 8)), causal=True), dtype="float64"
    )
    for head in range(2):
        for name, value in naive(trace, 0, head).items():
            np.testing.assert_allclose(statistic(trace, 0, name)[head], value, rtol=1e-12, err_msg=name)
    assert statistic(trace, 0, "self")[0] == pytest.approx(trace.probabilities[0, 0, [0, 1], [3, 4]].mean())


def test_values_by_hand():
    previous = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    uniform = np.full((4, 4), 0.25)
    trace = given_map(previous, uniform)
    expected = {
        "entropy": (0, 1),
        "confidence": (1, 0.25),
        "distance": (3 / 4, (6 + 4 + 4 + 6) / 16),
        "previous": (1, 0.25),  # row 0 has nothing before it
        "self": (1 / 4, 0.25),
        "next": (0, 0.25),
        "first": (1 / 3, 0.25),  # rows 1 to 3; row 0 would be its own sink
    }
    for name, values in expected.items():
        np.testing.assert_allclose(statistic(trace, 0, name), values, atol=1e-12, err_msg=name)


def test_uniform_causal_rows_have_the_largest_entropy():
    """Divided by log S they would look more and more certain towards the top; row 0 has no choice and says nothing."""
    trace = given_map(np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None], causal=True)
    assert statistic(trace, 0, "entropy") == pytest.approx(1)
    assert statistic(trace, 0, "confidence") == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert np.isnan(statistic(trace, 0, "next")), "no causal row may see its next"


def test_left_padding_is_not_the_first_token():
    trace = synthetic(Settings(padding=(3,), padding_side="left", causal=True))
    np.testing.assert_allclose(statistic(trace, 0, "first"), trace.probabilities[0, :, 4:, 3].mean(axis=-1), rtol=1e-6)


def test_extra_columns_are_no_positions():
    """All weight on the zero column: nothing is first, last, near or far, and no position is the largest."""
    trace = given_map([[0, 0, 1], [0.5, 0, 0.5]], extra=1)
    assert statistic(trace, 0, "next") == 0
    assert statistic(trace, 0, "confidence") == pytest.approx(0.25)
    assert statistic(trace, 0, "distance") == pytest.approx(0.5 / 0.5)
    nothing = given_map([[0, 0, 1], [0, 0, 1]], extra=1)
    assert np.isnan(statistic(nothing, 0, "distance"))


def test_a_key_hidden_by_a_large_negative_number_is_not_seen():
    """−1e9 hides as −∞ does: the entropy is over the keys that are left, not over all."""
    triangle = np.triu(np.ones((4, 4)), 1)
    query = np.random.default_rng(1).normal(size=(1, 4, 8))
    by_number, by_rule = (
        attend(Layer.random(8, 2), Batch(query, **mask)) for mask in ({"attn_mask": triangle * -1e9}, {"causal": True})
    )
    for name in STATISTICS:
        np.testing.assert_allclose(statistic(by_number, 0, name), statistic(by_rule, 0, name), rtol=1e-5, err_msg=name)
    assert HIDING > -65504, "the smallest float16 hides"


def test_cross_attention_has_no_common_positions():
    trace = synthetic(Settings(source_len=20))
    for name in STATISTICS:
        assert np.isnan(statistic(trace, 0, name)).all() == (name in POSITIONAL), name
    query = synthetic().batch.query
    again = attend(Layer.random(128, 8), Batch(query, query.copy()))
    assert not np.isnan(statistic(again, 0, "distance")).any(), "a key passed again is still the query"


@pytest.mark.parametrize("name", STATISTICS)
def test_padding_and_undefined_queries_never_count(name):
    """Rows of padding are noise, rows without a key NaN: neither moves a number."""
    trace = synthetic(Settings(causal=True, padding=(3,), padding_side="left"))
    assert np.isfinite(statistic(trace, 0, name)).all() or name == "next"
    padded = synthetic(Settings(padding=(3,)))
    other = padded.probabilities.copy()
    other[0, :, -3:] = np.roll(other[0, :, -3:], 5, axis=-1)
    changed = Trace(
        {n: other if n == "probabilities" else getattr(padded, n) for n in ("probabilities", "mask", "mask_bias", "undefined")},
        tokens=padded.tokens, layer=padded.layer, batch=padded.batch,
    )  # fmt: skip
    np.testing.assert_array_equal(statistic(changed, 0, name), statistic(padded, 0, name))


@pytest.mark.parametrize("name", STATISTICS)
def test_an_item_without_a_real_query_is_nan(name):
    assert np.isnan(statistic(synthetic(Settings(padding=(20,))), 0, name)).all()


@pytest.mark.parametrize("name", STATISTICS)
def test_dropout_changes_no_statistic(name):
    np.testing.assert_array_equal(statistic(synthetic(Settings(training=True)), 0, name), statistic(synthetic(), 0, name))


def test_every_statistic_stays_in_its_bounds():
    for trace in (synthetic(Settings(causal=True)), synthetic(Settings(window=2, add_zero_attn=True))):
        for name, how in STATISTICS.items():
            values = statistic(trace, 0, name)
            assert values.shape == (8,) and values.dtype == np.float64
            assert (values[~np.isnan(values)] >= 0).all()
            assert how.unit == "tokens" or (values[~np.isnan(values)] <= 1).all()


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(Wrong, match="entropy"):
        statistic(synthetic(), 0, "entropie")
