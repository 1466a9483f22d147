"""A model that runs must run while it is recorded: under transforms, tracers and compilers, and whatever an operator does."""

import copy
import functools

import numpy as np
import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils._pytree import tree_leaves

import mha_viz
from mha_viz.core.rules import Wrong
from mha_viz.sources.capture import modules
from mha_viz.sources.capture.attended import Attended
from mha_viz.sources.capture.operators import Operators
from mha_viz.sources.capture.run import Run
from tests.sources.capture.models import multihead

N, L, E, H = 2, 4, 8, 2
X = torch.randn(N, L, E, generator=torch.Generator().manual_seed(0))
LATER = torch.ones(L, L, dtype=torch.bool).triu(1)


class Attention(nn.Module):
    """Causal attention between its projections, ``attend(q, k, v)`` being the middle of it."""

    def __init__(self, attend):
        super().__init__()
        torch.manual_seed(0)
        self.attend, self.qkv, self.out = attend, nn.Linear(E, 3 * E), nn.Linear(E, E)

    def forward(self, x):
        items, length, _ = x.shape
        q, k, v = (t.view(items, length, H, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        return self.out(self.attend(q, k, v).transpose(1, 2).reshape(items, length, E))


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = multihead(E, H, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, attn_mask=LATER[: x.shape[1], : x.shape[1]])[0]


def by_hand(q, k, v):
    scores = (q @ k.transpose(-2, -1) / 2).masked_fill(LATER[: q.shape[2], : q.shape[2]], -torch.inf)
    return scores.softmax(dim=-1) @ v


MODELS = {
    "by hand": lambda: Attention(by_hand),
    "sdpa": lambda: Attention(functools.partial(F.scaled_dot_product_attention, is_causal=True)),
    "module": Module,
}


def same_as_alone(model, run, **filters):
    """The Recording of ``run(model)``, whose results are those without recording, to the last bit."""
    alone = tree_leaves(run(model))
    with mha_viz.record(model, **filters) as recording:
        watched = tree_leaves(run(model))
    assert len(alone) == len(watched) > 0
    for one, other in zip(alone, watched, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
    return recording


def loss(model, parameters, x):
    return torch.func.functional_call(model, parameters, (x,)).square().sum()


def gradients(model):
    return torch.func.grad(lambda parameters: loss(model, parameters, X))(dict(model.named_parameters()))


def of_each_item(model):
    one = torch.func.grad(lambda parameters, x: loss(model, parameters, x[None]))
    return torch.vmap(one, in_dims=(None, 0))(dict(model.named_parameters()), X)


def traced(model):
    graph = make_fx(model)(X)
    return graph.code, graph(X)


WHOLE = {
    "grad": gradients,
    "each item's grad": of_each_item,
    "jacrev": lambda model: torch.func.jacrev(model)(X),
    "functional_call": lambda model: torch.func.functional_call(model, dict(model.named_parameters()), (X,)),
    "make_fx": traced,
    "vmap": lambda model: torch.vmap(lambda x: model(x[None])[0])(X),
}


@pytest.mark.parametrize("how", WHOLE)
@pytest.mark.parametrize("kind", MODELS)
def test_transforms_compute_what_they_compute_and_weights_are_recorded(kind, how):
    model = MODELS[kind]()
    expected = same_as_alone(model, lambda model: model(X)).traces[0]
    recording = same_as_alone(model, WHOLE[how])
    (trace,) = recording.traces
    assert recording.notes == ()
    assert np.allclose(trace.weights, expected.weights, atol=1e-6) and trace.rules.causal
    assert np.allclose(trace.output, expected.output, atol=1e-5) or how == "each item's grad"


@pytest.mark.parametrize("kind", ["by hand", "module"])
def test_second_derivatives(kind):
    """Forward over reverse: levels of vmap and of gradients, one in the other."""
    model = MODELS[kind]()
    recording = same_as_alone(model, lambda model: torch.func.hessian(lambda x: model(x).sum())(X[:1, :2]))
    with mha_viz.record(model) as alone:
        model(X[:1, :2])
    assert np.allclose(recording.traces[0].weights, alone.traces[0].weights, atol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
def test_levels_of_vmap_are_more_items(kind):
    """[3, N, L, E], mapped along its second axis, and an ensemble of models: the outer level counts slowest."""
    model, many = MODELS[kind](), torch.stack([X, X + 1, X - 1], dim=1)  # [N, 3, L, E]
    recording = same_as_alone(model, lambda model: torch.vmap(model, in_dims=1, out_dims=1)(many))
    with mha_viz.record(model) as alone:
        model(many.transpose(0, 1).flatten(0, 1))
    assert recording.notes == () and recording.traces[0].weights.shape == (3 * N, H, L, L)
    assert np.allclose(recording.traces[0].weights, alone.traces[0].weights, atol=1e-6)

    others = {name: torch.stack([parameter, 2 * parameter]) for name, parameter in model.named_parameters()}
    ensemble = same_as_alone(model, lambda model: torch.vmap(lambda p: torch.func.functional_call(model, p, (X,)))(others))
    double = copy.deepcopy(model)
    double.load_state_dict({name: 2 * parameter for name, parameter in model.state_dict().items()})
    with mha_viz.record(double) as alone:
        double(X)
    assert np.allclose(ensemble.traces[0].weights[N:], alone.traces[0].weights, atol=1e-6)
    assert ensemble.traces[0].call.out_weight is None  # one for each member


def test_levels_are_items_beside_the_axes_that_a_layout_tells():
    model = MODELS["by hand"]()
    recording = same_as_alone(model, lambda model: torch.vmap(model)(torch.stack([X, X + 1, X - 1])), layout="NHLD")
    assert recording.traces[0].shape == (3 * N, H, L, L)
    with pytest.raises(Wrong, match="each of the 4 axes"), mha_viz.record(model, layout="NLD"):
        torch.vmap(model)(torch.stack([X, X]))


UNSEEN = {
    "export": lambda model: _exported(model, strict=False),
    "strict export": lambda model: _exported(model, strict=True),
    "compiled": lambda model: torch.compile(model, backend="aot_eager")(X),
    "compiled around": lambda model: torch.compile(lambda x: model(x) + 1, backend="aot_eager", fullgraph=True)(X),
}


def _exported(model, strict):
    program = torch.export.export(model, (X,), strict=strict)
    return program.graph_module.code, program.module()(X)


@pytest.mark.slow
@pytest.mark.parametrize("how", UNSEEN)
@pytest.mark.parametrize("kind", MODELS)
def test_what_is_compiled_or_exported_is_as_without_recording_and_that_is_said(kind, how):
    torch._dynamo.reset()
    recording = same_as_alone(MODELS[kind](), UNSEEN[how])
    (note,) = recording.notes
    assert recording.traces == () and "torch.compile or torch.export" in note


@pytest.mark.parametrize("kind", MODELS)
def test_tensors_without_numbers_are_said_to_have_none(kind):
    model = MODELS[kind]()
    with torch._subclasses.fake_tensor.FakeTensorMode(allow_non_fake_inputs=True), mha_viz.record(model) as recording:
        assert model(torch.empty(N, L, E)).shape == (N, L, E)
    (note,) = recording.notes
    assert recording.traces == () and "without numbers" in note


SLOPES = torch.tensor([0.5, 0.25])
FLEX = {
    "nothing": {},
    "causal": {"block_mask": lambda b, h, q, k: q >= k},
    "window": {"block_mask": lambda b, h, q, k: (q - k).abs() < 2},
    "bias": {"score_mod": lambda s, b, h, q, k: s - SLOPES[h] * (q - k).abs()},
    "both": {"block_mask": lambda b, h, q, k: q >= k, "score_mod": lambda s, b, h, q, k: s - SLOPES[h] * (q - k).abs()},
    "hides": {"score_mod": lambda s, b, h, q, k: torch.where(q >= k, s, -torch.inf)},
    "soft cap": {"block_mask": lambda b, h, q, k: q >= k, "score_mod": lambda s, b, h, q, k: 2 * torch.tanh(s / 2)},
    "no key": {"block_mask": lambda b, h, q, k: q > k},
}


@pytest.mark.parametrize("kind", FLEX)
@torch.no_grad()
@pytest.mark.slow
def test_flex_attention(kind):
    """Its weights are those of attention written by hand with the same mask and changes; q, k and v are kept but for a soft cap."""
    made = dict(FLEX[kind])
    mod, rule = made.get("score_mod"), made.get("block_mask")
    if rule:
        made["block_mask"] = create_block_mask(rule, None, None, L, L, device="cpu")
    recording = same_as_alone(Attention(functools.partial(flex_attention, **made)), lambda model: model(X))
    (trace,) = recording.traces

    def changed(q, k, v):
        scores = q @ k.transpose(-2, -1) / 2
        places = torch.meshgrid(*map(torch.arange, scores.shape), indexing="ij")
        scores = mod(scores, *places) if mod else scores
        scores = scores if rule is None else scores.masked_fill(~rule(*places), -torch.inf)
        weights.append(scores.softmax(dim=-1))
        return weights[-1] @ v

    weights = []
    Attention(changed)(X)
    assert np.allclose(trace.weights, weights[0], atol=1e-6, equal_nan=True)
    assert trace.has("q") == (kind != "soft cap")
    assert ("score_mod" in " ".join(recording.notes)) == (kind == "soft cap")
    if kind in ("causal", "both", "hides"):
        assert trace.rules.causal and trace.rules.dense is None


@torch.no_grad()
def test_flex_attention_with_shared_keys():
    def grouped(q, k, v):
        return flex_attention(q, k[:, :1], v[:, :1], enable_gqa=True)

    (trace,) = same_as_alone(Attention(grouped), lambda model: model(X)).traces
    assert trace.shape == (N, H, L, L) and trace.call.k.shape[1] == 1


@pytest.mark.parametrize("backend", ["inductor", "aot_eager"])
@torch.no_grad()
@pytest.mark.slow
def test_compiled_flex_attention_is_as_without_recording_and_said_where_it_is_not_seen(backend):
    """A kernel is seen by nothing; without one PyTorch calls the operator."""
    torch._dynamo.reset()
    recording = same_as_alone(Attention(torch.compile(flex_attention, backend=backend)), lambda model: [model(X), model(X)])
    assert len(recording.traces) == (0 if backend == "inductor" else 2)
    assert [note.startswith("Attention: ") for note in recording.notes] == [True] * (backend == "inductor")
    assert all('under torch.compiler.set_stance("force_eager")' in note for note in recording.notes)
    model = Attention(torch.compile(flex_attention, backend=backend))
    with torch.compiler.set_stance("force_eager"), mha_viz.record(model) as eager:
        model(X)
    assert len(eager.traces) == 1 and not eager.notes


@pytest.mark.parametrize("owner, name", [(Operators, "_softmax"), (Attended, "__init__"), (Run, "keep"), (modules, "before")])
def test_whatever_is_raised_while_looking_stays_out_of_the_model(owner, name, monkeypatch):
    def fail(*args, **kwargs):
        raise ZeroDivisionError("a new operator\nof many lines")

    monkeypatch.setattr(owner, name, fail)
    recording = same_as_alone(Attention(by_hand), lambda model: [model(X), model(X)])
    (note,) = recording.notes
    assert note.startswith("Attention: ") and "ZeroDivisionError: a new operator)" in note


@pytest.mark.parametrize("how", ["grad", "jacrev", "vmap", "each item's grad", "make_fx"])
@pytest.mark.parametrize("kind", MODELS)
def test_what_is_watched_for_nan_runs_too(kind, how):
    recording = same_as_alone(MODELS[kind](), WHOLE[how], until="nonfinite")
    assert recording.cause is None and recording.notes == ("Nothing became NaN or infinite in 1 step.",)


def test_sparse_gradients_are_looked_through():
    class Embedded(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.attention = nn.Embedding(5, E, sparse=True), Module()

        def forward(self, ids):
            return self.attention(self.embed(ids))

    model = Embedded()
    with mha_viz.record(model, until="nonfinite") as recording:
        (model(torch.tensor([[0, 1, 2]])) * torch.inf).sum().backward()
    assert "Backward" in recording.cause.sentence


def test_what_was_asked_for_in_vain_is_raised_when_the_block_ends():
    model = Module()
    with pytest.raises(Wrong, match="limit"), mha_viz.record(model, limit=1):
        assert torch.equal(model(X), model(X))
    with pytest.raises(Wrong, match="there are 2"), mha_viz.record(model, items=5):
        model(X)


def test_flex_attention_says_itself_which_axis_holds_heads():
    class Flex(nn.Module):
        def forward(self, q, k):
            return flex_attention(q, k, k, enable_gqa=True)

    with torch.no_grad(), mha_viz.record(model := Flex()) as recording:
        model(torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8))
    assert recording.traces[0].shape == (2, 4, 5, 5) and recording.notes == ()
