"""``record(model, until="nonfinite")`` keeps the step in which something first became NaN or infinite, and says why."""

import numpy as np
import pytest
import torch
from torch import nn

import mha_viz

N, L, E, H = 3, 5, 8, 2
X = torch.randn(N, L, E, generator=torch.Generator().manual_seed(0))
CAUSAL = torch.ones(L, L).triu(1).bool()
LEFT = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 0, 0]]).bool()


class Model(nn.Module):
    """Two layers that ask for weights, so that a row without keys is NaN, and a mean over what is real."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.MultiheadAttention(E, H, batch_first=True) for _ in range(2))
        self.head = nn.Linear(E, 1)

    def forward(self, x, padding=None):
        for layer in self.layers:
            x = x + layer(x, x, x, attn_mask=CAUSAL, key_padding_mask=padding)[0]
        return self.head(x)


class ByHand(nn.Module):
    def __init__(self, attend):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out, self.attend = nn.Linear(E, 3 * E), nn.Linear(E, E), attend

    def forward(self, x):
        return self.out(self.attend(*self.qkv(x).chunk(3, dim=-1)))


def train(model, batches):
    """Some steps of training, each ``batch`` the arguments of one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with mha_viz.record(model, until="nonfinite") as recording:
        for batch in batches:
            optimizer.zero_grad()
            output = model(*batch)
            output[:, -1].sum().backward()
            optimizer.step()
    return recording


def test_rows_without_a_key_in_one_step_of_many():
    recording = train(Model(), [(X,), (X,), (X, LEFT), (X,), (X,)])
    assert [trace.name for trace in recording.traces] == ["layers.0", "layers.1"]
    cause = recording.cause
    assert (cause.trace, cause.item, cause.query) == (0, 2, 0)
    assert cause.sentence.startswith("layers.0: Item 2, queries 0–2: causal and key padding together leave no key")
    assert recording.traces[0].undefined[2, :, :3].all()


def test_nothing():
    recording = train(Model(), [(X,), (X,)])
    assert recording.traces == () and recording.cause is None
    assert recording.notes == ("Nothing became NaN or infinite in 2 steps.",)


def test_an_input_that_was_not_finite():
    bad = X.clone()
    bad[1, 2] = torch.inf
    recording = train(Model(), [(X,), (bad,)])
    assert recording.cause.trace is None and "input is not finite: argument 0" in recording.cause.sentence
    assert len(recording.traces) == 2


def test_a_parameter_that_was_not_finite():
    model = Model()
    with torch.no_grad():
        model.layers[1].in_proj_weight[0, 0] = torch.nan
    cause = train(model, [(X,)]).cause
    assert "parameter layers.1.in_proj_weight held NaN or an infinite number before this step began" in cause.sentence


def test_what_comes_into_a_layer_was_not_finite():
    model = Model()
    model.layers.insert(1, Apart())
    cause = train(model, [(X,)]).cause
    assert (cause.trace, cause.item, cause.query) == (1, 1, 2)
    assert cause.sentence.startswith("layers.2, item 1, head 0, query 2: the queries were not finite when they came in;")


class Apart(nn.Module):
    def forward(self, x, *_, **__):
        spoilt = torch.zeros(N, L, 1)
        spoilt[1, 2] = torch.nan
        return (x + spoilt,)


def test_weights_that_are_mended_after_softmax_were_nan():
    def mended(q, k, v):
        w = (q @ k.mT).masked_fill(CAUSAL | LEFT[:, None], -torch.inf).softmax(dim=-1)
        return w.nan_to_num(0) @ v

    cause = train(ByHand(mended), [(X,)]).cause
    assert (cause.trace, cause.item, cause.head, cause.query) == (0, 2, 0, 0) and "together leave no key" in cause.sentence


def test_scores_that_overflow():
    def half(q, k, v):
        q, k, v = q.half() * 200, k.half() * 200, v.half()
        return ((q @ k.mT * 0.01).softmax(dim=-1) @ v).float()

    model = ByHand(half)
    with torch.no_grad():
        model.qkv.weight[: 2 * E] = torch.eye(E).repeat(2, 1) * 4
    cause = train(model, [(X,)]).cause
    assert "scores overflow" in cause.sentence and "float16 ends at 6.55e+04" in cause.sentence


def test_values_that_overflow():
    def large(q, k, v):
        return (q @ k.mT).softmax(dim=-1) @ (v.sign() * 3e38) * 10

    cause = train(ByHand(large), [(X,)]).cause
    assert cause.trace is None and "the model's output is not" in cause.sentence


def test_backward_alone_inside_attention():
    def normed(q, k, v):
        q = q * 0
        q = q / q.square().sum(dim=-1, keepdim=True).sqrt().clamp(min=1)  # the root's slope at 0 is infinite
        return (q @ k.mT).softmax(dim=-1) @ v

    model = nn.Sequential(ByHand(normed), nn.Linear(E, E))
    recording = train(model, [(X,)])
    assert recording.cause.trace == 0 and len(recording.traces) == 1
    assert recording.cause.sentence.startswith("Backward: the gradient arrives finite at 0 and is not when it leaves (0.qkv.")


def test_backward_alone_elsewhere():
    class Root(nn.Module):
        def forward(self, x):
            return (x * 0).sqrt()

    model = nn.Sequential(ByHand(lambda q, k, v: (q @ k.mT).softmax(dim=-1) @ v), nn.Linear(E, E), Root())
    cause = train(model, [(X,)]).cause
    assert cause.trace is None and "gradient of 1." in cause.sentence


def test_a_gradient_that_arrives_broken_is_not_the_attentions():
    class Root(nn.Module):
        def forward(self, x):
            return (x * 0).sqrt()

    cause = train(nn.Sequential(ByHand(lambda q, k, v: (q @ k.mT).softmax(dim=-1) @ v), Root()), [(X,)]).cause
    assert cause.trace is None and "gradient of 0.out." in cause.sentence


def test_what_is_watched_computes_what_it_computed():
    def steps(watched):
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        context = mha_viz.record(model, until="nonfinite") if watched else torch.enable_grad()
        with context:
            for _ in range(3):
                optimizer.zero_grad()
                model(X).square().sum().backward()
                optimizer.step()
        return [parameter.detach() for parameter in model.parameters()]

    assert all(map(torch.equal, steps(False), steps(True)))


def test_a_cause_is_saved(tmp_path):
    recording = train(Model(), [(X, LEFT)])
    recording.save(tmp_path / "step.safetensors")
    again = mha_viz.load(tmp_path / "step.safetensors")
    assert again.cause == recording.cause
    assert np.array_equal(again.traces[0].undefined, recording.traces[0].undefined)


@pytest.mark.parametrize("layers", ["layers.1", "layers.*"])
def test_only_layers_that_are_kept_are_looked_at(layers):
    model = Model()
    with mha_viz.record(model, until="nonfinite", layers=layers) as recording:
        model(X, LEFT)
    assert [trace.name for trace in recording.traces] == ["layers.0", "layers.1"][-len(recording.traces) :]
    assert ("came in" in recording.cause.sentence) == (layers == "layers.1")


def test_a_gradient_that_a_hook_lets_go_of_is_said_to_be_unseen():
    """As where an optimizer steps while the backward pass runs, so that never all gradients are held at once."""
    model = Model()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda parameter: setattr(parameter, "grad", None))
    with mha_viz.record(model, until="nonfinite") as recording:
        model(X).sum().backward()
    unseen, finite = recording.notes
    assert unseen.endswith("its gradient was let go of before it could be looked at.") and "more" in unseen
    assert finite == "Nothing became NaN or infinite in 1 step."
