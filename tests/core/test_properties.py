"""What holds for attention of every size, with every option and mask. The sizes of one example all differ, so that no two axes
can be taken for each other."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.trace import Trace
from tests.core.pytorch import call, module

every = settings(derandomize=True, deadline=None, max_examples=40)
pytestmark = pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask")


@dataclass
class Problem:
    """A layer and its input, before they become a Batch."""

    layer: Layer
    query: np.ndarray
    key: np.ndarray | None = None
    value: np.ndarray | None = None
    key_padding_mask: np.ndarray | None = None
    attn_mask: np.ndarray | None = None
    causal: bool = False
    window: int | None = None

    def trace(self, **how):
        given = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
        return attend(self.layer, Batch(**given), **{"dtype": "float64"} | how)


@st.composite
def problems(draw, rules=("", "causal", "window", "causal window"), options=True, dense=True):
    """A Problem: ``rules`` to choose from, with the layer's extra columns and widths, with a dense mask."""
    N, H, L, S = draw(st.permutations(range(1, 7)))[:4]
    E = H * draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    cross = draw(st.booleans())
    S = S if cross else L
    maybe = st.booleans() if options else st.just(False)
    kdim, vdim = (draw(st.sampled_from([E, E, E + 1, 7])) if cross and options else E for _ in range(2))
    layer = Layer.random(
        E,
        H,
        seed=draw(st.integers(0, 99)),
        bias=draw(st.booleans()),
        add_bias_kv=draw(maybe),
        add_zero_attn=draw(maybe),
        kdim=kdim,
        vdim=vdim,
    )
    rule = draw(st.sampled_from(rules))
    window = draw(st.integers(1, 4)) if "window" in rule else None
    problem = Problem(layer, rng.standard_normal((N, L, E)), causal="causal" in rule, window=window)
    if cross:
        problem.key, problem.value = rng.standard_normal((N, S, kdim)), rng.standard_normal((N, S, vdim))
    if draw(st.booleans()):
        problem.key_padding_mask = rng.random((N, S)) < 0.3
    if dense and draw(st.booleans()):
        shape = (L, S) if draw(st.booleans()) else (N * H, L, S)
        hidden = rng.random(shape) < 0.2
        problem.attn_mask = hidden if draw(st.booleans()) else np.where(hidden, -np.inf, rng.standard_normal(shape))
    return problem


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    return True


@every
@given(problems())
def test_rows_sum_to_one_or_are_undefined(problem):
    trace = problem.trace()
    sums = trace.probabilities.sum(axis=-1)
    assert close(sums[~trace.undefined], 1)
    assert np.isnan(trace.probabilities[trace.undefined]).all()
    assert (trace.probabilities[~trace.undefined] >= 0).all()
    assert np.array_equal(trace.undefined, trace.mask.all(axis=-1))
    assert np.array_equal(np.isnan(trace.output).any(axis=-1), trace.undefined.any(axis=1))


@every
@given(problems())
def test_hidden_keys_weigh_exactly_nothing(problem):
    trace = problem.trace()
    defined = ~trace.undefined[..., None]
    assert not trace.weights[trace.mask & defined].any()
    if problem.key_padding_mask is not None:
        padded = np.broadcast_to(
            problem.key_padding_mask[:, None, None], trace.weights[..., : problem.key_padding_mask.shape[1]].shape
        )
        assert not trace.weights[..., : padded.shape[-1]][padded & defined].any()


@every
@given(problems())
def test_numpy_and_torch_agree_on_every_field(problem):
    ours, reference = problem.trace(), problem.trace(engine="numpy")
    for name in Trace.fields():
        left, right = getattr(ours, name), getattr(reference, name)
        assert (left is None and right is None) or close(left, right), name


@every
@given(problems(rules=[""]), st.booleans())
def test_pytorch_agrees_in_both_layouts(problem, batch_first):
    import torch

    trace = problem.trace()
    output, weights = call(
        module(problem.layer, dtype=torch.float64, batch_first=batch_first), trace.batch, dtype=torch.float64
    )
    assert close(trace.weights, weights)
    assert close(trace.output, output)


@every
@given(problems(), st.randoms(use_true_random=False))
def test_heads_have_no_order(problem, random):
    """Permuting the heads of the weights permutes the maps, and leaves the output."""
    layer = problem.layer
    H, D = layer.num_heads, layer.head_dim
    order = random.sample(range(H), H)

    def permuted(array, axis):
        split = np.moveaxis(array, axis, 0).reshape(-1, H, D, *np.delete(array.shape, axis))  # [1|3, H, D, …]
        return np.moveaxis(split[:, order].reshape(np.moveaxis(array, axis, 0).shape), 0, axis)

    axes = {"out_proj.weight": 1, "bias_k": 2, "bias_v": 2}  # all others hold a head's numbers in their rows
    weights = {
        name: array if name == "out_proj.bias" else permuted(array, axes.get(name, 0)) for name, array in layer.weights.items()
    }
    other = replace(problem, layer=Layer.from_state_dict(weights, H, add_zero_attn=layer.add_zero_attn))
    if problem.attn_mask is not None and problem.attn_mask.ndim == 3:
        masks = problem.attn_mask.reshape(-1, H, *problem.attn_mask.shape[1:])  # [N, H, L, S]
        other.attn_mask = masks[:, order].reshape(problem.attn_mask.shape)
    assert close(other.trace().weights, problem.trace().weights[:, order])
    assert close(other.trace().output, problem.trace().output)


@every
@given(problems(), st.randoms(use_true_random=False))
def test_batch_items_do_not_see_each_other(problem, random):
    """Permuting the items permutes everything, and an item alone gets what it gets among others."""
    N, H = len(problem.query), problem.layer.num_heads
    order = random.sample(range(N), N)

    def chosen(items):
        other = replace(problem)
        for name in ("query", "key", "value", "key_padding_mask"):
            array = getattr(problem, name)
            setattr(other, name, None if array is None else array[items])
        if problem.attn_mask is not None and problem.attn_mask.ndim == 3:
            masks = problem.attn_mask.reshape(N, H, *problem.attn_mask.shape[1:])
            other.attn_mask = masks[items].reshape(-1, *problem.attn_mask.shape[1:])
        return other.trace()

    trace = problem.trace()
    for items in (order, order[:1]):
        assert close(chosen(items).weights, trace.weights[items])
        assert close(chosen(items).output, trace.output[items])


@every
@given(problems(), st.integers(1, 3), st.booleans())
def test_padding_never_moves_a_real_row(problem, count, left):
    """More keys that are padding, on either side and holding anything, change no real query's weights or output."""
    rules = problem.causal or problem.window is not None
    assume(problem.key is None or not rules)  # padding of the keys alone moves them against the queries, which rules look at
    trace = problem.trace()
    rng = np.random.default_rng(count)
    N, L, S = len(problem.query), trace.batch.L, trace.batch.S
    own = problem.key is None
    place = slice(count, None) if left else slice(0, -count)  # where the real tokens are

    def longer(array, axis, fill):
        return (
            None
            if array is None
            else np.pad(array, [(0, 0)] * axis + [(count, 0) if left else (0, count)], constant_values=fill)
        )

    def with_noise(array):
        if array is None:
            return None
        noise = 99 * rng.standard_normal((N, count, array.shape[2]))
        return np.concatenate([noise, array] if left else [array, noise], axis=1)  # [N, S + count, E]

    padding = np.zeros((N, S), bool) if problem.key_padding_mask is None else problem.key_padding_mask
    mask = problem.attn_mask
    if mask is not None:
        mask = longer(mask, mask.ndim - 1, 0)
        if own:
            mask = np.moveaxis(longer(np.moveaxis(mask, -2, -1), mask.ndim - 1, 0), -1, -2)
    padded = replace(
        problem,
        query=with_noise(problem.query) if own else problem.query,
        key=with_noise(problem.key),
        value=with_noise(problem.value),
        key_padding_mask=longer(padding, 1, True),
        attn_mask=mask,
    ).trace()
    rows = place if own else slice(None)
    real = np.r_[np.arange(S + count)[place], S + count : padded.weights.shape[-1]]  # the real keys and the extra columns
    assert padded.output[:, rows].shape == (N, L, problem.layer.embed_dim)
    assert close(padded.weights[:, :, rows][..., real], trace.weights)
    assert close(padded.output[:, rows], trace.output)


@every
@given(problems(rules=["causal", "causal window"], dense=False), st.data())
def test_a_causal_row_never_sees_the_future(problem, data):
    """Changing a key changes no query before it; with L ≠ S the last query stands at the last key."""
    trace = problem.trace()
    L, S = trace.batch.L, trace.batch.S
    changed = data.draw(st.integers(0, S - 1))
    other = replace(problem, **{name: _moved(getattr(problem, name), changed) for name in ("key", "value")})
    if problem.key is None:
        other.query = _moved(problem.query, changed)
    before = np.arange(L) + S - L < changed  # the queries that stand before that key
    assert close(other.trace().output[:, before], trace.output[:, before])
    positions = np.arange(S) - (np.arange(L)[:, None] + S - L)  # [L, S] how far ahead of its query a key is
    assert trace.mask[..., :S][..., positions > 0].all()
    if problem.window is None and problem.key_padding_mask is None:
        assert not trace.mask[..., :S][..., positions <= 0].any()


def _moved(array, index):
    if array is None:
        return None
    array = array.copy()
    array[:, index] += 3
    return array


@every
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 10), st.booleans())
def test_a_window_of_w_sees_w_keys(L, S, window, causal):
    """Itself included: w keys backwards, and as many forwards where nothing is causal, as far as there are keys."""
    hidden = Batch(np.ones((1, L, 1)), np.ones((1, S, 1)), causal=causal, window=window).mask(1).hidden()[0, 0]
    for query, row in enumerate(hidden):
        position = query + S - L
        right = [key for key in range(S) if position - window < key <= position + (0 if causal else window - 1)]
        assert np.flatnonzero(~row).tolist() == right
        if not causal and window <= position < S - window:
            assert (~row).sum() == 2 * window - 1
        if causal and window <= position + 1 <= S:
            assert (~row).sum() == window


@every
@given(problems(), st.floats(-50, 50))
def test_a_constant_added_to_a_row_changes_nothing(problem, shift):
    """Softmax sees differences only. The extra columns get no shift, so layers that have them are left out."""
    assume(not problem.layer.extra_keys)
    trace = problem.trace()
    L, S = trace.batch.L, trace.batch.S
    rows = np.linspace(-1, 1, L)[:, None] * np.full(S, shift)  # [L, S], another constant in each row
    mask = problem.attn_mask
    added = rows if mask is None else rows + (np.where(mask, -np.inf, 0) if mask.dtype == bool else mask)
    np.testing.assert_allclose(replace(problem, attn_mask=added).trace().weights, trace.weights, rtol=0, atol=1e-11)


@every
@given(problems())
def test_the_average_is_the_mean_of_the_heads_and_the_output_their_sum(problem):
    """The output is not made from the average: it is the sum of what each head writes through its own columns of Wᴼ."""
    trace, layer = problem.trace(), problem.layer
    assert close(trace.mean_weights, trace.weights.mean(axis=1))
    assert close(trace.head_outputs, trace.weights @ trace.v)
    columns = layer.weights["out_proj.weight"].reshape(-1, layer.num_heads, layer.head_dim)  # [E, H, D]
    written = np.einsum("nhld,ehd->nle", trace.head_outputs, columns.astype(float)) + layer.weights.get("out_proj.bias", 0)
    assert close(trace.output, written)


@every
@given(problems(options=False, dense=False))
def test_zero_attn_is_softmax_with_one_more_in_the_denominator(problem):
    """add_zero_attn's column scores 0: the weights of the real keys become exp(s) / (1 + Σ exp(s)), and no row is undefined."""
    trace = replace(problem, layer=replace(problem.layer, add_zero_attn=True)).trace()
    S = trace.batch.S
    seen = np.where(trace.mask[..., :S], 0, np.exp(trace.scores[..., :S]))
    assert close(trace.weights[..., :S], seen / (1 + seen.sum(axis=-1, keepdims=True)))
    assert not trace.undefined.any()
