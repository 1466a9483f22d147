"""Pooled maps and windows of them against the whole matrix, and what they cost in memory."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.core import long
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.intervention import Intervention, changed
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Wrong
from mha_viz.core.tokens import Tokens

every = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def calls(draw):
    """A Call whose sizes all differ, with grouped keys, extra columns and every kind of mask; some rows are left without a key."""
    N, H, D, L, S = 2, 4, 5, draw(st.integers(1, 60)), draw(st.integers(3, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    extra, G = draw(st.integers(0, 2)), draw(st.sampled_from([1, 2, 4]))
    real = S - extra
    dtype = draw(st.sampled_from([np.float32, np.float64, np.float16]))
    maybe = lambda array: array if draw(st.booleans()) else None  # noqa: E731
    mask = Mask(
        L,
        real,
        extra,
        causal=draw(st.booleans()),
        window=draw(st.none() | st.integers(1, 20)),
        padded=maybe(rng.random((N, real)) < draw(st.sampled_from([0.3, 1.0]))),
        dense=maybe(rng.random((draw(st.sampled_from([1, N])), draw(st.sampled_from([1, H])), L, real)) < 0.4),
        bias=maybe(rng.normal(size=(1, H, draw(st.sampled_from([1, L])), real))),
    )
    q, k = (rng.normal(size=(N, heads, length, D)).astype(dtype) * 2 for heads, length in ((H, L), (G, S)))
    tokens = replace(Tokens.of(N, L, S, one_sequence=L <= S and draw(st.booleans())), extra=extra)
    return Call(q, k, mask=mask, tokens=tokens)


def pool_by_hand(whole, hidden, pool):
    """(largest, mean, hidden) [rows, columns] of a whole map [L, S]; NaN gives way to numbers."""

    def reduced(function, cells):
        return function.reduceat(function.reduceat(cells, pool.starts(0)[:-1], axis=0), pool.starts(1)[:-1], axis=1)

    defined = ~np.isnan(whole)
    with np.errstate(invalid="ignore"):  # 0 / 0 where all is NaN
        mean = reduced(np.add, np.where(defined, whole, 0)) / reduced(np.add, defined.astype(int))
    return reduced(np.fmax, whole), mean, reduced(np.logical_and, hidden)


@every
@given(calls(), st.integers(1, 20), st.integers(1, 20), st.integers(1, 9))
def test_pooled_maps_are_the_whole_maps_pooled(call, down, across, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mha_viz.core.rows.ROWS", rows)  # so that blocks of rows and blocks of the pool do not coincide
        maps = list(long.pooled(call, item=1, shape=(down, across)))
    trace = trace_of_call(call)
    assert [found.head for found in maps] == [0, 1, 2, 3]
    for found in maps:
        largest, mean, hidden = pool_by_hand(trace.probabilities[1, found.head], trace.mask[1, found.head], found.sight.pool)
        np.testing.assert_allclose(found.largest, largest, rtol=0, atol=1e-6)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-6)
        assert np.array_equal(found.hidden, hidden)


@every
@given(calls(), st.data())
def test_a_window_is_cut_from_the_whole(call, data):
    L, S = call.q.shape[2], call.k.shape[2]
    (top, bottom), (left, right) = (
        sorted(data.draw(st.lists(st.integers(0, most), min_size=2, max_size=2, unique=True))) for most in (L, S)
    )
    trace, span = trace_of_call(call), {"rows": (top, bottom), "columns": (left, right)}
    (found,) = long.pooled(call, [2], item=1, **span)
    assert found.sight.exact
    exact = trace.probabilities[1, 2, top:bottom, left:right]
    for values in (found.largest, found.mean):
        np.testing.assert_allclose(values, exact, rtol=0, atol=1e-6)
    assert np.array_equal(found.hidden, trace.mask[1, 2, top:bottom, left:right])
    (found,) = long.pooled(call, [2], item=1, **span, shape=(5, 7))
    largest, mean, hidden = pool_by_hand(exact, trace.mask[1, 2, top:bottom, left:right], found.sight.pool)
    np.testing.assert_allclose(found.largest, largest, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-6)
    assert np.array_equal(found.hidden, hidden)


@every
@given(calls(), st.integers(1, 20), st.booleans())
def test_the_average_is_that_of_the_whole(call, most, cut):
    rows = (0, 1 + call.q.shape[2] // 2) if cut else None
    heard = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mha_viz.core.rows.ROWS", 7)
        hear = lambda head, block: heard.append((head, block.p.shape[:2]))  # noqa: E731
        *_, step = long.averaging(call, item=1, shape=(most, most), rows=rows, read=hear)
    assert step.done == 1 and step.found.head is None
    trace = trace_of_call(call)
    sight = slice(*(rows or (None,)))
    whole, hidden = trace.mean_weights[1][sight], trace.mask[1].all(axis=0)[sight]
    largest, mean, hidden = pool_by_hand(whole, hidden, step.found.sight.pool)
    np.testing.assert_allclose(step.found.largest, largest, rtol=0, atol=1e-6)
    np.testing.assert_allclose(step.found.mean, mean, rtol=0, atol=1e-6)
    assert np.array_equal(step.found.hidden, hidden)
    assert sum(rows for _, (_, rows) in heard) == len(whole) and {(head, heads) for head, (heads, _) in heard} == {(None, 4)}


@every
@given(calls(), st.data())
def test_rows_alone_are_those_of_the_whole(call, data):
    """With all that a Trace knows of them: names, padding, positions, mask."""
    L = call.q.shape[2]
    start, stop = sorted(data.draw(st.lists(st.integers(0, L), min_size=2, max_size=2, unique=True)))
    part, whole = trace_of_call(long.rows_of(call, start, stop)), trace_of_call(call)
    for name in ("scores", "probabilities", "mask", "undefined"):
        np.testing.assert_allclose(getattr(part, name), getattr(whole, name)[:, :, start:stop], rtol=0, atol=1e-5)
    assert part.query_tokens == tuple(item[start:stop] for item in whole.query_tokens) and part.key_tokens == whole.key_tokens
    assert part.num_positions == whole.num_positions
    if whole.tokens.positions is not None:
        assert np.array_equal(part.tokens.positions, whole.tokens.positions[start:stop])


@every
@given(calls(), st.sampled_from(["zero", "uniform"]))
def test_heads_that_are_off_and_lengths_are_as_in_the_whole(call, way):
    trace = changed(trace_of_call(call), Intervention({2: way}))
    lengths = np.random.default_rng(0).uniform(0.5, 2, size=(4, call.k.shape[2]))
    for found in long.pooled(trace, [1, 2], item=1, shape=(500, 500)):
        np.testing.assert_allclose(found.largest, trace.weights[1, found.head], rtol=0, atol=1e-6)
    for found in long.pooled(trace, [1, 2], item=1, shape=(500, 500), lengths=lengths):
        longer = trace.weights[1, found.head] * lengths[found.head]
        longer /= (trace.probabilities[1, found.head] * lengths[found.head]).sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(found.largest, longer, rtol=0, atol=1e-5)


@pytest.mark.parametrize("rules", [{}, {"causal": True}, {"causal": True, "window": 60}, {"window": 9}])
def test_sizes_that_take_many_blocks(rules, monkeypatch):
    monkeypatch.setattr("mha_viz.core.rows.SCRATCH", 5000)  # 12 rows
    L = 401
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=(1, 1, L, 16)).astype(np.float32) * 2 for _ in range(2))
    padded = np.arange(L)[None] >= 370
    call = Call(q, k, mask=Mask(L, L, padded=padded, **rules))
    (found,) = long.pooled(call)
    trace = trace_of_call(call)
    largest, mean, hidden = pool_by_hand(trace.probabilities[0, 0], trace.mask[0, 0], found.sight.pool)
    assert found.largest.shape == (201, 201)  # of 2 × 2 cells, the last of fewer
    np.testing.assert_allclose(found.largest, largest, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-6)
    assert np.array_equal(found.hidden, hidden)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_keys_that_are_not_finite_do_what_they_do_in_the_whole(bad):
    """−inf added to NaN is NaN: such a key makes rows NaN from which it is hidden."""
    rng = np.random.default_rng(1)
    q, k = (rng.normal(size=(1, 1, 8, 4)).astype(np.float32) for _ in range(2))
    k[0, 0, 5] = bad
    call = Call(q, k, mask=Mask(8, 8, causal=True))
    (found,) = long.pooled(call)
    np.testing.assert_allclose(found.largest, trace_of_call(call).probabilities[0, 0], rtol=0, atol=1e-6)


def test_no_tensor_grows_with_the_square_of_the_length(monkeypatch):
    """Of 4,096 × 4,096 numbers no more are ever in one tensor than the scratch holds, or than keys and queries are."""
    L, D = 4096, 8
    sizes = []
    for function in ("empty", "tensor", "mm", "softmax"):
        plain = getattr(torch, function)

        def noted(*args, plain=plain, **how):
            made = plain(*args, **how)
            sizes.append(made.untyped_storage().nbytes())
            return made

        monkeypatch.setattr(torch, function, noted)
    monkeypatch.setattr("mha_viz.core.rows.SCRATCH", 2**17)
    q, k = (np.random.default_rng(0).normal(size=(1, 1, L, D)).astype(np.float32) for _ in range(2))
    next(iter(long.pooled(Call(q, k, mask=Mask(L, L, causal=True)))))
    assert max(sizes) == 4 * 2**17


def test_a_window_computes_only_its_rows(monkeypatch):
    call = Call(*(np.random.default_rng(0).normal(size=(1, 1, 300, 4)).astype(np.float32) for _ in range(2)))
    seen = []
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda s, **how: seen.append(s.shape[0]) or softmax(s, **how))
    (found,) = long.pooled(call, rows=(100, 110), columns=(3, 9))
    assert found.largest.shape == (10, 6)
    assert sum(seen) == 10


def test_heads_come_one_at_a_time(monkeypatch):
    """What has not been asked for is not computed, and what has been stays."""
    call = Call(*(np.random.default_rng(0).normal(size=(1, 3, 50, 4)).astype(np.float32) for _ in range(2)))
    begun = []
    blocks = long.blocks
    monkeypatch.setattr(long, "blocks", lambda maps, head, *how: begun.append(head) or blocks(maps, head, *how))
    maps = long.pooled(call, [2, 0, 1], shape=(10, 25))
    first = next(maps)
    assert begun == [2] and first.head == 2
    assert first.largest.shape == first.mean.shape == first.hidden.shape == (10, 25)
    with pytest.raises(ValueError, match="read-only"):
        first.largest[0, 0] = 1
    assert next(maps).head == 0 and begun == [2, 0]


SMALL = Call(*(np.random.default_rng(0).normal(size=(2, 3, 7, 4)) for _ in range(2)))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: long.pooled(SMALL, [3]), r"heads = 3: must be a whole number from 0 to 2. Nearest right: heads = 2"),
        (lambda: long.pooled(SMALL, 1), r"heads = 1: must be a list of whole numbers. Nearest right: heads = \(1,\)"),
        (lambda: long.pooled(SMALL, "01"), r"heads = '01': must be a list"),
        (lambda: long.pooled(SMALL, item=2), r"item = 2: must be a whole number from 0 to 1"),
        (
            lambda: long.pooled(SMALL, shape=(256,)),
            r"shape = \(256,\): must be 2 whole numbers. Nearest right: shape = \(256, 256\)",
        ),
        (lambda: long.pooled(SMALL, shape=(0, 256)), r"shape = 0: must be a whole number from 1 to 512"),
        (lambda: long.pooled(SMALL, shape=(256, 1000)), r"shape = 1000: must be .* Nearest right: shape = 512"),
        (lambda: long.pooled(SMALL, rows=(3, 3)), r"rows = 3: must be a whole number from 4 to 7"),
        (lambda: long.pooled(SMALL, columns=(0, 8)), r"columns = 8: must be a whole number from 1 to 7"),
        (lambda: long.pooled(SMALL, rows=(-1, 7)), r"rows = -1: must be a whole number from 0 to 6"),
        (lambda: long.pooled(SMALL, rows=5), r"rows = 5: must be a list"),
        (
            lambda: long.pooled(changed(trace_of_call(SMALL), Intervention({1: "mean"}))),
            "puts head 1 off by the mean of all rows",
        ),
        (lambda: long.pooled(trace_of_maps(np.full((1, 1, 2, 2), 0.5))), "needs q and k"),
    ],
)
def test_what_makes_no_sense_is_said_at_once(ask, message):
    with pytest.raises(Wrong, match=message):
        ask()
