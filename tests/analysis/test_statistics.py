"""Head statistics: values worked out by hand, a naive loop that says the same, and what each may never do."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Batch, Layer, Settings, Trace, Wrong, attend, synthetic
from mha_viz.analysis.rows import HIDING
from mha_viz.analysis.statistics import STATISTICS, statistic, why_not
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.intervention import Intervention, changed
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.tokens import Tokens
from tests.analysis.kinds import KINDS, of_kind

POSITIONAL = ("distance", "previous", "self", "next", "induction")


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
    (H, L, columns), S = trace.probabilities.shape[1:], trace.num_positions
    p, mask = trace.probabilities[item, head], trace.mask[item]
    asks, read = trace.query_tokens[item], trace.key_tokens[item]
    real = [i for i in range(L) if not trace.query_padding[item, i] and not trace.undefined[item, :, i].any()]
    shift, reachable = S - L, [j for j in range(S) if any(not mask[h, i, j] for i in real for h in range(H))]
    start = reachable[0] if reachable else 0
    gathered = {name: [] for name in ("entropy", "confidence", "previous", "self", "next", "first", "induction")}
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
        targets = [j + 1 for j in reachable if j + 1 < i + shift and read[j] == asks[i] and j + 1 in seen]
        if targets:
            gathered["induction"].append(sum(p[i, j] for j in targets))
        reach += sum(p[i, j] * abs(i + shift - j) for j in range(S))
        weight += sum(p[i, :S])
    values = {name: np.mean(found) if found else np.nan for name, found in gathered.items()}
    values["distance"] = reach / weight if weight else np.nan
    if trace.has("v"):
        brought = [sum(np.linalg.norm(added(trace, item, h, i)) for i in real) for h in range(H)]
        values["contribution"] = brought[head] / sum(brought) if real else np.nan
    return values


def added(trace, item, head, query):
    """[E]: what a head adds to one query's output, key by key."""
    D = trace.v.shape[3]
    own = trace.out_proj[0][:, head * D : (head + 1) * D]  # [E, D]
    return sum(
        weight * (own @ v) for weight, v in zip(trace.probabilities[item, head, query], trace.v[item, head], strict=True)
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.builds(
        Settings,
        embed_dim=st.just(12),
        num_heads=st.sampled_from((1, 3)),
        batch_size=st.integers(1, 2),
        seq_len=st.integers(4, 6),
        padding=st.tuples(st.integers(0, 4)),
        padding_side=st.sampled_from(("left", "right")),
        causal=st.booleans(),
        window=st.sampled_from((None, 1, 2, 4)),
        add_bias_kv=st.booleans(),
        add_zero_attn=st.booleans(),
        words=st.sampled_from((None, "a b a b c", "a b c a b c a\nb <pad> b <pad>", "a a a b a a")),
        positions=st.booleans(),
    ),
    st.sampled_from(KINDS),
)
def test_a_naive_loop_says_the_same(chosen, kind):
    trace = of_kind(kind, synthetic(chosen, dtype="float64"))
    for item in range(chosen.N):
        loops = [naive(trace, item, head) for head in range(chosen.num_heads)]
        for name in loops[0]:
            found = statistic(trace, item, name)
            np.testing.assert_allclose(found, [loop[name] for loop in loops], rtol=1e-9, atol=1e-12, err_msg=name)
            assert (why_not(trace, item, name) is not None) == np.isnan(found).any()


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
    trace = synthetic(Settings(words="a b c a b c", causal=True, padding=(3,), padding_side="left"))
    assert np.isfinite(statistic(trace, 0, name)).all() or name == "next"
    padded = synthetic(Settings(words="a b c a b c a b a b a b", padding=(3,), positions=True))
    other = padded.probabilities.copy()
    other[0, :, -3:] = np.roll(other[0, :, -3:], 5, axis=-1)
    fields = {
        n: other if n == "probabilities" else getattr(padded, n)
        for n in ("probabilities", "mask", "mask_bias", "undefined", "v")
    }
    noisy = Trace(fields, tokens=padded.tokens, layer=padded.layer, batch=padded.batch)
    assert np.isfinite(statistic(padded, 0, name)).all()
    np.testing.assert_allclose(
        statistic(noisy, 0, name), statistic(padded, 0, name), rtol=1e-5 if name == "contribution" else 0
    )


@pytest.mark.parametrize("name", STATISTICS)
def test_an_item_without_a_real_query_is_nan(name):
    assert np.isnan(statistic(synthetic(Settings(padding=(20,))), 0, name)).all()


@pytest.mark.parametrize("name", STATISTICS)
def test_dropout_changes_no_statistic(name):
    dropped, whole = (statistic(synthetic(Settings(training=training)), 0, name) for training in (True, False))
    np.testing.assert_allclose(dropped, whole, rtol=1e-5 if name == "contribution" else 0)  # its sums are PyTorch's or our own


def test_every_statistic_stays_in_its_bounds():
    for trace in (synthetic(Settings(causal=True)), synthetic(Settings(window=2, add_zero_attn=True))):
        for name, how in STATISTICS.items():
            values = statistic(trace, 0, name)
            assert values.shape == (8,) and values.dtype == np.float64
            assert (values[~np.isnan(values)] >= 0).all()
            assert how.unit == "tokens" or (values[~np.isnan(values)] <= 1).all()


def test_induction_by_hand():
    """a b c a: the last row's target is b, at 1. Rows without an earlier like of theirs do not count."""
    p = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.3, 0.5, 0], [0.1, 0.6, 0.1, 0.2]])
    trace = given_map(p, p[:, ::-1], query_tokens=(("a", "b", "c", "a"),))
    np.testing.assert_allclose(statistic(trace, 0, "induction"), [0.6, 0.1])


def test_induction_adds_up_over_every_earlier_like():
    """a b a c a: the last row may repeat b or c."""
    p = np.full((5, 5), 0.2)
    p[4], p[2] = (0, 0.5, 0.1, 0.3, 0.1), (0.1, 0.7, 0.1, 0.1, 0)
    trace = given_map(p, query_tokens=(tuple("abaca"),))
    assert statistic(trace, 0, "induction")[0] == pytest.approx((0.8 + 0.7) / 2)


def test_induction_is_not_weight_on_the_own_token():
    """a a: what followed the first a is the second itself. A head that reads its own token is no induction head."""
    trace = given_map(np.eye(3), query_tokens=(tuple("aab"),))
    assert np.isnan(statistic(trace, 0, "induction")[0])
    assert why_not(trace, 0, "induction") == "no token repeats so that a later query may see what followed the earlier one"


def test_induction_looks_back_only_and_not_at_padding():
    """Later likes are no earlier ones; a pad that is spelled as a token is not one of the text."""
    forward = given_map(np.full((3, 3), 1 / 3), query_tokens=(tuple("aba"),))
    assert statistic(forward, 0, "induction")[0] == pytest.approx(1 / 3), "query 2 has a target, query 0 none"
    pads = np.array([[True, False, False]])
    padded = given_map(np.full((3, 3), [0, 0.5, 0.5]), query_tokens=(("a", "b", "a"),), key_padding_mask=pads)
    assert np.isnan(statistic(padded, 0, "induction")[0])


def test_a_row_that_sees_its_target_alone_says_nothing_of_induction():
    """Its weight is 1 whatever the head has learnt."""
    mask = np.zeros((3, 3), bool)
    mask[2, [0, 2]] = True
    trace = given_map([[0.4, 0.3, 0.3], [0.4, 0.3, 0.3], [0, 1, 0]], query_tokens=(tuple("aba"),), attn_mask=mask)
    assert np.isnan(statistic(trace, 0, "induction")[0])


def test_a_token_that_numpy_would_cut_short_is_itself():
    trace = given_map(np.full((3, 3), 1 / 3), query_tokens=(("a\0", "b", "a"),))
    assert np.isnan(statistic(trace, 0, "induction")[0])


def test_contribution_is_by_what_a_head_adds_and_not_by_its_weights():
    """Equal maps, equal values: the head whose Wᴼ is three times as long brings three quarters, or all where the other's is 0."""
    q, v = np.zeros((1, 2, 3, 2)), np.ones((1, 2, 3, 2))
    for longer, shares in ((3, [0.25, 0.75]), (0, [1, 0])):
        out = np.concatenate([np.eye(2), longer * np.eye(2)], axis=1)  # [E 2, H·D 4]
        np.testing.assert_allclose(statistic(trace_of_call(Call(q, q, v, out_weight=out)), 0, "contribution"), shares)
    nothing = trace_of_call(Call(q, q, v, out_weight=np.zeros((2, 4))))
    assert np.isnan(statistic(nothing, 0, "contribution")).all()
    assert why_not(nothing, 0, "contribution") == "what the heads add to the output has no finite length above 0"


def test_contributions_of_opposite_directions_do_not_cancel_out():
    q, v = np.zeros((1, 2, 3, 1)), np.ones((1, 2, 3, 1))
    trace = trace_of_call(Call(q, q, v, out_weight=np.array([[1.0, -1.0]])))
    assert np.abs(trace.output).max() == 0
    np.testing.assert_allclose(statistic(trace, 0, "contribution"), [0.5, 0.5])


def test_a_head_that_is_off_contributes_nothing():
    """Its probabilities stay what it computed; its output is what counts."""
    off = changed(synthetic(), Intervention(off={2: "zero"}))
    found = statistic(off, 0, "contribution")
    assert found[2] == 0 and found.sum() == pytest.approx(1)


def test_grouped_heads_contribute_by_the_values_of_their_group():
    rng = np.random.default_rng(3)
    q, k, v = rng.normal(size=(1, 4, 5, 3)), rng.normal(size=(1, 2, 5, 3)), rng.normal(size=(1, 2, 5, 2))
    trace = trace_of_call(Call(q, k, v, out_weight=rng.normal(size=(6, 8))))
    np.testing.assert_allclose(statistic(trace, 0, "contribution"), [naive(trace, 0, h)["contribution"] for h in range(4)])
    assert statistic(trace, 0, "contribution").sum() == pytest.approx(1)


def test_values_that_are_not_finite_give_no_number():
    """Of no head: what is infinite in one makes the others' share 0, which is no fact about them."""
    q, v = np.zeros((1, 2, 3, 2)), np.ones((1, 2, 3, 2))
    v[0, 1] = np.inf
    assert np.isnan(statistic(trace_of_call(Call(q, q, v, out_weight=np.ones((2, 4)))), 0, "contribution")).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_source_changes_no_number(kind):
    """What is read from weights, masks and tokens is the same from a layer, a recorded call and maps alone."""
    chosen = Settings(words="a b c a b c a\nb a", positions=True, causal=True, padding=(1,), num_heads=4)
    trace, other = synthetic(chosen), of_kind(kind, synthetic(chosen))
    for name in STATISTICS:
        for item in range(2):
            expected = statistic(trace, item, name)
            if name == "contribution" and kind == "maps":
                expected = np.full(4, np.nan)
            np.testing.assert_allclose(statistic(other, item, name), expected, rtol=2e-5, atol=1e-6, err_msg=name)


def test_every_missing_number_has_its_reason():
    rows = np.full((1, 2, 3, 3), 1 / 3)
    alone = trace_of_maps(rows, Tokens.of(1, 3, 3, one_sequence=False))
    reasons = {name: why_not(alone, 0, name) for name in STATISTICS if why_not(alone, 0, name)}
    assert reasons == dict.fromkeys(POSITIONAL, "queries and keys are different sequences, which share no positions") | {
        "contribution": "the values v are not known, only weights"
    }
    q = np.zeros((1, 2, 3, 2))
    assert why_not(trace_of_call(Call(q, q, q)), 0, "contribution") == "the output projection Wᴼ is not known"
    assert why_not(synthetic(Settings(padding=(20,))), 0, "entropy") == "no query of item 0 counts: each is padding"
    assert why_not(given_map([[0, 0, 1], [0, 0, 1]], extra=1), 0, "distance") == "all weight is on columns that are no position"
    assert why_not(synthetic(Settings(causal=True)), 0, "next").endswith("as in causal attention")
    assert why_not(synthetic(), 0, "induction").startswith("no token repeats")
    assert why_not(synthetic(), 0, "next") is None


def test_a_reason_names_the_heads_that_it_is_about():
    mask = np.zeros((3, 4, 4), bool)
    mask[[0, 2], :, 1:] = True  # these heads see one key only
    trace = attend(Layer.random(6, 3), Batch(np.random.default_rng(0).normal(size=(1, 4, 6)), attn_mask=mask))
    assert why_not(trace, 0, "entropy").startswith("in heads 0 and 2 no real query sees more than one key")
    mask[0] = False
    trace = attend(Layer.random(6, 3), Batch(np.random.default_rng(0).normal(size=(1, 4, 6)), attn_mask=mask))
    assert why_not(trace, 0, "entropy").startswith("in head 2 no real query")


def test_maps_alone_that_are_all_on_one_key_leave_no_choice():
    """Nobody can tell a mask from a head that is certain of itself, once every head is."""
    trace = trace_of_maps(np.eye(3)[None, None])
    assert np.isnan(statistic(trace, 0, "entropy")).all()
    assert "no real query sees more than one key" in why_not(trace, 0, "entropy")


def test_a_statistic_is_computed_once_and_nobody_changes_it():
    trace = synthetic(Settings(embed_dim=8, num_heads=2))
    found = statistic(trace, 0, "entropy")
    assert statistic(trace, 0, "entropy") is found
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(Wrong, match="entropy"):
        statistic(synthetic(), 0, "entropie")
