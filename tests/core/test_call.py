"""A Call holds one attention call after its projections; its Trace is what PyTorch computes from there."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Wrong
from mha_viz.core.tokens import Tokens

N, H, L, S, D, Dv, E = 2, 4, 3, 5, 6, 7, 8
RANDOM = np.random.default_rng(0)


def drawn(*shape, dtype=np.float32):
    return RANDOM.normal(size=shape).astype(dtype)


def call(G=H, dtype=np.float32, **given):
    made = {"q": drawn(N, H, L, D, dtype=dtype), "k": drawn(N, G, S, D, dtype=dtype), "v": drawn(N, G, S, Dv, dtype=dtype)}
    return Call(**made | given)


def pytorch(call, **options):
    q, k, v = (torch.tensor(t) for t in (call.q, call.k, call.v))
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options).numpy()


@pytest.mark.parametrize("G", [1, 2, 4])
def test_heads_read_the_group_that_they_belong_to(G):
    made = call(G)
    trace = trace_of_call(made)
    assert np.allclose(trace.head_outputs, pytorch(made), atol=1e-6)
    assert trace.k.shape == (N, H, S, D) and trace.v.shape == (N, H, S, Dv) and trace.call.k.shape == (N, G, S, D)


def test_scale_mask_bias_and_projection():
    padded = np.array([[False] * 5, [True, False, False, False, True]])
    bias = drawn(1, H, L, S)
    weight, out_bias = drawn(E, H * Dv), drawn(E)
    made = call(mask=Mask(L, S, causal=True, padded=padded, bias=bias), scale=0.3, out_weight=weight, out_bias=out_bias)
    trace = trace_of_call(made)
    hidden = made.mask.hidden()
    added = torch.tensor(np.where(hidden, -np.inf, bias).astype(np.float32))
    heads = pytorch(made, attn_mask=added, scale=0.3)
    defined = ~trace.undefined
    assert np.allclose(trace.head_outputs[defined], heads[defined], atol=1e-6)
    concat = heads.swapaxes(1, 2).reshape(N, L, H * Dv)
    rows = defined.all(axis=1)
    assert np.allclose(trace.output[rows], (concat @ weight.T + out_bias)[rows], atol=1e-4)
    assert trace.scale == 0.3 and trace.out_proj[0].shape == (E, H * Dv)


def test_what_is_not_known_is_absent():
    trace = trace_of_call(Call(drawn(N, H, L, D), drawn(N, H, S, D)))
    assert trace.has("q", "k", "scores", "weights") and not any(map(trace.has, ("v", "head_outputs", "concat", "output")))
    assert trace_of_call(call()).has("concat") and not trace_of_call(call()).has("output")


def test_defaults():
    made = call()
    assert made.mask.empty and made.scale == D**-0.5 and made.tokens.positions is None and made.num_heads == H
    assert call(k=drawn(N, H, L, D), v=drawn(N, H, L, D)).tokens.positions.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype, computed", [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)])
def test_it_keeps_its_dtype_and_is_computed_in_float32_at_least(dtype, computed):
    made = call(dtype=dtype)
    assert made.q.dtype == dtype and trace_of_call(made).weights.dtype == computed


def test_it_is_a_copy_that_cannot_be_changed():
    q = drawn(N, H, L, D)
    made = call(q=q)
    q[:] = 0
    assert made.q.any()
    with pytest.raises(ValueError):
        made.q[:] = 0


@pytest.mark.parametrize(
    "given, argument",
    [
        ({"q": drawn(H, L, D)}, "q"),
        ({"q": drawn(N, H, 0, D)}, "q"),
        ({"k": drawn(N, 3, S, D)}, "k"),
        ({"k": drawn(N, H, S, D + 1)}, "k"),
        ({"k": drawn(N + 1, H, S, D)}, "k"),
        ({"v": drawn(N, H, S + 1, Dv)}, "v"),
        ({"v": drawn(N, 2, S, Dv)}, "v"),
        ({"out_weight": drawn(H * Dv, E)}, "out_weight"),
        ({"mask": Mask(S, L)}, "mask"),
        ({"mask": Mask(L, S, extra=1)}, "mask"),
        ({"q": np.zeros((N, H, L, D), int)}, "q"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_by_name(given, argument):
    with pytest.raises(Wrong) as wrong:
        call(**given)
    assert wrong.value.argument == argument


def test_a_scale_of_one_is_not_taken_for_none():
    assert call(scale=1.0).scale == 1.0


def test_tokens_may_hold_extra_columns():
    tokens = Tokens.of(N, L, S, one_sequence=False)
    made = call(mask=Mask(L, S - 1, extra=1, causal=True), tokens=tokens)
    assert not made.mask.hidden()[..., -1].any()


def test_nothing_is_made_of_it_before_it_is_read(monkeypatch):
    made = []
    monkeypatch.setattr("mha_viz.core.engine._steps_of_call", lambda call, keep_scale: made.append(call))
    trace = trace_of_call(call())
    assert trace.has("weights") and not made
    with pytest.raises(AttributeError):
        trace.weights  # noqa: B018
    assert len(made) == 1


def test_an_array_that_is_nobodys_is_not_copied():
    q = drawn(N, H, L, D)
    q.flags.writeable = False
    assert call(q=q).q is q


def test_maps_that_do_not_fit_are_refused_when_one_is_read():
    q = np.zeros((1, 1, 300_000, 1), np.float32)
    with pytest.raises(Wrong, match="seq_len"):
        trace_of_call(Call(q, q, q))
    trace = trace_of_call(Call(q, q, q), later=True)
    assert trace.k.shape == q.shape
    with pytest.raises(Wrong, match="seq_len"):
        trace.weights  # noqa: B018
