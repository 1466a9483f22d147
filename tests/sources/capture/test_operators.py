"""Attention written by hand, in the ways people write it: recorded weights are the model's own, whatever operators it is made of."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mha_viz
from mha_viz.core.rules import Wrong
from tests.sources.capture.models import outcome, recorded

N, L, H, D = 2, 5, 4, 3
E = H * D
X = torch.randn(N, L, E, generator=torch.Generator().manual_seed(0))
CAUSAL = torch.ones(L, L).triu(1).bool()
PADDING = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]]).bool()
BIAS = torch.randn(H, L, L, generator=torch.Generator().manual_seed(1))
LOW = -1e9


class Attention(nn.Module):
    """q, k, v [N, H, L, D] of an input [N, L, E], a way to attend, and an output projection; ``own`` are its weights."""

    def __init__(self, way, groups=H):
        super().__init__()
        torch.manual_seed(2)
        self.way, self.groups, self.own = way, groups, None
        self.q, self.k, self.v = nn.Linear(E, E), nn.Linear(E, groups * D), nn.Linear(E, groups * D)
        self.out = nn.Linear(E, E)

    def forward(self, x):
        q = self.q(x).view(*x.shape[:2], H, D).transpose(1, 2)  # [N, H, L, D]
        k, v = (f(x).view(*x.shape[:2], self.groups, D).transpose(1, 2) for f in (self.k, self.v))  # [N, G, L, D]
        heads, own = self.way(q, k, v)  # [N, H, L, D], [N, H, L, S]
        self.own = own.detach().float().numpy()
        return self.out(heads.transpose(1, 2).reshape(*x.shape[:2], E))


def masked_fill(q, k, v):
    w = F.softmax((q @ k.transpose(-2, -1) / math.sqrt(D)).masked_fill(CAUSAL, -torch.inf), dim=-1)
    return w @ v, w


def in_place(q, k, v):
    scores = torch.matmul(q, k.mT)
    scores /= math.sqrt(D)
    scores.masked_fill_(CAUSAL, LOW)
    w = scores.softmax(-1)
    return torch.matmul(w, v), w


def where(q, k, v):
    scores = torch.where(~CAUSAL, D**-0.5 * (q @ k.transpose(2, 3)), torch.tensor(-torch.inf))
    w = nn.Softmax(dim=-1)(scores)
    return w @ v, w


def where_filled_first(q, k, v):
    w = torch.where(CAUSAL, LOW, q @ k.transpose(2, 3)).softmax(dim=3)
    return w @ v, w


def assigned(q, k, v):
    scores = q @ k.transpose(2, 3)
    scores[CAUSAL.expand_as(scores)] = -torch.inf
    w = scores.softmax(dim=-1)
    return w @ v, w


def added(q, k, v):
    scores = (q * D**-0.5) @ k.transpose(2, 3)
    scores = scores + torch.zeros(L, L).masked_fill(CAUSAL, torch.finfo(scores.dtype).min)
    w = scores.softmax(dim=-1)
    return w @ v, w


def causal_and_padded(q, k, v):
    scores = (q @ k.transpose(2, 3)).masked_fill(CAUSAL, -torch.inf)
    w = scores.masked_fill(PADDING[:, None, None], -torch.inf).softmax(dim=-1)
    return w @ v, w


def windowed(q, k, v):
    far = torch.ones(L, L).tril(-3).bool()
    w = (q @ k.transpose(2, 3)).masked_fill(CAUSAL | far, -torch.inf).softmax(dim=-1)
    return w @ v, w


def biased(q, k, v):
    w = torch.softmax((q @ k.transpose(2, 3) + BIAS) * 0.5, dim=-1)
    return w @ v, w


def without_the_largest(q, k, v):
    scores = q @ k.transpose(2, 3)
    w = (scores - scores.amax(dim=-1, keepdim=True)).softmax(dim=-1)
    return w @ v, w


def two_products(q, k, v):
    positions = torch.linspace(-1, 1, L * D).view(L, D)
    w = (torch.einsum("nhld,nhsd->nhls", q, k) + torch.einsum("nhld,sd->nhls", q, positions)).softmax(dim=-1)
    return w @ v, w


def in_float32(q, k, v):
    q, k, v = (t.bfloat16() for t in (q, k, v))
    w = F.softmax(q @ k.transpose(2, 3), dim=-1, dtype=torch.float32).to(q.dtype)
    return (w @ v).float(), w


def einsum(q, k, v):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))  # [N, L, H, D]
    w = torch.einsum("nlhd,nshd->nhls", q, k).softmax(dim=-1)
    return torch.einsum("nhls,nshd->nlhd", w, v).transpose(1, 2), w


def einsum_with_dots(q, k, v):
    w = torch.einsum("...ld,...sd->...ls", [q, k]).softmax(dim=-1)
    return torch.einsum("...ls,...sd->...ld", w, v), w


def einsum_heads_last(q, k, v):
    w = torch.einsum("bhqc,bhkc->bqkh", q, k).softmax(dim=2)
    return torch.einsum("bqkh,bhkc->bhqc", w, v), w.permute(0, 3, 1, 2)


def heads_first(q, k, v):
    q, k, v = (t.transpose(0, 1) for t in (q, k, v))  # [H, N, L, D]
    w = (q @ k.transpose(2, 3)).softmax(dim=-1)
    return (w @ v).permute(1, 0, 2, 3), w.transpose(0, 1)


def keys_first(q, k, v):
    w = (k @ q.transpose(2, 3)).softmax(dim=-2)  # [N, H, S, L]
    return w.mT @ v, w.mT


def values_first(q, k, v):
    w = (q @ k.transpose(2, 3)).softmax(dim=-1)
    return (v.mT @ w.mT).mT, w


def bmm(q, k, v):
    q, k, v = (t.reshape(N * H, L, D) for t in (q, k, v))
    w = torch.bmm(q, k.transpose(1, 2)).softmax(dim=-1)
    return torch.bmm(w, v).view(N, H, L, D), w.view(N, H, L, L)


def bmm_opened_for_the_mask(q, k, v):
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    scores = torch.bmm(q, k.transpose(1, 2)).view(N, H, L, L) + torch.zeros(L, L).masked_fill(CAUSAL, -torch.inf)
    w = scores.view(N * H, L, L).softmax(dim=-1)
    return torch.bmm(w, v).unflatten(0, (N, H)), w.view(N, H, L, L)


def baddbmm(q, k, v):
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    w = torch.baddbmm(BIAS.repeat(N, 1, 1), q, k.mT, beta=0.5, alpha=D**-0.5).softmax(dim=-1)
    return torch.bmm(w, v).unflatten(0, (N, H)), w.view(N, H, L, L)


def baddbmm_into_nothing(q, k, v):
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    w = torch.empty(N * H, L, L).fill_(torch.nan).baddbmm(q, k.mT, beta=0, alpha=0.3).softmax(dim=-1)
    return torch.bmm(w, v).unflatten(0, (N, H)), w.view(N, H, L, L)


def dropped(q, k, v):
    w = (q @ k.transpose(2, 3)).softmax(dim=-1)
    return F.dropout(w, 0.5) @ v, w


def scaled_by_head(q, k, v):
    w = ((q @ k.mT) * torch.linspace(0.5, 2, H).view(H, 1, 1) / torch.linspace(1, 2, L).view(L, 1)).softmax(dim=-1)
    return w @ v, w


WAYS = (
    masked_fill,
    in_place,
    where,
    where_filled_first,
    assigned,
    added,
    causal_and_padded,
    windowed,
    biased,
    without_the_largest,
    two_products,
    in_float32,
    einsum,
    einsum_with_dots,
    einsum_heads_last,
    heads_first,
    keys_first,
    values_first,
    bmm,
    bmm_opened_for_the_mask,
    baddbmm,
    baddbmm_into_nothing,
    dropped,
    scaled_by_head,
)
CAUSALLY = (
    masked_fill,
    in_place,
    where,
    where_filled_first,
    assigned,
    added,
    causal_and_padded,
    windowed,
    bmm_opened_for_the_mask,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_recorded_weights_are_the_models_own(way):
    model = Attention(way)
    recording = recorded(model, X)
    (trace,) = recording.traces
    rough = 1e-2 if way is in_float32 else 1e-6
    assert np.allclose(trace.weights, model.own, atol=rough, rtol=0)
    assert trace.has("q", "k", "v")
    assert len(recording.notes) == (way is dropped)
    if way is not dropped:
        assert np.allclose(trace.output, outcome(model, X)[0], atol=1e-5 + rough)
    assert trace.rules.causal == (way in CAUSALLY) and trace.rules.dense is None


def test_masks_are_found_as_the_rules_that_they_are():
    (trace,) = recorded(Attention(causal_and_padded), X).traces
    assert np.array_equal(trace.rules.padded, PADDING.numpy()) and np.array_equal(trace.query_padding, PADDING.numpy())
    (trace,) = recorded(Attention(windowed), X).traces
    assert trace.rules.window == 3 and trace.rules.padded is None
    (trace,) = recorded(Attention(biased), X).traces
    assert np.allclose(trace.rules.bias, 0.5 * BIAS[None])


def repeated(q, k, v):
    k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
    w = (q @ k.transpose(2, 3)).softmax(dim=-1)
    return w @ v, w


def expanded(q, k, v):
    k, v = (t[:, :, None].expand(N, 2, 2, L, D).reshape(N, H, L, D) for t in (k, v))
    w = (q @ k.transpose(2, 3)).softmax(dim=-1)
    return w @ v, w


def in_groups(q, k, v):
    w = (q.unflatten(1, (2, 2)) @ k[:, :, None].mT).softmax(dim=-1)  # [N, G, H / G, L, S]
    return (w @ v[:, :, None]).flatten(1, 2), w.flatten(1, 2)


def by_sdpa(q, k, v):
    own = (q @ k.repeat_interleave(2, dim=1).mT * D**-0.5).softmax(dim=-1) @ torch.eye(L)
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True), own


@pytest.mark.parametrize("way", [repeated, expanded, in_groups, by_sdpa], ids=lambda way: way.__name__)
def test_heads_that_share_keys_keep_them_once(way):
    model = Attention(way, groups=2)
    trace = recorded(model, X).traces[-1]
    assert trace.call.k.shape == (N, 2, L, D)
    assert np.allclose(trace.weights, model.own, atol=1e-6)
    assert np.allclose(trace.output, outcome(model, X)[0], atol=1e-5)


@pytest.mark.parametrize("equation", ["nhld,nsd->nhls", "nhld,nxsd->nhls"])
def test_one_key_for_all_heads(equation):
    def way(q, k, v):
        if "x" in equation:
            w = (q @ k.mT).softmax(dim=-1)
            return w @ v, w
        w = torch.einsum(equation, q, k[:, 0]).softmax(dim=-1)
        return torch.einsum("nhls,nsd->nhld", w, v[:, 0]), w

    model = Attention(way, groups=1)
    (trace,) = recorded(model, X).traces
    assert trace.call.k.shape == (N, 1, L, D)
    assert np.allclose(trace.weights, model.own, atol=1e-6)


SDPA = {
    "plain": {},
    "causal": {"is_causal": True},
    "may attend": {"attn_mask": ~CAUSAL},
    "floats": {"attn_mask": torch.zeros(L, L).masked_fill(CAUSAL, -torch.inf)},
    "bias": {"attn_mask": BIAS},
    "scale": {"scale": 0.1},
    "padded": {"attn_mask": ~PADDING[:, None, None]},
}


@pytest.mark.parametrize("options", SDPA)
def test_scaled_dot_product_attention(options):
    def way(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, **SDPA[options]), torch.zeros(1)

    model = Attention(way)
    recording = recorded(model, X)
    (trace,) = recording.traces
    seen = []

    def ask(q, k, v):  # what it weighs is told by values that are the keys' own places
        places = torch.eye(L).expand(N, H, L, L)
        seen.append(F.scaled_dot_product_attention(q, k, places, **SDPA[options]))
        return way(q, k, v)

    model.way = ask
    output = outcome(model, X)[0]
    assert np.allclose(trace.weights, seen[0].detach(), atol=1e-6)
    assert np.allclose(trace.output, output, atol=1e-5)
    assert trace.rules.causal == (options in ("causal", "may attend", "floats")) and trace.rules.dense is None
    assert not recording.notes


def test_the_causal_rule_of_sdpa_begins_at_the_first_key():
    class Cross(nn.Module):
        def forward(self, q, k):
            return F.scaled_dot_product_attention(q, k, k, is_causal=True)

    q, k = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 6, 4)
    (trace,) = recorded(Cross(), q, k).traces
    assert np.array_equal(trace.mask[0, 0], np.triu(np.ones((3, 6), bool), 1))


def test_a_query_without_a_key_gets_zero_from_sdpa_and_that_is_said():
    def way(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=CAUSAL), torch.zeros(1)  # the mask the wrong way round

    recording = recorded(Attention(way), X)
    assert recording.traces[0].undefined[:, :, -1].all() and "gives 0" in recording.notes[0]


class Head(nn.Module):
    """One head alone, as it is often taught: [N, L, D] and no axis of heads."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(E, D) for _ in range(3))

    def forward(self, x):
        self.own = (self.q(x) @ self.k(x).transpose(-2, -1) * D**-0.5).masked_fill(CAUSAL, -torch.inf).softmax(dim=-1)
        return self.own @ self.v(x)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.heads = nn.ModuleList(Head() for _ in range(2))
        self.out = nn.Linear(2 * D, E)

    def forward(self, x):
        return self.out(torch.cat([head(x) for head in self.heads], dim=-1))


def test_heads_that_are_modules_of_their_own():
    model = nn.Sequential(Heads(), Heads())
    recording = recorded(model, X)
    assert [trace.name for trace in recording.traces] == ["0.heads.0", "0.heads.1", "1.heads.0", "1.heads.1"]
    for trace in recording.traces:
        own = model.get_submodule(trace.name).own.detach()
        assert trace.weights.shape == (N, 1, L, L) and not recording.notes
        assert np.allclose(trace.weights[:, 0], own, atol=1e-6)


def test_items_and_heads_on_one_axis_that_is_never_opened_are_asked_about():
    class Stacked(nn.Module):
        def forward(self, x):
            q = torch.cat(x.split(D, dim=-1))  # [H·N, L, D]
            return torch.cat(((q @ q.mT).softmax(dim=-1) @ q).split(N), dim=-1)

    recording = recorded(Stacked(), X)
    assert recording.traces[0].weights.shape == (H * N, 1, L, L) and "items and heads together" in recording.notes[0]


def test_one_head_on_one_item():
    model = Head()
    (trace,) = recorded(model, X[0]).traces
    assert np.allclose(trace.weights[0, 0], model.own.detach(), atol=1e-6)


def test_heads_of_one_item():
    class Unbatched(nn.Module):
        def forward(self, x):
            q = x.view(L, H, D).transpose(0, 1)  # [H, L, D]
            self.own = (q @ q.mT).softmax(dim=-1)
            return (self.own @ q).transpose(0, 1).reshape(L, E)

    model = Unbatched()
    (trace,) = recorded(model, X[0]).traces
    assert np.allclose(trace.weights[0], model.own.detach(), atol=1e-6)


def test_a_module_that_attends_twice_has_two_calls():
    def twice(q, k, v):
        return masked_fill(q, k, masked_fill(q, k, v)[0])

    recording = recorded(Attention(twice), X)
    assert [trace.name for trace in recording.traces] == ["Attention", "Attention"]
    assert not recording.traces[0].has("output") and recording.traces[1].has("output")


def test_the_output_projection_of_gpt2():
    class Conv1D(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.randn(E, E)), nn.Parameter(torch.randn(E))  # [in, out]

        def forward(self, x):
            return torch.addmm(self.bias, x.view(-1, E), self.weight).view(x.shape)

    model = Attention(masked_fill)
    model.out = Conv1D()
    (trace,) = recorded(model, X).traces
    assert np.allclose(trace.output, outcome(model, X)[0], atol=1e-5)
    with mha_viz.record(model) as recording:
        for _ in range(2):
            model(X)
    one, other = (trace.call.out_weight for trace in recording.traces)
    assert one is other  # kept once for all steps


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("spelled", ["matmul", "einsum"])
def test_an_output_projection_that_is_a_product(spelled, bias):
    class Heads(Attention):
        """Each head by its own part of the projection, which einsum adds up; or all of them by a product with the whole."""

        def forward(self, x):
            q = self.q(x).view(N, L, H, D)
            w = torch.einsum("nlhd,nshd->nhls", q, q).softmax(dim=-1)
            y = torch.einsum("nhls,nshd->nlhd", w, q)
            weight = self.out.weight.T  # [H·D, E]
            y = y.flatten(2) @ weight if spelled == "matmul" else torch.einsum("nlhd,hde->nle", y, weight.view(H, D, E))
            return x + (y + self.out.bias if bias else y)

    model = Heads(masked_fill)
    recording = recorded(model, X)
    (trace,) = recording.traces
    assert np.allclose(trace.output, outcome(model, X)[0] - X, atol=1e-5) and not recording.notes


@pytest.mark.parametrize("linear", [False, True])
def test_a_projection_of_something_else_is_not_the_output_projection(linear):
    class Narrow(Attention):
        def forward(self, x):
            super().forward(x)
            q = self.q(x).view(N, L, H, D).transpose(1, 2)
            w = (q @ q.mT).softmax(dim=-1)
            return F.linear(w @ q, torch.eye(D)) if linear else (w @ q) @ torch.eye(D)  # of each head by itself

    recording = recorded(Narrow(masked_fill), X)
    assert not recording.traces[1].has("output") and recording.traces[1].weights.shape == (N, H, L, L)


def test_scores_that_are_changed_otherwise_keep_their_maps_and_that_is_said():
    def capped(q, k, v):
        w = (5 * torch.tanh(q @ k.mT / 5)).softmax(dim=-1)
        return w @ v, w

    model = Attention(capped)
    recording = recorded(model, X)
    (trace,) = recording.traces
    assert np.array_equal(trace.weights, model.own) and not trace.has("q")
    assert "changed by tanh" in recording.notes[0]


def test_a_fill_that_does_not_hide_keeps_the_maps_and_that_is_said():
    def filled(q, k, v):
        w = (q @ k.mT).masked_fill(CAUSAL, -2).softmax(dim=-1)
        return w @ v, w

    model = Attention(filled)
    recording = recorded(model, X)
    assert np.array_equal(recording.traces[0].weights, model.own) and "changed by masked_fill" in recording.notes[0]


def test_scores_that_change_unseen_keep_the_maps_and_that_is_said():
    def unseen(q, k, v):
        scores = q @ k.mT
        scores.data.mul_(2)  # behind autograd's back
        w = scores.softmax(dim=-1)
        return w @ v, w

    model = Attention(unseen)
    with torch.no_grad(), mha_viz.record(model) as recording:
        model(X)
    assert np.array_equal(recording.traces[0].weights, model.own) and "cannot be told" in recording.notes[0]


def test_a_factor_for_each_key_keeps_the_maps_and_that_is_said():
    def weighed(q, k, v):
        w = ((q @ k.mT) * torch.linspace(1, 2, L)).softmax(dim=-1)
        return w @ v, w

    model = Attention(weighed)
    recording = recorded(model, X)
    assert np.array_equal(recording.traces[0].weights, model.own) and "for each key" in recording.notes[0]


def test_scores_that_cannot_be_followed_are_said_not_to_be_recorded():
    def sunk(q, k, v):
        sink = torch.zeros(N, H, L, 2)  # two columns are no sink
        w = torch.cat([q @ k.mT, sink], dim=-1).softmax(dim=-1)[..., :-2]
        return w @ v, w

    model = Attention(sunk)
    with (
        pytest.raises(Wrong, match=r"none of its attention could be recorded.*went through cat before softmax"),
        mha_viz.record(model),
    ):
        model(X)


def test_other_products_and_softmaxes_are_no_attention():
    class Mixture(nn.Module):
        """Experts, chosen by a softmax, and a classifier."""

        def __init__(self):
            super().__init__()
            self.gate, self.experts = nn.Parameter(torch.randn(E, 3)), nn.Parameter(torch.randn(3, E, E))

        def forward(self, x):
            chosen = (x @ self.gate).softmax(dim=-1)  # [N, L, 3]
            x = torch.einsum("nle,xef->nlxf", x, self.experts)
            return torch.einsum("nlx,nlxf->nlf", chosen, x).softmax(dim=-1)

    with pytest.raises(Wrong, match="no attention was seen"), mha_viz.record(model := Mixture()):
        model(X)


def test_layout_tells_axes_that_cannot_be_told():
    class Mean(nn.Module):
        """The heads are never side by side: [H, N, L, D] looks like [N, H, L, D]."""

        def forward(self, x):
            q = x.view(N, L, H, D).permute(2, 0, 1, 3)
            self.own = (q @ q.mT).softmax(dim=-1)
            return (self.own @ q).mean(dim=0)

    model = Mean()
    (trace,) = recorded(model, X, filters={"layout": "HNLD"}).traces
    assert np.allclose(trace.weights, model.own.detach().transpose(0, 1), atol=1e-6)
    recording = recorded(model, X)
    assert recording.traces[0].weights.shape == (H, N, L, L) and "layout" in recording.notes[0]
    with pytest.raises(Wrong, match="does not fit"), mha_viz.record(model, layout="NLHD"):
        model(X)
    with pytest.raises(Wrong, match="a letter for each"), mha_viz.record(model, layout="NLD"):
        model(X)


def test_multi_head_attention_as_a_function():
    class Pool(nn.Module):
        """Attention pooling as CLIP does it: without the module, with weights of its own."""

        def __init__(self):
            super().__init__()
            torch.manual_seed(4)
            self.q, self.k, self.v, self.c = (nn.Linear(E, E) for _ in range(4))

        def forward(self, x):
            x = x.transpose(0, 1)  # [L, N, E]
            output, self.own = F.multi_head_attention_forward(
                x.mean(dim=0, keepdim=True),
                x,
                x,
                E,
                H,
                None,
                torch.cat([self.q.bias, self.k.bias, self.v.bias]),
                None,
                None,
                False,
                0.0,
                self.c.weight,
                self.c.bias,
                use_separate_proj_weight=True,
                q_proj_weight=self.q.weight,
                k_proj_weight=self.k.weight,
                v_proj_weight=self.v.weight,
                average_attn_weights=False,
            )
            return output

    model = Pool()
    (trace,) = recorded(model, X).traces
    assert np.allclose(trace.weights, model.own.detach(), atol=1e-6)
    assert np.allclose(trace.output[:, 0], outcome(model, X)[0][0], atol=1e-5)


def test_a_model_of_both_kinds_keeps_the_fast_path():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(5)
            self.encoder = nn.TransformerEncoderLayer(E, H, 16, batch_first=True)
            self.own = Attention(masked_fill)

        def forward(self, x):
            return self.own(self.encoder(x))

    model = Both().eval()
    recording = recorded(model, X, gradients=False)
    assert [trace.name for trace in recording.traces] == ["encoder.self_attn", "own"] and not recording.notes


def test_a_compiled_model_runs_without_its_compilation_and_that_is_said():
    model = Attention(masked_fill)
    compiled = torch.compile(model, backend="eager")
    with mha_viz.record(compiled) as recording:
        compiled(X)
    assert np.allclose(recording.traces[0].weights, model.own, atol=1e-6)
    assert "compil" in recording.notes[0]
