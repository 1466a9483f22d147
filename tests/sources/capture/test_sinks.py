"""A column of scores that takes part in the softmax and multiplies no value is recorded as a key of its own, the sink."""

import numpy as np
import pytest
import torch
from torch import nn

import mha_viz
from mha_viz.analysis import open_number
from mha_viz.analysis.validation import checks
from mha_viz.core.rules import Wrong
from mha_viz.sources.pretrained.shape import joined, taken
from tests.sources.capture.models import recorded

N, H, L, E, D = 2, 4, 6, 8, 4
X = torch.randn(N, L, E, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    """Grouped causal attention by hand whose softmax has a column more: ``last`` or first, ``shifted`` by the largest score of a row."""

    def __init__(self, last=True, shifted=True, own=None):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(E, n) for n in (H * D, 2 * D, 2 * D))
        self.out = nn.Linear(H * D, E)
        self.sinks = nn.Parameter(torch.linspace(-1, 2, H))
        self.last, self.shifted, self.own = last, shifted, own

    def forward(self, x, mask=None):
        q, k, v = (f(x).view(len(x), -1, n, D).transpose(1, 2) for f, n in ((self.q, H), (self.k, 2), (self.v, 2)))
        k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
        scores = q @ k.transpose(2, 3) * D**-0.5
        scores = scores + torch.full((x.shape[1],) * 2, -torch.inf).triu(1)
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None], torch.finfo(x.dtype).min)
        sinks = self.sinks.view(1, -1, 1, 1).expand(len(x), -1, x.shape[1], -1)
        wide = torch.cat([scores, sinks] if self.last else [sinks, scores], dim=-1)
        if self.shifted:
            wide = wide - wide.max(dim=-1, keepdim=True).values
        if self.own:
            return self.out(self.own(wide, v).transpose(1, 2).flatten(2))
        weights = wide.softmax(dim=-1)
        self.weights = weights.detach()
        weights = weights[..., :-1] if self.last else weights[..., 1:]
        return self.out((weights @ v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("padded", (False, True))
@pytest.mark.parametrize("shifted", (False, True))
@pytest.mark.parametrize("last", (True, False))
@pytest.mark.parametrize("length", (L, 1))
def test_the_sink_is_the_last_key_and_all_else_follows(last, shifted, padded, length):
    model = Attention(last, shifted).eval()
    mask = torch.zeros(N, length, dtype=torch.bool)
    mask[0, :2] = padded  # with one key, all of them: the sink takes everything
    recording = recorded(model, X[:, :length], mask)
    (trace,) = recording.traces
    own = (model.weights if last else model.weights.roll(-1, -1)).numpy()
    assert trace.shape == (N, H, length, length + 1)
    np.testing.assert_allclose(trace.weights, own, atol=1e-6)
    assert trace.key_tokens[0][-1] == "sink" and trace.num_positions == length
    assert trace.rules.bias.shape == (1, H, 1, length + 1) or padded
    assert (trace.tokens.positions == np.arange(length)).all()
    assert (trace.v[:, :, -1] == 0).all() and not trace.undefined.any()
    assert any('the column "sink", which multiplies no value' in note for note in recording.notes)
    opened = open_number(trace, 1, 3, length - 1, length)
    assert (opened.dot, opened.bias) == (0, 2) and opened.probability == pytest.approx(opened.weight, abs=1e-6)
    assert {check.name for check in checks(trace) if check.verdict == "fail"} == set()


def test_rules_stay_rules_beside_a_sink():
    (trace,) = recorded(Attention().eval(), X).traces
    assert trace.rules.causal and trace.rules.dense is None and trace.call.k.shape[1] == 2


def test_files_and_filters_keep_it(tmp_path):
    model = Attention().eval()
    whole = recorded(model, X).traces[0]
    recording = recorded(model, X, filters={"items": 1, "max_length": 3})
    (trace,) = recording.traces
    assert trace.shape == (1, H, 3, 4) and trace.key_tokens[0] == ("0", "1", "2", "sink")
    np.testing.assert_allclose(trace.weights[0], whole.weights[1, :, :3][..., [0, 1, 2, L]], atol=1e-6)
    for file in ("a.safetensors", "a.npz"):
        recording.save(tmp_path / file)
        assert np.array_equal(mha_viz.load(tmp_path / file).traces[0].weights, trace.weights)


def test_it_is_the_same_pooled():
    (trace,) = recorded(Attention().eval(), X).traces
    for found in mha_viz.pooled(trace, shape=(L, L + 1)):
        weights = trace.mean_weights[0] if found.head is None else trace.weights[0, found.head]
        np.testing.assert_allclose(found.largest, weights, atol=1e-6)
    part = next(mha_viz.pooled(trace, [2], rows=(2, 4), columns=(3, L + 1))).largest
    np.testing.assert_allclose(part, trace.weights[0, 2, 2:4, 3:], atol=1e-6)


def test_it_stays_where_tokens_are_set_aside_or_joined():
    (trace,) = recorded(Attention().eval(), X).traces
    places = [0, 2, 3, 5]
    some = taken(trace, [1], [places])
    cells = trace.weights[1][:, places][..., [*places, L]]
    np.testing.assert_allclose(some.weights[0], cells / cells.sum(axis=-1, keepdims=True), atol=1e-6)
    assert some.key_tokens[0] == ("0", "2", "3", "5", "sink") and some.num_positions == 4
    words = joined(trace, [[0, 2, 5]] * N, [["a", "b", "c"]] * N)
    assert words.key_tokens[0] == ("a", "b", "c", "sink")
    np.testing.assert_allclose(
        words.weights[..., -1], np.add.reduceat(trace.weights[..., L], [0, 2, 5], 2) / [2, 3, 1], atol=1e-6
    )
    np.testing.assert_allclose(words.weights.sum(axis=-1), 1, atol=1e-6)


@pytest.mark.parametrize(
    "own",
    (
        lambda wide, v: wide.softmax(-1) @ torch.cat([v, torch.ones_like(v[:, :, :1])], dim=2),  # a value of its own
        lambda wide, v: (wide + torch.arange(L + 1.0)).softmax(-1)[..., :-1] @ v,
        lambda wide, v: wide.masked_fill(torch.arange(L + 1) == 0, -torch.inf).softmax(-1)[..., :-1] @ v,
        lambda wide, v: (wide / 2).softmax(-1)[..., :-1] @ v,
        lambda wide, v: wide.softmax(-1)[..., 1:] @ v,  # the first key is dropped, and the sink takes part
        lambda wide, v: torch.cat([wide, wide[..., -1:]], dim=-1).softmax(-1)[..., :-2] @ v,
    ),
)
def test_what_is_no_sink_runs_and_is_recorded_as_it_is_or_said_to_be_lost(own):
    kept = []

    def spied(wide, v):
        made = own(wide, v)
        kept.append(made)
        return made

    model = Attention(own=spied).eval()
    alone, said = model(X), None
    try:
        with mha_viz.record(model) as recording:
            watched = model(X)
    except Wrong as wrong:
        said = str(wrong)
    assert torch.equal(alone, watched)
    if said is None:
        (trace,) = recording.traces
        made = trace.weights[..., :L] @ trace.v.repeat(H // trace.v.shape[1], axis=1)[:, :, :L] if trace.has("v") else None
        assert made is None or np.allclose(made, kept[-1].detach(), atol=1e-5)
        assert any("so its maps are kept" in note for note in recording.notes) == (made is None)
    else:
        assert "Attention" in said and ("cannot be followed" in said or "not followed to a product" in said)
