"""What a recording shows is what the model computed, also where masks leave nothing and where weights change after softmax."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mha_viz
from mha_viz.core.intervention import Intervention
from mha_viz.core.long import pooled
from mha_viz.core.rules import Wrong
from tests.sources.capture.models import multihead, recorded

X = torch.randn(2, 4, 9, generator=torch.Generator().manual_seed(0))
DTYPES = torch.float32, torch.float64, torch.bfloat16, torch.float16
LAYOUT = {"layout": "NHLD"}
NO_KEY = "the model gives 0 to a query that has no key left"


class Whole(nn.Module):
    """``attend(q, k, v)`` of what it is given."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend

    def forward(self, q, k, v):
        return self.attend(q, k, v)


def of_softmax(change, mask=0):
    """Attention by hand whose scores are added a ``mask`` and whose weights go through ``change``; it keeps what multiplied v."""

    def attend(q, k, v):
        w = change((q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask).softmax(-1))
        model.used = w.detach().float().numpy()
        return w @ v

    model = Whole(attend)
    return model


def same_output(recording, output):
    shown = recording.traces[0]
    shown = shown.output if shown.has("output") else shown.head_outputs
    close = 1e-2 if output.dtype in DTYPES[2:] else 1e-5
    assert np.allclose(shown, output.detach().float().numpy(), rtol=close, atol=close, equal_nan=True)


def test_a_wholly_padded_item_keeps_the_output_that_training_gave_it():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).train()
    nn.init.normal_(layer.self_attn.out_proj.bias)
    padding = torch.tensor([[False] * 4, [True] * 4])
    outputs = []
    layer.self_attn.register_forward_hook(lambda module, args, output: outputs.append(output[0]))
    recording = recorded(layer, X[..., :8], src_key_padding_mask=padding)
    trace = recording.traces[0]
    assert np.isnan(trace.weights[1]).all() and trace.undefined[1].all() and NO_KEY in recording.notes[0]
    assert np.allclose(trace.output[1], layer.self_attn.out_proj.bias.detach().numpy())
    same_output(recording, outputs[-1])


@pytest.mark.parametrize("gradients", (True, False))
def test_a_head_without_keys_leaves_what_the_others_say(gradients):
    module = multihead(9, 3, batch_first=True)
    mask = torch.zeros(6, 4, 4, dtype=torch.bool)
    mask[1::3] = True
    recording = recorded(module, X, X, X, attn_mask=mask, need_weights=False, gradients=gradients)
    output = module(X, X, X, attn_mask=mask, need_weights=False)[0]
    assert output.isfinite().all() and NO_KEY in recording.notes[0]
    same_output(recording, output)
    recording = recorded(module, X, X, X, attn_mask=mask, gradients=gradients)
    assert np.isnan(recording.traces[0].output).all() and not recording.notes  # and so is the model's


def test_with_dropout_the_way_it_was_called_tells():
    module = multihead(9, 3, batch_first=True, dropout=0.5).train()
    padding = torch.tensor([[False] * 4, [True] * 4])
    for need_weights, finite in ((False, True), (True, False)):
        recording = recorded(module, X, X, X, key_padding_mask=padding, need_weights=need_weights)
        assert np.isfinite(recording.traces[0].output[1]).all() == finite


def test_rows_without_keys_come_back_from_a_file(tmp_path):
    module = multihead(9, 3, batch_first=True)
    with mha_viz.record(module) as recording:
        output = module(X, X, X, key_padding_mask=torch.tensor([[False] * 4, [True] * 4]), need_weights=False)[0]
    recording.save(tmp_path / "run.safetensors")
    same_output(mha_viz.load(tmp_path / "run.safetensors"), output)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("by_hand", (False, True))
def test_a_row_hidden_by_the_least_number_is_what_the_model_makes_of_it(dtype, by_hand, tmp_path):
    q = (torch.arange(4) * 0.37).sin().view(1, 1, 2, 2).to(dtype)
    v = torch.tensor([[1, 10], [3, 30]]).to(dtype)[None, None]  # [1, 1, 2, 2]
    mask = torch.zeros(2, 2, dtype=dtype)
    mask[1] = torch.finfo(dtype).min
    model = of_softmax(lambda w: w, mask) if by_hand else Whole(lambda *qkv: F.scaled_dot_product_attention(*qkv, mask))
    recording = recorded(model, q, q, v)
    output = model(q, q, v)
    right = [2.316, 23.17] if dtype is torch.float16 and not by_hand else [2, 20]
    assert torch.allclose(output[0, 0, 1].float(), torch.tensor(right).float(), rtol=1e-3)
    same_output(recording, output)
    assert not recording.traces[0].undefined.any() and "weighs all of them" in recording.notes[0] and len(recording.notes) == 1
    recording.save(tmp_path / "run.safetensors")
    same_output(mha_viz.load(tmp_path / "run.safetensors"), output)


@pytest.mark.parametrize("fills", ([-1e9], [-1e9, -1e9], [-1e9, -math.inf], [torch.finfo(torch.float32).min] * 2))
def test_scores_that_are_filled_are_equal_where_nothing_is_left(fills):
    hides = [torch.tensor([[False] * 4, [True] * 4]).view(2, 1, 1, 4), torch.ones(4, 4).triu(1).bool()]

    def attend(q, k, v):
        scores = q @ k.transpose(-2, -1)
        for low, hidden in zip(fills, hides, strict=False):
            scores = scores.masked_fill(hidden, low)
        return scores.softmax(-1) @ v

    q = torch.randn(2, 2, 4, 3, dtype=torch.float64)
    model = Whole(attend)
    recording = recorded(model, q, q, q)
    same_output(recording, model(q, q, q))
    assert recording.traces[0].has("q")


def test_two_masks_that_are_added_overflow_as_in_the_model():
    least = torch.finfo(torch.float32).min
    one, other = torch.zeros(4, 4), torch.zeros(4, 4)
    one[1:3], other[2], other[1, 0] = least, least, least

    q = torch.randn(2, 2, 4, 3)
    model = Whole(lambda q, k, v: ((q @ k.transpose(-2, -1) + one) + other).softmax(-1) @ v)
    recording = recorded(model, q, q, q)
    assert recording.traces[0].undefined[:, :, 2].all() and recording.traces[0].weights[0, 0, 1, 0] == 0
    same_output(recording, model(q, q, q))


def test_a_spared_row_is_the_same_pooled_and_a_person_can_still_hide_its_keys():
    q = torch.randn(1, 2, 600, 3)
    hidden = (torch.arange(600) < 5) | torch.ones(600, 600).triu(1).bool()
    model = Whole(lambda q, k, v: (q @ k.transpose(-2, -1)).masked_fill(hidden, -1e9).softmax(-1) @ v)
    trace = recorded(model, q, q, q).traces[0]
    assert trace.rules.causal and trace.rules.padded is not None and np.allclose(trace.weights[:, :, :5], 1 / 600)
    part = next(pooled(trace, [1], rows=(0, 8), columns=(0, 600), shape=(8, 512)))
    assert np.allclose(part.largest[:5], 1 / 600) and not part.hidden[:5].any() and part.hidden[5:, 500:].all()
    less = mha_viz.changed(trace, Intervention(hidden_keys=(7,)))
    assert (less.weights[:, :, :, 7] == 0).all() and np.allclose(less.weights[:, :, :5].max(), 1 / 599)


@pytest.mark.parametrize("number", (-math.inf, torch.tensor(-math.inf), torch.full((1, 1), -math.inf)))
def test_one_query_whose_only_key_is_hidden(number):
    q = torch.randn(1, 1, 1, 2)
    trace = recorded(of_softmax(lambda w: w, number), q, q, q).traces[0]
    assert np.isnan(trace.weights).all() and trace.undefined.all()


def normalised(w):
    w = w * torch.ones(4, 4).tril()
    return w / w.sum(-1, keepdim=True)


def assigned(w):
    w[..., 0] = 0
    return w


@pytest.mark.parametrize(
    "change", (normalised, assigned, lambda w: w.mul_(torch.ones(4, 4).tril()), lambda w: w.masked_fill(w < 0.2, 0))
)
def test_what_multiplied_the_values_is_shown_and_the_softmax_beside_it(change, tmp_path):
    q = torch.randn(2, 2, 4, 4, generator=torch.Generator().manual_seed(1))
    model = of_softmax(change)
    with torch.no_grad():
        recording = recorded(model, q, q, q, gradients=False, filters=LAYOUT)
    recording.save(tmp_path / "run.safetensors")
    softmax = (q @ q.transpose(-2, -1) / 2).softmax(-1).numpy()
    for shown in (recording, mha_viz.load(tmp_path / "run.safetensors")):
        assert np.array_equal(shown.traces[0].weights, model.used)
        assert np.allclose(shown.traces[0].probabilities, softmax, atol=1e-6)
        assert "what multiplied the values" in shown.notes[0]


@pytest.mark.parametrize(
    "change", (lambda w: w * 1.0, lambda w: w / w.sum(-1, keepdim=True), lambda w: w.masked_fill(w < 0, 0))
)
def test_what_changes_nothing_is_not_said_to(change):
    q = torch.randn(2, 2, 4, 4)
    recording = recorded(of_softmax(change), q, q, q, filters=LAYOUT)
    assert recording.traces[0].has("q") and not recording.notes


def test_nan_made_zero_after_softmax_is_an_output_of_zero():
    q = torch.randn(2, 2, 4, 4)
    model = of_softmax(torch.nan_to_num, torch.zeros(4, 4).index_fill(0, torch.tensor([2]), -math.inf))
    recording = recorded(model, q, q, q, filters=LAYOUT)
    assert recording.traces[0].undefined[:, :, 2].all() and "gives 0" in recording.notes[0]
    same_output(recording, model(q, q, q))


def test_an_output_that_does_not_follow_is_said(monkeypatch):
    module, forward = multihead(9, 3, batch_first=True), F.multi_head_attention_forward

    def doubled(*args, **kwargs):
        output, weights = forward(*args, **kwargs)
        return 2 * output, weights

    monkeypatch.setattr(F, "multi_head_attention_forward", doubled)
    assert "the model's own output differs by" in recorded(module, X, X, X).notes[0]


def test_weights_that_are_mixed_before_the_values_are_not_called_no_attention():
    q, mix = torch.randn(2, 2, 4, 4), torch.randn(2, 2)
    model = Whole(lambda q, k, v: torch.einsum("hg,ngls->nhls", mix, (q @ k.transpose(-2, -1)).softmax(-1)) @ v)
    with pytest.raises(Wrong, match="a softmax over scores ran in Whole"), mha_viz.record(model):
        model(q, q, q)


@pytest.mark.parametrize("layer", (False, True))
def test_a_hint_alone_is_ignored_by_the_fast_path_and_that_is_said(layer):
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval() if layer else multihead(8, 2, batch_first=True)
    x = X[..., :8]
    inputs = (x,) if layer else (x, x, x)
    recording = recorded(model, *inputs, gradients=False, is_causal=True)
    assert recording.traces[0].rules.empty and "fast path ignores it" in recording.notes[0]
    mask = torch.ones(4, 4).triu(1).bool()
    more = {"src_mask" if layer else "attn_mask": mask, "is_causal": True}
    recording = recorded(model, *inputs, gradients=False, **more)
    assert recording.traces[0].rules.causal and not recording.notes


def test_items_that_are_read_as_tokens_are_said():
    x = torch.randn(3, 7, 8)
    recording = recorded(multihead(8, 2), x, x, x)
    assert recording.traces[0].shape == (7, 2, 3, 3) and "read as 7 items of 3 tokens" in recording.notes[0]
    assert not recorded(multihead(8, 2, batch_first=True), x, x, x).notes
    assert not recorded(multihead(8, 2), x.transpose(0, 1), *[x.transpose(0, 1)] * 2).notes
    model = multihead(8, 2)
    with pytest.raises(Wrong, match="Items and tokens are swapped"), mha_viz.record(model, tokens=[list("abcdefg")] * 3):
        model(x, x, x)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_the_least_number_beside_padding_leaves_the_keys_that_are_not_padded(dtype):
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True, dtype=dtype), torch.randn(2, 3, 8, dtype=dtype)
    padding, mask = (
        torch.tensor([[False, False, True], [False, True, True]]),
        torch.full((3, 3), torch.finfo(dtype).min, dtype=dtype),
    )
    with mha_viz.record(layer) as recording:
        output, weights = layer(x, x, x, key_padding_mask=padding, attn_mask=mask, average_attn_weights=False)
    (trace,) = recording.traces
    assert trace.weights[0, 0, 0] == pytest.approx([0.5, 0.5, 0]) and np.allclose(trace.weights, weights.detach())
    assert np.allclose(trace.output, output.detach(), atol=1e-6) and recording.notes == ()
