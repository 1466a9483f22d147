"""Decoding with a KV cache: the numbers of the full causal pass, whatever is padded, grouped or dropped, and what the cache takes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mha_viz import Batch, Layer, Settings, Wrong, attend, synthetic
from mha_viz.core.attend import draw_dropout
from mha_viz.core.decode import SIZES, Cache, cache_bytes, decode, kv_heads, share_kv, work
from tests.core.pytorch import call, module

WITHIN = {"float32": 1e-6, "float64": 1e-12}
CASES = {
    "the defaults": {},
    "left padding": {"padding": (3, 0, 5), "padding_side": "left"},
    "a window": {"window": 3},
    "extra keys": {"add_bias_kv": True, "add_zero_attn": True},
    "no bias": {"bias": False},
    "a mask that adds": {"seq_len": 4, "attn_mask": "0 0 0 0/1.5 0 0 0/-inf 0.5 0 0/0 0 -2 0"},
    "one head": {"num_heads": 1},
    "words": {"words": "the cat sat\na dog", "padding": (), "positions": True},
}
by_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def causal(**settings):
    """The layer and the causal batch of these Settings."""
    trace = synthetic(Settings(causal=True, **settings))
    return trace.layer, trace.batch


def same_weights(decoding, trace, atol):
    """Whether every new row is that of the full map, which holds 0 for every later token."""
    S = decoding.batch.S
    for step in decoding.steps:
        rows = trace.weights[:, :, step.start : step.stop]  # [N, H, n, S + extra]
        there = np.concatenate([rows[..., : step.stop], rows[..., S:]], axis=-1)
        np.testing.assert_allclose(step.weights, there, rtol=0, atol=atol)
        later = rows[..., step.stop : S]
        assert (later[~np.isnan(later)] == 0).all()
    return True


@by_case
@pytest.mark.parametrize("dtype", WITHIN)
@pytest.mark.parametrize("prompt", [1, 3])
def test_step_by_step_is_the_full_causal_pass(case, dtype, prompt):
    layer, batch = causal(**case)
    trace, decoding = attend(layer, batch, dtype=dtype), decode(layer, batch, prompt=prompt, dtype=dtype)
    largest = np.nanmax(np.abs(trace.output))
    np.testing.assert_allclose(decoding.output, trace.output, rtol=0, atol=WITHIN[dtype] * largest)  # NaN where there is NaN
    assert same_weights(decoding, trace, WITHIN[dtype])
    assert [step.stop for step in decoding.steps] == list(range(prompt, batch.L + 1))


@pytest.mark.parametrize("groups", [1, 2, 4, 8])
def test_grouped_heads_are_the_full_pass_of_the_layer_that_shares_them(groups):
    layer, batch = causal(add_bias_kv=True, padding=(2,))
    shared = share_kv(layer, groups)
    trace, decoding = attend(shared, batch, dtype="float64"), decode(shared, batch, num_kv_heads=groups, dtype="float64")
    np.testing.assert_allclose(decoding.output, trace.output, rtol=0, atol=1e-12)
    assert decoding.k.shape == decoding.v.shape == (3, groups, 20, 16)
    np.testing.assert_allclose(np.repeat(decoding.k, 8 // groups, axis=1), trace.k[:, :, :20], rtol=0, atol=1e-12)


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "separate"])
def test_a_shared_head_is_the_mean_of_its_group(packed):
    layer = Layer.random(12, 4, seed=3, add_bias_kv=True)
    if not packed:
        names = zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), layer.projections, strict=True)
        weights = {name: array for name, array in layer.weights.items() if name != "in_proj_weight"} | dict(names)
        layer = replace(layer, weights=weights)
    bias = np.arange(36, dtype=np.float32)
    layer = replace(layer, weights={**layer.weights, "in_proj_bias": bias})
    shared = share_kv(layer, 2)
    Wq, Wk, Wv = shared.projections
    np.testing.assert_array_equal(Wq, layer.projections[0])
    for made, given in ((Wk, layer.projections[1]), (Wv, layer.projections[2])):
        for h in range(4):
            pair = [given[3 * g : 3 * g + 3] for g in ((0, 1) if h < 2 else (2, 3))]
            np.testing.assert_allclose(made[3 * h : 3 * h + 3], (pair[0] + pair[1]) / 2, rtol=1e-6)
    np.testing.assert_array_equal(shared.weights["in_proj_bias"][:12], bias[:12])
    np.testing.assert_allclose(shared.weights["in_proj_bias"][12:18], [13.5, 14.5, 15.5] * 2)
    assert shared.weights["bias_k"].shape == (1, 1, 12)
    assert share_kv(layer, 4) is layer


def test_pytorch_gives_the_same_output_for_each_token():
    """One token as the query, all so far as keys and values, no mask: K1 of what is known of PyTorch."""
    layer, batch = causal(padding=())
    attention = module(layer).eval()
    decoding = decode(layer, batch)
    for t in (0, 1, 7, 19):
        so_far = Batch(batch.query[:, t : t + 1], batch.query[:, : t + 1])
        output, weights = call(attention, so_far)
        np.testing.assert_allclose(decoding.steps[t].output, output, rtol=0, atol=1e-6)
        np.testing.assert_allclose(decoding.steps[t].weights, weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_prompt_decodes_as_it_would_alone(side):
    """The pads' keys stay hidden in the cache, so that the item gives what it gives without them."""
    layer, batch = causal(padding=(4,), padding_side=side, seq_len=9)
    real = slice(4, None) if side == "left" else slice(0, 5)
    alone = decode(layer, Batch(batch.query[:1, real], causal=True), dtype="float64")
    padded = decode(layer, batch, prompt=5, dtype="float64")
    np.testing.assert_allclose(padded.output[0, real], alone.output[0], rtol=0, atol=1e-12)
    if side == "left":
        assert np.isnan(padded.output[0, :4]).all(), "a query before the first token has no key left"
        assert all((step.weights[0, :, :, :4] == 0).all() for step in padded.steps if step.start >= 4)


def test_a_pad_that_is_not_hidden_leaks():
    layer, batch = causal(padding=(4,), padding_side="left", seq_len=9)
    alone = decode(layer, Batch(batch.query[:1, 4:], causal=True))
    leaking = decode(layer, Batch(batch.query, causal=True))
    assert np.abs(leaking.output[0, 4:] - alone.output[0]).max() > 0.01


def test_dropout_is_drawn_anew_at_each_step_in_training_alone():
    layer, batch = causal(dropout=0.4)
    right = decode(layer, batch)
    one, again = (decode(layer, batch, training=True, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    np.testing.assert_array_equal(one.output, again.output)
    assert np.abs(one.output - right.output).max() > 0.05
    for step, plain in zip(one.steps, right.steps, strict=True):
        kept = step.weights != 0
        np.testing.assert_allclose(step.weights[kept], step.probabilities[kept] / 0.6, rtol=1e-6)
        np.testing.assert_allclose(step.probabilities, plain.probabilities, rtol=0, atol=1e-6)
    dropped = np.concatenate([(step.weights == 0).ravel() for step in one.steps[10:]])
    assert 0.35 < dropped.mean() < 0.5  # some keys are padded


def test_with_the_draws_of_the_full_pass_dropout_gives_its_output():
    layer, batch = causal(dropout=0.4, add_zero_attn=True)
    draws = draw_dropout((3, 8, 20, 21), 0.4, torch.Generator().manual_seed(5), "float32")
    full = attend(layer, batch, training=True, generator=torch.Generator().manual_seed(5))
    decoding = decode(layer, batch, draws=draws, prompt=4)
    np.testing.assert_allclose(decoding.output, full.output, rtol=0, atol=1e-6)
    other = decode(layer, batch, training=True, generator=torch.Generator().manual_seed(5), prompt=4)
    assert np.abs(other.output - full.output).max() > 0.05, "each call draws its own"


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("groups", [8, 2])
def test_the_formula_counts_the_bytes_that_the_cache_holds(dtype, groups):
    layer, batch = causal()
    decoding = decode(share_kv(layer, groups), batch, num_kv_heads=groups, dtype=dtype, prompt=6)
    for step in decoding.steps:
        assert step.held == cache_bytes(step.stop, groups, 16, dtype=dtype, batch_size=3)


def test_bytes_a_token_as_published_models_have_them():
    assert cache_bytes(1, 32, 128, dtype="float16") == 16384
    assert cache_bytes(1, 8, 128, dtype="float16") == 4096
    assert cache_bytes(4096, 32, 128, dtype="float16", layers=32) == 2 * 2**30  # a Llama 2 7B at its full length: 2 GiB


def test_a_cache_copies_nothing_as_it_grows_and_says_when_it_is_full():
    cache = Cache(2, 3, 4, 5)
    place = cache.k.data_ptr()
    for t in range(4):
        cache.append(torch.full((2, 3, 1, 5), float(t)), torch.full((2, 3, 1, 5), -float(t)))
        assert cache.nbytes == 2 * 2 * 3 * (t + 1) * 5 * 4
    k, v = cache.filled()
    assert k.data_ptr() == place and k[0, 0, :, 0].tolist() == [0, 1, 2, 3] and (v == -k).all()
    with pytest.raises(Wrong, match="no room for token 4") as wrong:
        cache.append(k[:, :, :1], v[:, :, :1])
    assert wrong.value.nearest == ({"capacity": 5},)


@pytest.mark.parametrize(("new", "keys", "groups"), [(1, 7, 4), (5, 5, 4), (1, 9, 2), (3, 3, 1)])
def test_work_is_what_pytorch_counts(new, keys, groups):
    """PyTorch's own counter counts a multiply and an add each for what the decoder really runs."""
    layer = share_kv(Layer.random(12, 4, seed=1), groups)
    batch = Batch(np.random.default_rng(0).standard_normal((2, keys, 12), np.float32), causal=True)
    first = keys - new
    counter = FlopCounterMode(display=False)
    if first:
        before = FlopCounterMode(display=False)
        with before:
            decode(layer, Batch(batch.query[:, :first], causal=True), prompt=first, num_kv_heads=groups)
        with counter:
            decode(layer, batch, prompt=first, num_kv_heads=groups)
        counted = counter.get_total_flops() - before.get_total_flops()
    else:
        with counter:
            decode(layer, batch, prompt=keys, num_kv_heads=groups)
        counted = counter.get_total_flops()
    assert counted == 2 * work(new, keys, embed_dim=12, num_heads=4, head_dim=3, num_kv_heads=groups, batch_size=2)


def test_what_cannot_be_decoded_says_why():
    layer, batch = causal()
    for changes, argument, rule in (
        ({"batch": replace(batch, causal=False)}, "causal", "no cache could give it"),
        ({"batch": Batch(batch.query, batch.query, causal=True)}, "key", "are its own tokens"),
        ({"prompt": 0}, "prompt", "from 1 to 20"),
        ({"prompt": 21}, "prompt", "from 1 to 20"),
        ({"num_kv_heads": 3}, "num_kv_heads", "must divide num_heads, 8"),
        ({"num_kv_heads": 2}, "num_kv_heads", "share_kv(layer, 2)"),
        ({"dtype": "int8"}, "dtype", "must be one of"),
        ({"layer": Layer.random(128, 8, kdim=64)}, "kdim", "must be embed_dim, 128"),
        ({"layer": Layer.random(128, 8, vdim=64)}, "vdim", "must be embed_dim, 128"),
    ):
        given = {"layer": layer, "batch": batch} | changes
        with pytest.raises(Wrong) as wrong:
            decode(**given)
        assert wrong.value.argument == argument and rule in wrong.value.rule, changes


def test_the_nearest_numbers_of_key_heads_are_named():
    assert kv_heads(12) == 12
    with pytest.raises(Wrong) as wrong:
        kv_heads(12, 5)
    assert wrong.value.nearest == ({"num_kv_heads": 4}, {"num_kv_heads": 6})
    with pytest.raises(Wrong):
        kv_heads(12, 0)
