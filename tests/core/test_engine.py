"""The torch engine against ``nn.MultiheadAttention``, to the last bit where PyTorch's own operators make that possible."""

import gc
import itertools
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from mha_viz.core import engine
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.trace import Missing, Trace
from tests.core.pytorch import call, module, same_bits

E, H = 12, 3
OPTIONS = {
    "default": {},
    "no bias": {"bias": False},
    "bias_kv": {"add_bias_kv": True},
    "zero_attn": {"add_zero_attn": True},
    "all": {"bias": False, "add_bias_kv": True, "add_zero_attn": True},
    "widths": {"kdim": 5, "vdim": 7},
    "vdim": {"vdim": 7, "add_bias_kv": True},
    "widths, no bias": {"kdim": 5, "vdim": 7, "bias": False, "add_zero_attn": True},
}
by_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# The tutorial's program


@pytest.fixture(scope="module")
def tutorial():
    """What the tutorial's program makes, up to its call of the attention."""
    torch.manual_seed(7)
    attention = nn.MultiheadAttention(embed_dim=128, num_heads=8, dropout=0.1, batch_first=True)
    tokens = torch.randn(3, 20, 128)
    padding_mask = torch.zeros(3, 20, dtype=torch.bool)
    padding_mask[0, -3:] = True
    return attention, tokens, padding_mask, torch.get_rng_state()


def replayed(tutorial, **how):
    """The same program on a generator of our own: layer, then tokens, then dropout."""
    generator = torch.Generator().manual_seed(7)
    layer = Layer.random(128, 8, dropout=0.1, generator=generator)
    tokens = torch.randn(3, 20, 128, generator=generator)
    return attend(layer, Batch(tokens, key_padding_mask=tutorial[2]), generator=generator, **how)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_tutorial_to_the_last_bit(tutorial, training):
    attention, tokens, padding_mask, after_tokens = tutorial
    attention.train(training)
    trace = replayed(tutorial, training=training)
    for average, ours in ((True, trace.mean_weights), (False, trace.weights)):
        torch.set_rng_state(after_tokens)
        output, weights = attention(
            tokens, tokens, tokens, key_padding_mask=padding_mask, need_weights=True, average_attn_weights=average
        )
        assert same_bits(trace.output, output.detach().numpy())
        assert same_bits(ours, weights.detach().numpy())
    assert trace.training is training
    assert (trace.dropped is not None) is training


def test_dropout_draws_once(tutorial):
    """Every field of a train-mode Trace tells of one draw: what was dropped is 0, the rest is scaled, and both reach the output."""
    trace = replayed(tutorial, training=True)
    assert (trace.weights[trace.dropped] == 0).all()
    kept = ~trace.dropped
    np.testing.assert_allclose(trace.weights[kept], trace.probabilities[kept] / 0.9, rtol=1e-6)
    np.testing.assert_allclose(trace.head_outputs, trace.weights @ trace.v, atol=1e-6)
    assert 0.05 < trace.dropped.mean() < 0.15


@pytest.mark.parametrize("how", [{"engine": "torch"}, {"engine": "numpy"}], ids=["torch", "numpy"])
def test_dropout_extremes(how):
    """p = 0 in train mode drops nothing, p = 1 everything: the output is then the output bias."""
    batch = Batch(draw(2, 5, E))
    never = attend(Layer.random(E, H, dropout=0), batch, training=True, **how)
    assert never.training and never.dropped is None
    assert same_bits(never.weights, attend(Layer.random(E, H), batch, **how).weights)
    always = attend(Layer.random(E, H, dropout=1.0), batch, training=True, **how)
    assert always.dropped.all() and not always.weights.any()
    assert np.array_equal(always.output, np.zeros((2, 5, E)))  # the drawn layer's bias is 0


def test_engines_share_a_dropout_draw():
    layer, batch = Layer.random(E, H, dropout=0.5), Batch(draw(2, 5, E), causal=True)
    ours, reference = (
        attend(layer, batch, engine=name, training=True, generator=torch.Generator().manual_seed(1))
        for name in ("torch", "numpy")
    )
    assert np.array_equal(ours.dropped, reference.dropped)
    np.testing.assert_allclose(ours.output, reference.output, atol=1e-6)


# The layer


@pytest.mark.parametrize("kdim, vdim", [(None, None), (12, 12), (5, None), (None, 7), (5, 7)])
@pytest.mark.parametrize("bias, add_bias_kv", [*itertools.product([True, False], repeat=2)])
def test_random_layer_is_pytorchs(kdim, vdim, bias, add_bias_kv):
    """The same weights, and the generator left where PyTorch leaves the global one."""
    options = {"bias": bias, "add_bias_kv": add_bias_kv, "kdim": kdim, "vdim": vdim}
    torch.manual_seed(11)
    theirs, after = nn.MultiheadAttention(E, H, **options), torch.rand(3)
    generator = torch.Generator().manual_seed(11)
    layer = Layer.random(E, H, generator=generator, **options)
    assert layer.weights.keys() == theirs.state_dict().keys()
    assert all(np.array_equal(layer.weights[name], tensor.numpy()) for name, tensor in theirs.state_dict().items())
    assert torch.equal(torch.rand(3, generator=generator), after)
    assert (layer.kdim, layer.vdim, layer.head_dim) == (theirs.kdim, theirs.vdim, theirs.head_dim)
    by_seed = Layer.random(E, H, seed=11, **options)
    assert all(np.array_equal(by_seed.weights[name], array) for name, array in layer.weights.items())


@by_option
def test_state_dict_round_trip(options):
    """A module's state dict, its parameters included, makes the layer that the module is; training on changes only the module."""
    attention = module(Layer.random(E, H, **options))
    layer = Layer.from_state_dict(dict(attention.named_parameters()), H, add_zero_attn=attention.add_zero_attn)
    before = {name: array.copy() for name, array in layer.weights.items()}
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter += 1
    assert all(np.array_equal(layer.weights[name], array) for name, array in before.items())


def test_from_a_whole_model():
    """float16 and bfloat16 weights are taken exactly."""
    half = nn.MultiheadAttention(E, H).half()
    assert Layer.from_state_dict(half.state_dict(), H).weights["in_proj_weight"].dtype == np.float16
    brain = nn.MultiheadAttention(E, H).bfloat16()
    weights = Layer.from_state_dict(brain.state_dict(), H).weights
    assert np.array_equal(weights["in_proj_weight"], brain.in_proj_weight.detach().float().numpy())


# Options × masks × kinds of input

N, L, S = 2, 5, 4


def masks(S, kind):
    rng = np.random.default_rng(3)
    padding = np.zeros((N, S), bool)
    padding[1, -2:] = True
    triangle = np.triu(np.ones((L, S), bool), 1)
    per_head = rng.random((N * H, L, S)) < 0.3
    per_head[0, 1] = True  # a query without keys
    gentle = rng.standard_normal((L, S)).astype(np.float32)
    with_holes = np.where(triangle, -np.inf, gentle).astype(np.float32)
    return {
        "none": {},
        "padding": {"key_padding_mask": padding},
        "triangle": {"attn_mask": triangle},
        "both": {"key_padding_mask": padding, "attn_mask": triangle},
        "per head": {"attn_mask": per_head},
        "additive": {"attn_mask": gentle},
        "additive with −inf": {"attn_mask": with_holes},
        "additive padding": {"key_padding_mask": np.where(padding, -np.inf, 0.5).astype(np.float32), "attn_mask": with_holes},
        "mixed": {"key_padding_mask": padding, "attn_mask": with_holes},
        "mixed, other way": {
            "key_padding_mask": np.where(padding, -np.inf, gentle[:N]).astype(np.float32),
            "attn_mask": per_head,
        },
    }[kind]


KINDS = (
    "none",
    "padding",
    "triangle",
    "both",
    "per head",
    "additive",
    "additive with −inf",
    "additive padding",
    "mixed",
    "mixed, other way",
)


@pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", ["self", "cross", "key and value"])
@by_option
def test_pytorch_agrees(options, keys, kind):
    """Bit for bit, whether masks hide or add."""
    layer = Layer.random(E, H, **options)
    same_width = layer.kdim == layer.vdim == E
    if not same_width:
        keys = "key and value"
    given = {"self": {}, "cross": {"key": draw(N, S, E, seed=1)}}.get(
        keys, {"key": draw(N, S, layer.kdim, seed=1), "value": draw(N, S, layer.vdim, seed=2)}
    )
    batch = Batch(draw(N, L, E), **given, **masks(S if given else L, kind))
    for batch_first in (True, False):
        output, weights = call(module(layer, batch_first=batch_first), batch)
        trace = attend(layer, batch)
        assert same_bits(trace.weights, weights)
        assert same_bits(trace.output, output)
    assert np.array_equal(trace.undefined, np.isnan(weights).all(axis=-1))
    assert trace.mask_bias is None or np.isfinite(trace.mask_bias).all()  # what hides is in the mask alone
    reference = attend(layer, batch, engine="numpy", dtype="float64")
    np.testing.assert_allclose(reference.output, output, rtol=0, atol=1e-6)
    for name in Trace.fields():
        ours, right = getattr(trace, name), getattr(reference, name)
        assert (ours is None) == (right is None), name
        if ours is not None:
            np.testing.assert_allclose(ours, right, rtol=0, atol=2e-6, err_msg=name)


def test_large_maps_to_the_last_bit():
    """Above ``LARGE`` weights the softmax works in place."""
    layer, batch = Layer.random(24, 6), Batch(draw(2, 300, 24), key_padding_mask=np.arange(600).reshape(2, 300) % 7 == 0)
    trace = attend(layer, batch)
    output, weights = call(module(layer), batch)
    assert weights.size > engine.LARGE
    assert same_bits(trace.weights, weights) and same_bits(trace.output, output)
    scores = trace.q @ trace.k.swapaxes(-1, -2) / np.sqrt(4)  # not what the softmax has left in their place
    np.testing.assert_allclose(trace.scores, scores, atol=1e-6)


@by_option
def test_unbatched(options):
    """2-D input, 1-D padding and an [H, L, S] mask are PyTorch's unbatched call, held as N = 1."""
    layer = Layer.random(E, H, **options)
    query, key, value = draw(L, E), draw(S, layer.kdim, seed=1), draw(S, layer.vdim, seed=2)
    padding, mask = np.array([False, True, False, False]), np.random.default_rng(1).random((H, L, S)) < 0.3
    batch = Batch(query, key, value, key_padding_mask=padding, attn_mask=mask)
    assert (batch.N, batch.L, batch.S) == (1, L, S)
    output, weights = module(layer)(
        *map(torch.tensor, (query, key, value)),
        key_padding_mask=torch.tensor(padding),
        attn_mask=torch.tensor(mask),
        average_attn_weights=False,
    )
    trace = attend(layer, batch)
    np.testing.assert_allclose(trace.weights[0], weights.detach(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(trace.output[0], output.detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("layout", ["fortran", "strided", "reversed", "big-endian", "float16", "tensor, transposed"])
def test_memory_layout_of_the_input_does_not_matter(layout):
    layer, x = Layer.random(E, H), draw(N, L, E).astype(np.float16).astype(np.float32)
    other = {
        "fortran": lambda: np.asfortranarray(x),
        "strided": lambda: np.repeat(x, 2, axis=2)[:, :, ::2],
        "reversed": lambda: x[::-1].copy()[::-1],
        "big-endian": lambda: x.astype(">f4"),
        "float16": lambda: x.astype(np.float16),
        "tensor, transposed": lambda: torch.tensor(x.transpose(1, 0, 2).copy()).transpose(0, 1).requires_grad_(),
    }[layout]()
    assert same_bits(attend(layer, Batch(other)).output, attend(layer, Batch(x)).output)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    """PyTorch's numbers in that type; bfloat16, which NumPy does not know, leaves as float32."""
    layer, batch = Layer.random(E, H), Batch(draw(N, L, E), **masks(L, "both"))
    kind = getattr(torch, dtype)
    attention = module(layer, dtype=kind)
    x = torch.tensor(batch.query).to(kind)
    output, weights = attention(
        x,
        x,
        x,
        key_padding_mask=torch.tensor(batch.key_padding_mask),
        attn_mask=torch.tensor(batch.attn_mask),
        average_attn_weights=False,
    )
    trace = attend(layer, batch, dtype=dtype)
    assert same_bits(trace.weights.astype(np.float32), weights.detach().float().numpy())
    assert same_bits(trace.output.astype(np.float32), output.detach().float().numpy())
    assert trace.output.dtype == ("float16" if dtype == "float16" else "float32")
    np.testing.assert_allclose(trace.output, attend(layer, batch).output, atol=0.02)


def same_as_pytorch(layer, batch, dtype, padding, attn_mask):
    """True where weights, their average and the output have PyTorch's bits in this type."""
    kind = getattr(torch, dtype)
    attention, trace = module(layer, dtype=kind), attend(layer, batch, dtype=dtype)
    x = torch.tensor(batch.query).to(kind)
    padding, attn_mask = (None if mask is None else torch.tensor(mask).to(kind) for mask in (padding, attn_mask))
    how = {"key_padding_mask": padding, "attn_mask": attn_mask}
    (output, weights), (_, mean) = (attention(x, x, x, **how, average_attn_weights=average) for average in (False, True))
    pairs = ((trace.weights, weights), (trace.mean_weights, mean), (trace.output, output))
    return all(same_bits(ours.astype(np.float64), theirs.detach().double().numpy()) for ours, theirs in pairs)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["[L, S]", "[N·H, L, S]", "padding", "both", "with −∞", "causal as well"])
def test_masks_that_add_give_pytorchs_last_bit(dtype, kind):
    """PyTorch adds the mask to the product before it rounds it: the sum of two rounded numbers has other digits."""
    layer, x, causal = Layer.random(128, 8), draw(3, 20, 128), np.triu(np.ones((20, 20), bool), 1)
    padding = draw(3, 20, seed=4) if kind in ("padding", "both") else None
    attn_mask = None if kind == "padding" else draw(24, 20, 20, seed=5) if kind == "[N·H, L, S]" else draw(20, 20, seed=5)
    hidden = None if attn_mask is None else np.where(causal, np.float32(-np.inf), attn_mask)
    given = hidden if kind == "with −∞" else attn_mask
    batch = Batch(x, key_padding_mask=padding, attn_mask=given, causal=kind == "causal as well")
    assert same_as_pytorch(layer, batch, dtype, padding, hidden if kind == "causal as well" else given)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_hidden_score_beyond_half_precision_stays_hidden(dtype):
    """The product is not rounded before the mask's −∞ is added: ∞ − ∞ would make the whole row NaN."""
    layer, x, hidden = Layer.random(16, 2), 400 * draw(2, 6, 16), np.triu(np.ones((6, 6), bool), 1)
    trace = attend(layer, Batch(x, causal=True), dtype=dtype)
    assert np.isinf(trace.scores).any() == (dtype == "float16")
    assert same_as_pytorch(layer, trace.batch, dtype, None, np.where(hidden, -np.inf, 0.0))


@pytest.mark.parametrize("dtype, fill", [("float16", -1e9), ("float32", -1e39), ("bfloat16", float(np.finfo(np.float32).min))])
def test_a_fill_that_the_type_cannot_hold_hides(dtype, fill):
    """Rounded to −∞ it hides its key, as in PyTorch; where it fills a row, that row is undefined and says so."""
    layer, mask = Layer.random(E, H), np.zeros((L, L))
    mask[1], mask[2, 0] = fill, fill
    trace = attend(layer, Batch(draw(N, L, E), attn_mask=mask), dtype=dtype)
    assert trace.undefined[:, :, 1].all() and trace.undefined.sum() == N * H
    assert np.isnan(trace.weights[:, :, 1]).all() and not np.isnan(trace.weights[:, :, 2]).any()
    assert trace.mask[:, :, 2, 0].all()


def test_two_fills_that_add_up_to_infinity_hide():
    lowest = np.finfo(np.float32).min
    batch = Batch(draw(1, 2, E), attn_mask=np.full((2, 2), lowest), key_padding_mask=np.array([[0, lowest]]))
    assert attend(Layer.random(E, H), batch).mask[0, 0].tolist() == [[False, True], [False, True]]


# Numbers that are none


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("hidden", [False, True], ids=["seen", "padded"])
def test_nan_and_infinity_flow_as_in_pytorch(bad, hidden):
    """Not refused, since a person may look for where they come from: they show up where PyTorch would have them, padded or not."""
    layer, x = Layer.random(E, H), draw(N, L, E)
    x[1, -1, 0] = bad
    padding = np.zeros((N, L), bool)
    padding[1, -1] = hidden
    batch = Batch(x, key_padding_mask=padding)
    output, weights = call(module(layer), batch)
    for how in ("torch", "numpy"):
        trace = attend(layer, batch, engine=how)
        np.testing.assert_allclose(trace.weights, weights, atol=1e-6)
        np.testing.assert_allclose(trace.output, output, atol=1e-6)
        assert not trace.undefined.any()


# The Trace as a value


def a_trace(**how):
    return attend(Layer.random(E, H, dropout=0.1), Batch(draw(N, L, E), causal=True), **how)


def test_nothing_is_computed_before_it_is_read():
    trace = a_trace()
    steps = trace._fields["q"].__self__  # the engine's own, which keeps what it has made

    def made():
        return vars(steps).keys() & set(Trace.fields()) - {"keep_scale"}  # which is given

    assert made() == {"q", "k", "v"}
    assert trace.undefined.shape == (N, H, L)
    assert made() == {"q", "k", "v", "undefined"}
    assert trace.output.shape == (N, L, E)
    assert "mean_weights" not in made() and "output" in made()


@pytest.mark.parametrize("name", Trace.fields())
@pytest.mark.parametrize("how", ["torch", "numpy"])
def test_fields_are_one_object_that_refuses_writes(how, name):
    trace = a_trace(engine=how, training=True, generator=torch.Generator())
    value = getattr(trace, name)
    assert getattr(trace, name) is value
    if name == "mask_bias":
        assert value is None
        return
    with pytest.raises(ValueError, match="read-only"):
        value[...] = 0


def test_fields_cannot_be_replaced():
    trace = a_trace()
    with pytest.raises(AttributeError):
        trace.weights = 0


def test_what_the_caller_changes_later_does_not_matter():
    x, padding, mask = draw(N, L, E), np.zeros((N, L), bool), np.zeros((L, L), np.float32)
    weights = {name: array.copy() for name, array in Layer.random(E, H).weights.items()}
    tensor = torch.tensor(x)
    layer = Layer.from_state_dict(weights, H)
    traces = [attend(layer, Batch(given, key_padding_mask=padding, attn_mask=mask)) for given in (x, tensor)]
    right = attend(Layer.random(E, H), Batch(x.copy())).output
    for array in (x, mask, tensor, *weights.values()):
        array[...] = 5
    padding[:] = True
    assert all(same_bits(trace.output, right) for trace in traces)
    assert same_bits(attend(layer, traces[0].batch).output, right)


def test_a_batch_survives_pickling():
    batch = pickle.loads(pickle.dumps(Batch(draw(N, L, E), key_padding_mask=np.eye(N, L) > 0, causal=True)))
    assert same_bits(attend(Layer.random(E, H), batch).output, attend(Layer.random(E, H), replace(batch)).output)


def test_what_a_source_does_not_know_is_missing():
    trace = Trace({"weights": np.ones((1, 1, 2, 2))}, name="encoder.0")
    assert trace.has("weights") and not trace.has("weights", "q")
    with pytest.raises(Missing, match=r"encoder\.0 has no q"):
        _ = trace.q
    assert not hasattr(trace, "q")
    with pytest.raises(Missing, match=r"encoder\.0 has no tokens"):
        _ = trace.query_tokens


def test_shapes():
    layer = Layer.random(E, H, add_bias_kv=True, add_zero_attn=True, kdim=5, vdim=7)
    batch = Batch(draw(N, L, E), draw(N, S, 5), draw(N, S, 7), key_tokens=(("a", "b", "c", "d"),) * N)
    D, extra = E // H, 2
    right = {
        "q": (N, H, L, D),
        "k": (N, H, S + extra, D),
        "v": (N, H, S + extra, D),
        "mean_weights": (N, L, S + extra),
        "undefined": (N, H, L),
        "head_outputs": (N, H, L, D),
        "concat": (N, L, E),
        "output": (N, L, E),
    }
    for how in ("torch", "numpy"):
        trace = attend(layer, batch, engine=how, training=False)
        for name in set(Trace.fields()) - {"keep_scale", "dropped", "mask_bias"}:
            assert getattr(trace, name).shape == right.get(name, (N, H, L, S + extra)), name
    assert trace.key_tokens[0] == ("a", "b", "c", "d", "bias_k", "zero")
    assert trace.query_tokens[1] == ("0", "1", "2", "3", "4")


# Many at once


def test_threads_get_the_same_numbers(tutorial):
    """Sessions share a process: their draws, their traces and one trace that all of them read do not disturb each other."""
    right = replayed(tutorial, training=True)
    shared = replayed(tutorial, training=True)

    def session(_):
        own = replayed(tutorial, training=True)
        torch.rand(10)  # another session draws from the global generator meanwhile
        return (
            same_bits(own.output, right.output)
            and same_bits(shared.output, right.output)
            and same_bits(own.weights, right.weights)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(session, range(64)))


def test_the_global_generator_is_left_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    attend(Layer.random(E, H, dropout=0.5), Batch(draw(N, L, E)), training=True, generator=torch.Generator())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_autograd_modes_of_the_caller_do_not_matter(mode):
    engine._parameters.clear()
    layer, batch = Layer.random(E, H), Batch(draw(N, L, E))
    with mode():
        inside = attend(layer, batch).output
    assert same_bits(inside, attend(layer, batch).output)
    assert same_bits(inside, call(module(layer), batch)[0])


# Masks by row block


@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize("rules", [{}, {"causal": True}, {"window": 2}, {"causal": True, "window": 3}])
@pytest.mark.parametrize("kind", ["none", "both", "per head", "additive padding", "mixed, other way"])
def test_row_blocks_of_a_mask_make_the_whole(kind, rules, extra):
    mask = Batch(draw(N, L, E), draw(N, S, E), **masks(S, kind), **rules).mask(H, extra)
    blocks = [(0, 2), (2, 3), (3, None)]
    shape = (N, H, L, S + extra)
    whole = np.broadcast_to(mask.hidden(), shape)
    assert np.array_equal(
        np.concatenate([np.broadcast_to(mask.hidden(*b), (N, H, _rows(b), S + extra)) for b in blocks], 2), whole
    )
    assert not whole[..., S:].any()
    if mask.added() is not None:
        parts = [np.broadcast_to(mask.added(*b), (N, H, _rows(b), S + extra)) for b in blocks]
        assert np.array_equal(np.concatenate(parts, 2), np.broadcast_to(mask.added(), shape))


def _rows(block):
    return (L if block[1] is None else block[1]) - block[0]


def test_a_drawn_layer_computes_with_the_weights_that_it_holds():
    """No copy of them is made, and what is kept for a layer goes with it."""
    layer = Layer.random(16, 4)
    used = engine.parameters(layer, torch.float32)
    assert used["in_proj_weight"].data_ptr() == layer.weights["in_proj_weight"].ctypes.data
    assert used["in_proj_weight"] is engine.parameters(layer, torch.float32)["in_proj_weight"]
    assert engine.parameters(layer, torch.float64)["in_proj_weight"].dtype == torch.float64
    before = len(engine._parameters)
    del layer, used
    gc.collect()
    assert len(engine._parameters) < before


@pytest.mark.parametrize("later", [False, True])
def test_what_a_trace_forgets_is_made_again(later):
    batch = Batch(np.random.default_rng(0).standard_normal((2, 5, 16), dtype=np.float32), causal=True)
    trace = attend(Layer.random(16, 4), batch, later=later)
    weights, output = trace.weights, trace.output
    trace.forget()
    assert weights is not trace.weights and np.array_equal(weights, trace.weights) and np.array_equal(output, trace.output)
    gone = weakref.ref(trace.weights)
    del weights
    trace.forget()
    gc.collect()
    assert gone() is None
