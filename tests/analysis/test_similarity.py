"""Distances between heads: a slow version that says the same, what a distance may never do, and the nearest heads of all layers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Batch, Layer, Recording, Settings, Wrong, attend, synthetic
from mha_viz.analysis import difference_from_average, head_distances, head_table, heads_like, similarity
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.tokens import Parts, Tokens
from tests.analysis.kinds import KINDS, of_kind

CHOSEN = Settings(embed_dim=12, num_heads=3, batch_size=2, seq_len=6, padding=(2,))


def slow(p, q, queries):
    """Mean of Σ p ln(p / m) / 2 + Σ q ln(q / m) / 2 with m = (p + q) / 2, row by row, in parts of ln 2."""
    rows = []
    for i in queries:
        pairs = [(a, b, (a + b) / 2) for a, b in zip(p[i], q[i], strict=True)]
        rows.append(sum(a * math.log(a / m) for a, _, m in pairs if a) + sum(b * math.log(b / m) for _, b, m in pairs if b))
    return np.mean(rows) / 2 / math.log(2) if rows else math.nan


def real(trace, item):
    L = trace.probabilities.shape[2]
    return [i for i in range(L) if not trace.query_padding[item, i] and not trace.undefined[item, :, i].any()]


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    st.builds(
        Settings,
        embed_dim=st.just(12),
        num_heads=st.sampled_from((1, 2, 4)),
        batch_size=st.just(2),
        seq_len=st.integers(1, 6),
        padding=st.just(()) | st.just((1,)),
        padding_side=st.sampled_from(("left", "right")),
        causal=st.booleans(),
        add_zero_attn=st.booleans(),
        seed=st.integers(0, 9),
    ),
    st.sampled_from(KINDS),
    st.sampled_from((1, 2**18)),
)
def test_a_slow_version_says_the_same(chosen, kind, at_once):
    """Also a query at a time."""
    trace = of_kind(kind, synthetic(chosen, dtype="float64"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "AT_ONCE", at_once)
        found = head_distances(trace, 0)
    heads = trace.probabilities[0]
    expected = [[slow(p, q, real(trace, 0)) for q in heads] for p in heads]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_it_is_a_distance():
    """0 to itself and nowhere else here, the same both ways, at most 1; its square root keeps the triangle inequality."""
    far = head_distances(synthetic(Settings(seq_len=5, padding=()), dtype="float64"), 0)
    assert (np.diag(far) == 0).all() and (far == far.T).all() and (far[~np.eye(8, dtype=bool)] > 0).all() and far.max() <= 1
    root = np.sqrt(far)
    assert (root[:, None] <= root[:, :, None] + root[None] + 1e-12).all()  # a to c, over any b


def test_heads_without_a_key_in_common_are_1_apart():
    trace = trace_of_maps(np.array([[[[1.0, 0], [0, 1]], [[0, 1], [1, 0]], [[1, 0], [0, 1]]]]))
    np.testing.assert_allclose(head_distances(trace, 0), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_heads_that_are_almost_equal_are_never_at_less_than_no_distance():
    """float32 rounds the difference of entropies to either side of 0."""
    rows = np.random.default_rng(0).dirichlet(np.ones(50), size=(1, 1, 3)).astype(np.float32)
    nearly = rows + np.float32(1e-7) * np.random.default_rng(1).normal(size=(1, 60, 3, 50)).astype(np.float32)
    assert head_distances(trace_of_maps(np.abs(nearly)), 0).min() == 0 < head_distances(trace_of_maps(np.abs(nearly)), 0).max()


def test_maps_in_float16_are_not_summed_in_it():
    maps = np.random.default_rng(0).dirichlet(np.ones(300), size=(1, 2, 4)).astype(np.float16)
    exact = head_distances(trace_of_maps(maps.astype(np.float32)), 0)
    np.testing.assert_allclose(head_distances(trace_of_maps(maps), 0), exact, rtol=1e-6)


def test_padding_never_moves_a_distance():
    trace = synthetic(CHOSEN)
    noisy = trace.probabilities.copy()
    noisy[0, :, -2:] = np.roll(noisy[0, :, -2:], 1, axis=-1)
    np.testing.assert_array_equal(head_distances(trace_of_maps(noisy, trace.tokens), 0), head_distances(trace, 0))


def test_without_a_real_query_there_is_no_distance():
    assert np.isnan(head_distances(synthetic(Settings(padding=(20,))), 0)).all()


def test_the_nearest_heads_of_all_layers():
    layers = [synthetic(replace(CHOSEN, seed=seed), dtype="float64") for seed in (1, 2, 3)]
    found = heads_like(Recording(tuple(layers)), 1, 2, 0, count=100)
    expected = [
        (slow(layers[1].probabilities[0, 2], trace.probabilities[0, head], range(4)), i, head)
        for i, trace in enumerate(layers)
        for head in range(3)
        if (i, head) != (1, 2)
    ]
    assert [(alike.trace, alike.head) for alike in found.heads] == [(i, head) for _, i, head in sorted(expected)]
    np.testing.assert_allclose([alike.distance for alike in found.heads], sorted(d for d, _, _ in expected))
    assert found.notes == () and found.heads[0].name == "attention"
    assert heads_like(layers, 1, 2, 0, count=2).heads == found.heads[:2]


def test_the_same_head_in_another_layer_is_at_no_distance():
    trace = synthetic(CHOSEN)
    nearest = heads_like([trace, of_kind("call", trace), of_kind("maps", trace)], 0, 1, 1).heads[:2]
    assert [(alike.trace, alike.head) for alike in nearest] == [(1, 1), (2, 1)]
    assert all(alike.distance < 1e-6 for alike in nearest)


def test_what_cannot_be_compared_is_passed_over_with_the_reason():
    own, short, longer = synthetic(CHOSEN), synthetic(Settings(batch_size=1)), synthetic(Settings(batch_size=2))
    padded = synthetic(Settings(embed_dim=12, num_heads=3, batch_size=2, seq_len=6, padding=(0, 6)))
    found = heads_like([own, short, longer, padded], 0, 0, 1)
    assert {alike.trace for alike in found.heads} == {0}
    assert found.notes == (
        "attention (1) has no batch item 1.",
        "attention (2) has maps of another size, 20 × 20.",
        "attention (3) has no query that is real, with finite weights, in both.",
    )


def test_other_tokens_are_said():
    maps = np.full((1, 2, 2, 2), 0.5)
    traces = [trace_of_maps(maps, Tokens.of(1, 2, 2, texts)) for texts in ((("a", "b"),), (("a", "c"),))]
    assert heads_like(traces, 0, 0, 0).notes == (
        "Other tokens stand in attention (1): rows and keys are compared by position.",
    )


@pytest.mark.parametrize(
    ("place", "argument"), [((2, 0, 0), "trace"), ((0, 3, 0), "head"), ((0, 0, 2), "item"), ((-1, 0, 0), "trace")]
)
def test_a_head_that_there_is_not_is_refused(place, argument):
    with pytest.raises(Wrong) as caught:
        heads_like([synthetic(CHOSEN)] * 2, *place)
    assert caught.value.argument == argument


def test_the_average_of_two_heads_is_nearer_than_the_other():
    """The distance from the average and that between heads are one measure: half way is less than the whole way."""
    trace = synthetic(Settings(embed_dim=12, num_heads=2, seq_len=6, padding=()))
    assert difference_from_average(trace, 0).max() < head_distances(trace, 0)[0, 1]


def test_rows_that_are_not_finite_are_no_rows_of_padding():
    """Where every row of an item is NaN, its queries are real: the note says what it is that no head has."""
    query = np.ones((1, 3, 8), np.float32)
    query[0, 1, 0] = np.nan
    trace = attend(Layer.random(8, 2), Batch(query))
    assert "finite" in heads_like([trace], 0, 0, 0).notes[0]


def test_a_part_that_another_layer_lacks_is_called_as_the_part_it_is():
    maps, places = np.full((2, 2, 2, 2), 0.5), ((0, 0, 0), (0, 0, 3))
    tokens = {N: replace(Tokens.of(N, 2, 2), parts=Parts("window", "image", places[:N])) for N in (2, 1)}
    windows = [trace_of_maps(maps[:N], tokens[N], name) for N, name in ((2, "a"), (1, "b"))]
    assert heads_like(windows, 0, 0, 1).notes == ("b (1) has no window (0, 3) of image 0.",)
    assert head_table(windows, 1).notes == ("b (1) has no window (0, 3) of image 0: window (0, 0) of image 0 alone.",)
