"""The strongest cells of a head: a slow search that finds the same ones, and what would be strong whatever the head does left aside."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Recording, Settings, Wrong, synthetic
from mha_viz.analysis import strongest
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.maps import trace_of_maps
from tests.analysis.kinds import KINDS, of_kind


def slow(traces, head, count, by, sink):
    """Cell by cell: of every real query with a choice its strongest position, then all in order."""
    found = []
    for i, trace in enumerate(traces):
        (N, H, L, _), S = trace.probabilities.shape, trace.num_positions
        for item in range(N):
            real = [q for q in range(L) if not trace.query_padding[item, q] and not trace.undefined[item, :, q].any()]
            reachable = [k for k in range(S) if any(not trace.mask[item, h, q, k] for q in real for h in range(H))]
            for query in real:
                p, mask = trace.probabilities[item, head, query], trace.mask[item, head, query]
                cells = []
                for key in range(S):
                    added = None
                    if trace.has("v") and trace.out_proj:
                        D = trace.v.shape[3]
                        own = trace.out_proj[0][:, head * D : (head + 1) * D]  # [E, D]
                        added = np.linalg.norm(p[key] * (own @ trace.v[item, head, key]))
                    if not mask[key] and (sink or key != reachable[0]):
                        cells.append((p[key] if by == "weight" else added, key, p[key], added))
                best = max(cells, key=lambda cell: cell[0], default=(0,))
                if (~mask).sum() > 1 and best[0] > 0:
                    found.append((best[0], i, item, query, *best[1:]))
    return sorted(found, key=lambda cell: -cell[0])[:count]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.builds(
        Settings,
        embed_dim=st.just(12),
        num_heads=st.just(3),
        batch_size=st.integers(1, 2),
        seq_len=st.integers(2, 5),
        padding=st.just(()) | st.just((2,)),
        padding_side=st.sampled_from(("left", "right")),
        causal=st.booleans(),
        add_bias_kv=st.booleans(),
        add_zero_attn=st.booleans(),
        window=st.sampled_from((None, 1, 2)),
    ),
    st.sampled_from(KINDS),
    st.integers(1, 12),
    st.sampled_from(("weight", "contribution")),
    st.booleans(),
)
def test_a_slow_search_finds_the_same(chosen, kind, count, by, sink):
    by = "weight" if kind == "maps" else by
    traces = [of_kind(kind, synthetic(Settings(**vars(chosen) | {"seed": seed}), dtype="float64")) for seed in (1, 2)]
    found, expected = strongest(traces, 1, count, by=by, sink=sink), slow(traces, 1, count, by, sink)
    assert [(e.trace, e.item, e.query, e.key) for e in found] == [cell[1:5] for cell in expected]
    np.testing.assert_allclose([e.weight for e in found], [cell[5] for cell in expected])
    if kind == "maps":
        assert {e.contribution for e in found} <= {None}
    else:
        np.testing.assert_allclose([e.contribution for e in found], [cell[6] for cell in expected], rtol=1e-7)


def test_a_large_weight_on_a_small_value_is_no_strong_contribution():
    """Weights 0.8 and 0.2 on values of length 0.1 and 3: Kobayashi's point."""
    q, k = np.ones((1, 1, 1, 1)), np.log([0.8, 0.2]).reshape(1, 1, 2, 1)
    trace = trace_of_call(Call(q, k, np.array([0.1, 3]).reshape(1, 1, 2, 1), scale=1.0, out_weight=np.ones((1, 1))))
    (by_weight,), (by_contribution,) = strongest([trace], 0), strongest([trace], 0, by="contribution")
    assert (by_weight.key, by_contribution.key) == (0, 1)
    assert (by_weight.weight, by_weight.contribution) == pytest.approx((0.8, 0.08))
    assert (by_contribution.weight, by_contribution.contribution) == pytest.approx((0.2, 0.6))


def test_a_value_that_is_no_number_hides_no_other_example():
    q, v = np.zeros((1, 1, 2, 1)), np.array([np.nan, 2.0, 3.0]).reshape(1, 1, 3, 1)
    trace = trace_of_call(Call(q, np.zeros((1, 1, 3, 1)), v, out_weight=np.ones((1, 1))))
    found = strongest([trace], 0, by="contribution")
    assert [(e.query, e.key) for e in found] == [(0, 2), (1, 2)] and found[0].contribution == pytest.approx(1)


def test_the_sink_is_left_aside_where_asked():
    rows = np.array([[1, 0, 0], [0.9, 0.1, 0], [0.8, 0.05, 0.15]])
    trace = trace_of_maps(np.stack([rows, [[1, 0, 0], [0.5, 0.5, 0], [0.4, 0.3, 0.3]]])[None])
    assert [(e.query, e.key) for e in strongest([trace], 0)] == [(1, 0), (2, 0)], "row 0 has one key only"
    assert [(e.query, e.key) for e in strongest([trace], 0, sink=False)] == [(2, 2), (1, 1)]


def test_padding_is_no_example():
    trace = synthetic(Settings(padding=(15,)))
    noisy = trace.probabilities.copy()
    noisy[0, :, -15:] = np.eye(20)[0]  # padded queries that are certain of a key
    found = strongest([trace_of_maps(noisy, trace.tokens)], 0, 100)
    assert [e.query for e in found if e.item == 0] and all(e.query < 5 and e.key < 5 for e in found if e.item == 0)


def test_what_cannot_be_asked_is_refused():
    trace = of_kind("maps", synthetic())
    with pytest.raises(Wrong, match=r"layers.3 \(1\): the values v are not known") as caught:
        strongest([synthetic(), trace], 0, by="contribution")
    assert caught.value.nearest == ({"by": "weight"},)
    with pytest.raises(Wrong, match="head"):
        strongest([trace], 8)
    with pytest.raises(Wrong, match="by"):
        strongest([trace], 0, by="size")


def test_a_recording_is_taken_as_it_is():
    traces = (synthetic(), synthetic(Settings(seed=8)))
    assert strongest(Recording(traces), 2) == strongest(traces, 2)
    assert len(strongest(traces, 2)) == 10 and strongest([], 2) == []
