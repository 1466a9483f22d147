"""``record``: what is kept of a model's run, what is refused, and that the model is left as it was."""

import copy
import inspect
import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mha_viz
from mha_viz.core.rules import Wrong
from mha_viz.sources.capture.budget import check

N, L, E, H = 3, 6, 8, 2
X = torch.randn(N, L, E, generator=torch.Generator().manual_seed(0))
CAUSAL = torch.ones(L, L).triu(1).bool()
WORDS = [["the", "cat", "sat", "on", "the", "mat"], list("abcdef"), list("uvwxyz")]


class Block(nn.Module):
    """Causal attention as decoders write it, with a cache of earlier keys."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(E, 3 * E), nn.Linear(E, E)

    def forward(self, x, cache=None):
        q, k, v = (t.view(*x.shape[:2], H, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        return self.out(y.transpose(1, 2).flatten(2)), (k, v)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x, caches=(None,) * 3):
        kept = []
        for block, cache in zip(self.blocks, caches, strict=True):
            y, new = block(x, cache)
            x = x + y
            kept.append(new)
        return x, kept


def encoder():
    torch.manual_seed(0)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(E, H, 16, batch_first=True), 2).eval()


def run(model=None, *, times=1, **filters):
    model = model or Decoder()
    with mha_viz.record(model, **filters) as recording:
        for _ in range(times):
            model(X)
    return recording


def forwards(model):
    return [vars(module).get("forward") for module in model.modules()] + [len(m._forward_hooks) for m in model.modules()]


def test_the_recording_is_filled_when_the_block_ends():
    model = Decoder()
    with mha_viz.record(model) as recording:
        model(X)
        assert recording.traces == ()
    assert [trace.name for trace in recording.traces] == ["blocks.0", "blocks.1", "blocks.2"]


@pytest.mark.parametrize("make", [Decoder, encoder])
def test_the_model_is_left_as_it_was_also_by_an_exception(make):
    model = make()
    before = forwards(model)
    assert run(model).traces and forwards(model) == before
    with pytest.raises(ZeroDivisionError), mha_viz.record(model, until="nonfinite"):
        model(X)
        raise ZeroDivisionError
    with pytest.raises((RuntimeError, AssertionError)), mha_viz.record(model) as recording:
        model(X)
        model(X[..., :3])
    assert forwards(model) == before and not any(p._post_accumulate_grad_hooks for p in model.parameters())
    assert len(recording.traces) == (3 if make is Decoder else 2)  # what ran until then
    with mha_viz.record(model) as recording:  # nor is a function mode left
        pass_through = torch.overrides._get_current_function_mode_stack()
        model(X)
    assert len(pass_through) == (make is Decoder) and not torch.overrides._get_current_function_mode_stack()


def test_what_somebody_put_in_place_of_forward_is_put_back():
    model = Decoder()
    theirs = model.blocks[0].forward
    model.blocks[0].forward = theirs
    run(model)
    assert model.blocks[0].forward is theirs


def test_a_copy_of_the_model_is_a_model_of_its_own():
    model = Decoder()
    with mha_viz.record(model) as recording:
        copied = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        assert copied(X)[0].ne(model(X)[0]).any()
    assert torch.equal(copied(X)[0], Decoder()(X)[0])
    assert len(recording.traces) == 3


def test_a_call_that_failed_within_the_block_is_forgotten():
    class Failing(Decoder):
        def forward(self, x, fail=False):
            y = super().forward(x)[0]
            if fail:
                F.scaled_dot_product_attention(x, x, x)
                raise RuntimeError
            return y

    with mha_viz.record(model := Failing()) as recording:
        with pytest.raises(RuntimeError):
            model(X, fail=True)
        model(X)
    assert [trace.name for trace in recording.traces] == ["blocks.0", "blocks.1", "blocks.2"] * 2


def test_forward_still_tells_its_arguments():
    model = Decoder()
    with mha_viz.record(model):
        assert list(inspect.signature(model.forward).parameters) == ["x", "caches"]
        model(X)


def test_layers_by_name():
    assert [trace.name for trace in run(layers="blocks.1").traces] == ["blocks.1"]
    assert [trace.name for trace in run(layers=("*.0", "*.2")).traces] == ["blocks.0", "blocks.2"]
    with pytest.raises(Wrong, match="fits no module") as wrong:
        run(layers="layer.*")
    assert wrong.value.nearest[0] == {"layers": "blocks.0"}
    assert run(**wrong.value.nearest[0]).traces


def test_items_by_number():
    whole, some = run().traces[0], run(items=(2, 0)).traces[0]
    assert np.array_equal(some.weights, whole.weights[[2, 0]])
    assert run(items=1).traces[0].weights.shape[0] == 1
    with pytest.raises(Wrong, match="there are 3") as wrong:
        run(items=3)
    assert run(**wrong.value.nearest[0]).traces


def test_steps_are_forward_passes_of_the_model():
    assert len(run(times=4).traces) == 12
    assert len(run(times=4, steps=(0, 3)).traces) == 6
    assert len(run(times=4, steps=range(1, 100)).traces) == 9
    with pytest.raises(Wrong, match="there were 2 forward passes"):
        run(times=2, steps=2)


@pytest.mark.parametrize(
    "wrong", [{"layers": 3}, {"items": -1}, {"steps": "first"}, {"max_length": 0}, {"until": "nan"}, {"limit": 0}]
)
def test_filters_that_mean_nothing_are_refused(wrong):
    with pytest.raises(Wrong, match=next(iter(wrong))):
        run(**wrong)


def test_the_first_queries_of_a_causal_call_keep_their_rows():
    whole, short = run(), run(max_length=4)
    for a, b in zip(whole.traces, short.traces, strict=True):
        assert b.weights.shape == (N, H, 4, 4)
        assert np.allclose(b.weights, a.weights[:, :, :4, :4], atol=1e-7)
        assert np.allclose(b.output, a.output[:, :4], atol=1e-6)
    assert not short.notes


def test_the_first_queries_of_any_other_call_keep_all_keys_and_that_is_said():
    whole, short = run(encoder()), run(encoder(), max_length=4)
    assert np.allclose(short.traces[0].weights, whole.traces[0].weights[:, :, :4], atol=1e-7)
    assert "all 6 keys" in short.notes[0]


def test_tokens_name_rows_and_columns():
    trace = run(tokens=WORDS).traces[0]
    assert trace.query_tokens[0] == trace.key_tokens[0] == tuple(WORDS[0])
    trace = run(tokens=WORDS, items=(1,), max_length=2).traces[0]
    assert trace.query_tokens == trace.key_tokens == (("a", "b"),)


def test_tokens_of_one_side_only():
    model = nn.MultiheadAttention(E, H, batch_first=True)
    for tokens, side in ((WORDS, "key_tokens"), ([word[:4] for word in WORDS], "query_tokens")):
        with mha_viz.record(model, tokens=tokens) as recording:
            model(X[:, :4], X, X)
        trace = recording.traces[0]
        assert getattr(trace, side)[1] == tuple(tokens[1])
        assert {trace.query_tokens[1], trace.key_tokens[1]} - {tuple(tokens[1])} <= {tuple(map(str, range(n))) for n in (4, 6)}


def test_extra_columns_have_names_of_their_own():
    model = nn.MultiheadAttention(E, H, batch_first=True, add_bias_kv=True, add_zero_attn=True)
    with mha_viz.record(model, tokens=WORDS, max_length=3, items=0) as recording:
        model(X, X, X, attn_mask=CAUSAL)
    trace = recording.traces[0]
    assert trace.key_tokens[0] == ("the", "cat", "sat", "bias_k", "zero") and trace.num_positions == 3
    _, weights = model(X, X, X, attn_mask=CAUSAL, average_attn_weights=False)
    assert np.allclose(trace.weights[0], weights[0, :, :3][..., [0, 1, 2, 6, 7]].detach(), atol=1e-6)


@pytest.mark.parametrize("tokens", [WORDS[:2], [word[:5] for word in WORDS], [WORDS[0][:5], *WORDS[1:]], ["the cat"]])
def test_tokens_that_fit_no_call_are_refused(tokens):
    with pytest.raises(Wrong, match="tokens"):
        run(tokens=tokens)


def test_a_cache_is_read_by_queries_that_stand_at_its_end():
    model = Decoder().eval()
    with torch.no_grad(), mha_viz.record(model, tokens=WORDS) as recording:
        _, caches = model(X[:, :4])
        for i in (4, 5):
            _, caches = model(X[:, i : i + 1], caches)
    whole = run(model).traces[1]
    first, _, last = recording.traces[1::3]
    assert first.key_tokens[0] == tuple(WORDS[0][:4])
    assert last.weights.shape == (N, H, 1, 6) and last.tokens.positions.tolist() == [5]
    assert last.query_tokens[0] == ("mat",) and last.key_tokens[0] == tuple(WORDS[0])
    assert np.allclose(last.weights[:, :, 0], whole.weights[:, :, 5], atol=1e-6)


def test_over_its_limit_a_recording_is_refused_before_it_is_made():
    call = run(layers="blocks.0").traces[0].call
    one = sum(array.nbytes for array in (call.q, call.k, call.v, call.out_weight, call.out_bias))
    assert len(run(limit=3 * one).traces) == 3
    with pytest.raises(Wrong, match="3 calls like this one") as wrong:
        run(limit=3 * one - 1)
    assert {name for change in wrong.value.nearest for name in change} == {"items", "max_length", "layers"}
    for change in wrong.value.nearest:
        assert run(limit=3 * one - 1, **change).traces
    with pytest.raises(Wrong, match="beside"):
        run(limit=4 * one, times=2)


def test_a_large_model_in_numbers():
    """32 layers of 8 items of 2,048 tokens, 4,096 wide, in 16 bits are 12.9 GB."""
    size = 3 * 8 * 2048 * 4096 * 2
    names = [f"layers.{i}" for i in range(32)]
    with pytest.raises(Wrong, match=r"12 GiB") as wrong:
        check(8 * 10**9, 0, 32, names, 8, 2048, lambda n, m: size * n * m // (8 * 2048))
    assert wrong.value.nearest == ({"items": range(4)}, {"max_length": 1271}, {"layers": tuple(names[:19])})


def test_layers_share_a_mask_and_its_bytes():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.MultiheadAttention(E, H, batch_first=True) for _ in range(3))

        def forward(self, x, mask):
            for layer in self.layers:
                x = layer(x, x, x, attn_mask=mask)[0]

    mask = torch.rand(L, L, generator=torch.Generator().manual_seed(0)) > 0.7
    with mha_viz.record(model := Shared()) as recording:
        model(X, mask)
    first, *others = [trace.rules.dense for trace in recording.traces]
    assert first is not None and all(dense is first for dense in others)
    calls = [trace.call for trace in recording.traces]
    bytes_ = sum(array.nbytes for call in calls for array in (call.q, call.k, call.v, call.out_weight, call.out_bias))
    with mha_viz.record(model, limit=bytes_ + first.nbytes):
        model(X, mask)


def test_a_model_without_attention_is_told_what_is_recorded():
    with pytest.raises(Wrong, match="no attention was seen"), mha_viz.record(nn.Linear(E, E)) as recording:
        pass
    with pytest.raises(Wrong, match="no attention was seen"):
        run(nn.Linear(E, E))
    with pytest.raises(Wrong, match=r"must be a torch\.nn\.Module"), mha_viz.record(lambda x: x):
        pass
    assert recording.traces == ()


@pytest.mark.parametrize("make", [Decoder, encoder])
def test_without_gradients_in_inference_mode(make):
    with torch.inference_mode():
        assert len(run(make()).traces) == (3 if make is Decoder else 2)


def test_attention_outside_the_model_is_not_the_models():
    model, other = Decoder(), Decoder()
    with mha_viz.record(model) as recording:
        other(X)
        F.scaled_dot_product_attention(X, X, X)
        model(X)
    assert len(recording.traces) == 3


def test_what_is_kept_does_not_change_with_the_model():
    model = nn.MultiheadAttention(E, H, batch_first=True)
    x = X.clone()
    with mha_viz.record(model) as recording:
        before = model(x, x, x)[0].detach()
    with torch.no_grad():
        x.zero_()
        for parameter in model.parameters():
            parameter.zero_()
    assert np.allclose(recording.traces[0].output, before, atol=1e-6)


KINDS = {
    "rules": lambda: run(tokens=WORDS, items=(0, 2)),
    "encoder": lambda: run(encoder()),
    "double": lambda: run(Double()),
    "maps": lambda: run(Capped()),
}


class Double(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(E, H, batch_first=True, add_zero_attn=True, dtype=torch.float64)

    def forward(self, x):
        return self.attention(
            x.double(), x.double(), x.double(), key_padding_mask=torch.arange(L) >= torch.tensor([[6], [5], [1]])
        )


class Capped(nn.Module):
    def forward(self, x):
        return torch.tanh(x @ x.mT).softmax(dim=-1) @ x


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_recording_comes_back(kind, tmp_path):
    recording = KINDS[kind]()
    recording.save(tmp_path / "run.safetensors")
    again = mha_viz.load(tmp_path / "run.safetensors")
    assert again.notes == recording.notes and again.cause == recording.cause
    for a, b in zip(recording.traces, again.traces, strict=True):
        assert (a.name, a.query_tokens, a.key_tokens, a.scale) == (b.name, b.query_tokens, b.key_tokens, b.scale)
        for name in a.fields():
            assert a.has(name) == b.has(name)
            if a.has(name) and getattr(a, name) is not None:
                assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True), name
    json.dumps(recording.notes)
