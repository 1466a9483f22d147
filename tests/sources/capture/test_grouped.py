"""Heads that share keys, folded into the axis of queries: the reshape that follows tells them apart."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mha_viz
from tests.sources.capture.models import recorded

H, D, S = 4, 4, 6
GENERATOR = torch.Generator().manual_seed(0)
SEEN = torch.ones(1, 1, 1, S, dtype=torch.bool)


def by_hand(q, k, v):
    return (q @ k.transpose(-2, -1) / D**0.5).softmax(dim=-1) @ v


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=SEEN)


def einsum(q, k, v):
    weights = (torch.einsum("ngrd,ngsd->ngrs", q, k) / D**0.5).softmax(dim=-1)
    return torch.einsum("ngrs,ngsd->ngrd", weights, v)


OPENED = lambda y, N, L: y.reshape(N, H, L, D).transpose(1, 2).reshape(N, L, H * D)  # noqa: E731
JOINED = lambda y, N, L: y.reshape(N, L, H * D)  # noqa: E731, heads of one query


class Folded(nn.Module):
    """Attention of ``groups`` heads of keys whose query heads stand in the axis of queries, joined again by ``after``."""

    def __init__(self, attend, groups, after, projects=True):
        super().__init__()
        torch.manual_seed(0)
        self.attend, self.groups, self.after = attend, groups, after
        self.out = nn.Linear(H * D, H * D) if projects else nn.Identity()

    def forward(self, q, k, v):
        N, _, L, _ = q.shape
        return self.out(self.after(self.attend(q.reshape(N, self.groups, -1, D), k, v), N, L))


def inputs(N, L, groups):
    return [torch.randn(N, heads, length, D, generator=GENERATOR) for heads, length in ((H, L), (groups, S), (groups, S))]


def check(recording, q, k, v, groups):
    (trace,) = recording.traces
    expected = (q @ k.repeat_interleave(H // groups, dim=1).transpose(-2, -1) / D**0.5).softmax(dim=-1)  # [N, H, L, S]
    assert trace.shape == expected.shape and np.allclose(trace.weights, expected, atol=1e-6)
    assert trace.call.k.shape[1] == groups
    return trace


@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize("L", [1, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("attend", [by_hand, sdpa, einsum])
def test_the_reshape_that_follows_tells_heads_and_queries(attend, groups, L, N):
    q, k, v = inputs(N, L, groups)
    model = Folded(attend, groups, OPENED)
    trace = check(recorded(model, q, k, v), q, k, v, groups)
    assert np.array_equal(trace.call.out_weight, model.out.weight.detach())
    assert np.allclose(trace.output, model(q, k, v).detach(), atol=1e-5)


@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize("L", [1, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("attend", [by_hand, sdpa, einsum])
def test_the_reshape_alone_tells_heads_and_queries(attend, groups, L, N):
    q, k, v = inputs(N, L, groups)
    recording = recorded(Folded(attend, groups, lambda y, N, L: y.reshape(N, H, L, D), projects=False), q, k, v)
    check(recording, q, k, v, groups)
    chunks = groups == 1 and L == N == 3  # of one head's queries, as well
    assert bool(recording.notes) == chunks


@pytest.mark.parametrize("attend", [by_hand, sdpa, einsum])
def test_groups_joined_at_once_with_the_numbers_of_one_query(attend):
    q, k, v = inputs(3, 1, 2)
    trace = check(recorded(Folded(attend, 2, JOINED), q, k, v), q, k, v, 2)
    assert trace.call.out_weight is not None


def test_what_nothing_tells_is_said():
    q, k, v = inputs(1, 1, 1)
    recording = recorded(Folded(sdpa, 1, JOINED), q, k, v)
    (note,) = recording.notes
    assert recording.traces[0].shape == (1, 1, H, S) and "axis of 4 in q of shape (1, 1, 4, 4) is read as queries" in note


SINGLE = {
    "transposed": lambda y: y.transpose(1, 2).reshape(2, 4, 16),
    "squeezed": lambda y: y.squeeze(1),
    "opened": lambda y: y.view(2, 4, 1, 16).reshape(2, 4, 16),
}


@pytest.mark.parametrize("how", SINGLE)
def test_the_queries_of_one_head_stay_queries(how):
    class Single(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.out = nn.Linear(16, 16)

        def forward(self, x):
            x = x[:, None]  # [N, 1, L, E]
            return self.out(SINGLE[how](F.scaled_dot_product_attention(x, x, x)))

    with mha_viz.record(model := Single()) as recording:
        model(torch.randn(2, 4, 16, generator=GENERATOR))
    assert recording.traces[0].shape == (2, 1, 4, 4) and recording.notes == ()


def test_tokens_that_are_flattened_stay_queries():
    """[N, L, H, D] flattened to [N, L · H · D], as a classifier of all tokens takes it."""

    class Flat(nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x, x).transpose(1, 2).flatten(1)

    with mha_viz.record(model := Flat()) as recording:
        model(torch.randn(2, 4, 5, 4, generator=GENERATOR))
    assert recording.traces[0].shape == (2, 4, 5, 5) and "heads are taken to be" in recording.notes[0]


@pytest.mark.parametrize("attend", [by_hand, sdpa, einsum])
@pytest.mark.parametrize(
    "between", [lambda y: y * 2, lambda y: y.clone().mul_(0.5), lambda y: F.layer_norm(y, (D,)), lambda y: F.dropout(y, 0.5)]
)
def test_what_scales_the_result_first_hides_no_heads_and_is_no_output_of_the_projection(between, attend):
    q, k, v = inputs(1, 1, 2)
    trace = check(recorded(Folded(attend, 2, lambda y, N, L: OPENED(between(y), N, L)), q, k, v), q, k, v, 2)
    assert not trace.has("output")


@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize("after", [lambda y, N, L: y.reshape(N, H, D), lambda y, N, L: y.flatten(1, 2)[:, :, None]])
def test_heads_and_queries_in_one_axis_are_said_to_be_in_doubt(after, N):
    recording = recorded(Folded(sdpa, 2, after, projects=False), *inputs(N, 1, 2))
    (note,) = recording.notes
    assert f"the axis of 2 in q of shape ({N}, 2, 2, 4) is read as queries" in note


@pytest.mark.parametrize(
    "after", [lambda y, N, L: y.transpose(1, 2).reshape(N * L, H, D), lambda y, N, L: y.transpose(1, 2).reshape(-1, H * D)]
)
def test_tokens_of_all_items_side_by_side_leave_no_doubt(after):
    recording = recorded(Folded(sdpa, H, after, projects=False), *inputs(2, 3, H))
    assert not any("read as queries" in note for note in recording.notes)
    assert recording.traces[0].shape == (2, H, 3, S)
