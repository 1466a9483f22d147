"""Attention inside PyTorch's own modules: recorded weights are the module's, and it computes what it computes without recording."""

import numpy as np
import pytest
import torch
from torch import nn

import mha_viz
from tests.sources.capture.models import multihead, outcome, recorded

N, L, S, E, H = 3, 5, 7, 8, 2
X, MEMORY = (torch.randn(N, length, E, generator=torch.Generator().manual_seed(length)) for length in (L, S))
PADDING = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 1, 0, 0, 1]]).bool()
CAUSAL = torch.ones(L, L).triu(1).bool()
BIAS = torch.randn(L, L, generator=torch.Generator().manual_seed(0))
NO_SELF = torch.eye(L).bool()

OPTIONS = {
    "default": {},
    "batch first": {"batch_first": True},
    "extra columns": {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
    "no bias": {"bias": False},
    "dropout": {"dropout": 0.5},
    "double": {"dtype": torch.float64},
}
MASKS = {
    "none": {},
    "padded": {"key_padding_mask": PADDING},
    "causal": {"attn_mask": CAUSAL},
    "causal and padded": {"attn_mask": CAUSAL, "key_padding_mask": PADDING},
    "causal floats": {"attn_mask": torch.zeros(L, L).masked_fill(CAUSAL, -torch.inf)},
    "bias and padded": {"attn_mask": BIAS, "key_padding_mask": torch.zeros(N, L).masked_fill(PADDING, -torch.inf)},
    "padding floats": {"key_padding_mask": torch.linspace(-1, 1, N * L).reshape(N, L)},
    "per head": {"attn_mask": torch.stack([CAUSAL, NO_SELF] * N)},
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("options", OPTIONS)
def test_recorded_weights_are_those_of_multihead_attention(options, mask):
    module = multihead(E, H, **OPTIONS[options])
    x = X.to(OPTIONS[options].get("dtype", torch.float32))
    x = x if module.batch_first else x.transpose(0, 1)
    masks = {k: m if m.dtype == torch.bool else m.to(x.dtype) for k, m in MASKS[mask].items()}
    (trace,) = recorded(module, x, x, x, **masks).traces
    output, weights = module(x, x, x, average_attn_weights=False, **masks)
    assert np.allclose(trace.weights, weights.detach(), atol=1e-6, rtol=0, equal_nan=True)
    output = output if module.batch_first else output.transpose(0, 1)
    assert np.allclose(trace.output, output.detach(), atol=1e-5, equal_nan=True)


def test_cross_attention_with_its_own_widths():
    module = multihead(E, H, kdim=6, vdim=4, batch_first=True)
    key, value = MEMORY[..., :6], MEMORY[..., :4]
    (trace,) = recorded(module, X, key, value).traces
    _, weights = module(X, key, value, average_attn_weights=False)
    assert trace.weights.shape == (N, H, L, S)
    assert np.allclose(trace.weights, weights.detach(), atol=1e-6)
    assert trace.tokens.positions is None


def test_unbatched_input_is_one_item():
    module = multihead(E, H, batch_first=True)
    masks = {"key_padding_mask": PADDING[1], "attn_mask": torch.stack([CAUSAL, NO_SELF])}
    (trace,) = recorded(module, X[0], X[0], X[0], **masks).traces
    _, weights = module(X[0], X[0], X[0], average_attn_weights=False, **masks)
    assert np.allclose(trace.weights[0], weights.detach(), atol=1e-6)


def test_masks_are_kept_as_rules():
    module = multihead(E, H, batch_first=True)
    (trace,) = recorded(module, X, X, X, **MASKS["causal and padded"]).traces
    assert trace.rules.causal and trace.rules.dense is None
    assert np.array_equal(trace.rules.padded, PADDING.numpy()) and np.array_equal(trace.query_padding, PADDING.numpy())


@pytest.mark.parametrize("need_weights", [True, False])
def test_the_modules_own_fast_path_stays(need_weights):
    module = multihead(E, H, batch_first=True)
    (trace,) = recorded(module, X, X, X, gradients=False, need_weights=need_weights, **MASKS["causal and padded"]).traces
    _, weights = module(X, X, X, average_attn_weights=False, **MASKS["causal and padded"])
    assert np.allclose(trace.weights, weights.detach(), atol=1e-6)


def test_a_hint_without_a_mask_hides_nothing_on_the_fast_path():
    module = multihead(E, H, batch_first=True)
    (trace,) = recorded(module, X, X, X, gradients=False, is_causal=True).traces
    assert trace.rules.empty


def test_a_wrong_hint_is_believed_or_not_as_pytorch_does():
    module = multihead(E, H, batch_first=True)
    given = {"attn_mask": NO_SELF, "is_causal": True, "need_weights": False}
    slow, fast = recorded(module, X, X, X, **given), recorded(module, X, X, X, gradients=False, **given)
    assert slow.traces[0].rules.causal and "believed" in slow.notes[0]
    assert not fast.traces[0].rules.causal and np.array_equal(fast.traces[0].mask[0, 0], NO_SELF.numpy())
    for recording, gradients in ((slow, True), (fast, False)):
        output = outcome(module, X, X, X, gradients=gradients, **given)[0]
        assert np.allclose(recording.traces[0].output, output, atol=1e-5)


def test_weights_before_dropout_are_kept_and_that_is_said():
    module = multihead(E, H, dropout=0.5, batch_first=True)
    recording = recorded(module.train(), X, X, X)
    _, weights = module.eval()(X, X, X, average_attn_weights=False)
    assert np.allclose(recording.traces[0].weights, weights.detach(), atol=1e-6)
    assert "dropout is on" in recording.notes[0]


def test_the_least_number_hides_and_that_is_said():
    module = multihead(E, H, batch_first=True)
    least = torch.finfo(torch.float32).min
    mask = torch.zeros(L, L).masked_fill(CAUSAL, least)
    recording = recorded(module, X, X, X, attn_mask=mask)
    assert recording.traces[0].rules.causal and recording.traces[0].rules.bias is None and not recording.notes
    mask[2] = least
    recording = recorded(module, X, X, X, attn_mask=mask)
    assert "no key left" in recording.notes[0] and not recording.traces[0].undefined.any()
    assert np.allclose(recording.traces[0].weights[:, :, 2], 1 / L, atol=1e-6)


def encoder(layers=2, **options):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(E, H, 16, batch_first=True, **options)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=not options.get("norm_first")).eval()


def own_weights(model, *inputs, **options):
    """The weights of every ``nn.MultiheadAttention`` in the model, asked for, by the slow path."""
    found, handles = [], []

    def ask(module, args, kwargs):
        return args, kwargs | {"need_weights": True, "average_attn_weights": False}

    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            handles.append(module.register_forward_pre_hook(ask, with_kwargs=True))
            handles.append(module.register_forward_hook(lambda module, args, output: found.append(output[1].detach().numpy())))
    model(*inputs, **options)
    for handle in handles:
        handle.remove()
    return found


def same(trace, weights):
    """Equal to 1e-6 in the rows of real queries."""
    real = ~trace.query_padding
    ours, theirs = (w.swapaxes(1, 2)[real] for w in (trace.weights, weights))  # [rows, H, S]
    return np.allclose(ours, theirs, atol=1e-6, rtol=0, equal_nan=True)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("masks", [{}, {"mask": CAUSAL}, {"src_key_padding_mask": PADDING}], ids=["none", "causal", "padded"])
def test_an_encoder_on_either_path(norm_first, gradients, masks):
    model = encoder(norm_first=norm_first)
    recording = recorded(model, X, gradients=gradients, **masks)
    assert [trace.name for trace in recording.traces] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert not recording.notes
    for trace, weights in zip(recording.traces, own_weights(model, X, **masks), strict=True):
        assert same(trace, weights)
    if "mask" in masks:
        assert recording.traces[0].rules.causal and recording.traces[0].rules.dense is None


def test_padding_that_pytorch_left_out_is_rebuilt():
    model, padding = encoder(), torch.arange(L) >= torch.tensor([[4], [3], [2]])  # one column is padded in every item
    recording = recorded(model, X, gradients=False, src_key_padding_mask=padding)
    assert recording.notes[0].startswith("layers.0.self_attn and layers.1.self_attn: PyTorch left padded tokens out (nested")
    for trace, weights in zip(recording.traces, own_weights(model, X, src_key_padding_mask=padding), strict=True):
        assert np.array_equal(trace.rules.padded, padding.numpy()) and np.array_equal(trace.query_padding, padding.numpy())
        assert same(trace, weights)


def test_the_fast_path_of_an_encoder_reads_numbers_as_yes_or_no():
    layer = encoder().layers[0]
    mask = BIAS.masked_fill(CAUSAL, 0)
    recording = recorded(layer, X, gradients=False, src_mask=mask)
    assert "yes or no" in recording.notes[0]
    assert np.array_equal(recording.traces[0].mask[0, 0], (mask != 0).numpy())


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_transformer_with_both_stacks(mode):
    torch.manual_seed(0)
    model = nn.Transformer(E, H, 1, 2, 16, batch_first=True, dropout=0.5 if mode == "train" else 0.0)
    model.train(mode == "train")
    masks = {"tgt_mask": CAUSAL, "memory_key_padding_mask": torch.arange(S) >= torch.tensor([[7], [6], [5]])}
    recording = recorded(model, MEMORY, X, **masks)
    names = ["encoder.layers.0.self_attn"]
    names += [f"decoder.layers.{i}.{kind}" for i in range(2) for kind in ("self_attn", "multihead_attn")]
    assert [trace.name for trace in recording.traces] == names
    own, cross = recording.traces[1:3]
    assert own.rules.causal and own.tokens.positions is not None
    assert cross.weights.shape == (N, H, L, S) and not cross.query_padding.any() and cross.tokens.positions is None
    if mode == "eval":
        for trace, weights in zip(recording.traces, own_weights(model, MEMORY, X, **masks), strict=True):
            assert same(trace, weights)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits_stay_sixteen_where_numpy_has_them(dtype):
    module = multihead(E, H, batch_first=True, dtype=dtype)
    x = X.to(dtype)
    (trace,) = recorded(module, x, x, x).traces
    assert trace.call.q.dtype == (np.float16 if dtype == torch.float16 else np.float32)
    _, weights = module(x, x, x, average_attn_weights=False)
    assert np.allclose(trace.weights, weights.detach().float(), atol=1e-2)


def test_autocast_keeps_its_gradients():
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = multihead(E, H, batch_first=True)

        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                return self.attention(x, x, x)[0].float()

    recording = recorded(Cast(), X)
    assert recording.traces[0].name == "attention"


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_graph_that_is_run_again_for_its_gradients_is_recorded_once(reentrant):
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = multihead(E, H, batch_first=True)

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(lambda x: self.attention(x, x, x)[0], x, use_reentrant=reentrant)

    assert len(recorded(Again(), X).traces) == 1


def test_modules_of_anothers_make_in_an_encoder_turn_its_fast_path_off_and_that_is_said():
    class Layer(nn.TransformerEncoderLayer):
        pass

    torch.manual_seed(0)
    model = nn.TransformerEncoder(Layer(E, H, 16, batch_first=True), 1).eval()
    with torch.no_grad(), mha_viz.record(model) as recording:
        model(X)
    assert len(recording.traces) == 1 and "fast path was off" in recording.notes[0]


@pytest.mark.parametrize(
    ("shape", "said"),
    (
        ((3, 7, E), "[3, 7, 8] is read as 7 items of 3 tokens, since batch_first is False. If it holds 3 items of 7 tokens,"),
        ((1, 7, E), "[1, 7, 8] is read as 7 items of 1 token, since batch_first is False. If it holds 1 item of 7 tokens,"),
        ((7, 3, E), ""),
        ((1, 1, E), ""),
    ),
)
def test_items_that_may_be_tokens_are_said(shape, said):
    x = torch.randn(shape)
    notes = recorded(multihead(E, 2), x, x, x, gradients=False).notes
    assert [said in note for note in notes] == ([True] if said else [])


class Positions(nn.Module):
    """Adds a table of this shape, as positions are added, before an ``nn.MultiheadAttention`` that reads sequence first."""

    def __init__(self, shape, layers=2):
        super().__init__()
        self.table = nn.Embedding(shape[0] * shape[1], E)
        self.shape, self.norm = shape, nn.LayerNorm(E)
        self.layers = nn.ModuleList(multihead(E, 2) for _ in range(layers))

    def forward(self, x):
        x = self.norm(x + self.table(torch.arange(self.shape[0] * self.shape[1])).view(*self.shape, E))
        for layer in self.layers:
            x = x + layer(x, x, x, need_weights=False)[0]
        return x


@pytest.mark.parametrize(("shape", "said"), (((1, 3), True), ((7, 1), False), ((1, 1), False), ((7, 3), False)))
def test_positions_along_what_is_read_as_items_tell_that_it_may_be_tokens(shape, said):
    notes = recorded(Positions(shape).eval(), torch.randn(7, 3, E), gradients=False).notes
    sentence = "its input [7, 3, 8] is read as 3 items of 7 tokens, since batch_first is False. If it holds 7 items of 3 tokens"
    assert [sentence in note for note in notes] == [True] * said


@pytest.mark.parametrize("shapes", (((0, 3), (0, 3)), ((2, 0), (2, 3)), ((2, 3), (2, 0))))
@pytest.mark.parametrize("kind", ("module", "sdpa", "by hand"))
def test_a_call_on_no_tokens_is_left_out_and_said(kind, shapes):
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = multihead(E, 2, batch_first=True)

        def forward(self, q, k):
            if kind == "module":
                return self.attention(q, k, k)[0]
            q, k = (t.unflatten(-1, (2, E // 2)).transpose(1, 2) for t in (q, k))
            if kind == "sdpa":
                return nn.functional.scaled_dot_product_attention(q, k, k)
            return (q @ k.transpose(-2, -1)).softmax(dim=-1) @ k

    model = Parts()
    full, empty = (torch.ones(2, 3, E),) * 2, [torch.ones(*shape, E) for shape in shapes]
    with mha_viz.record(model) as recording:
        for given in (full, empty):
            model(*given)
    assert len(recording.traces) == 1
    assert [note for note in recording.notes if "heads are taken" not in note] == [
        f"{'attention' if kind == 'module' else 'Parts'}: a call of it on no tokens is left out."
    ]
