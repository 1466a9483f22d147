"""Where numbers first went wrong among the arrays of a call, and in the backward pass."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mha_viz.core.maps import trace_of_maps
from mha_viz.sources.capture.nonfinite import Found, Trouble, cause_of, finite, trouble

GOOD, BAD = np.zeros((1, 2, 3, 4)), np.zeros((1, 2, 3, 4))
BAD[0, 1, 2, 0] = np.nan
TRACE = trace_of_maps([[[[0.5, 0.5], [1.0, 0.0]]]])
NO_KEY = trace_of_maps([[[[0.5, 0.5], [np.nan, np.nan]]]])
CALL = SimpleNamespace(name="layers.0.attn", order=3, dtype=torch.float32)


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_the_first_array_that_is_not_finite_is_named_with_its_place(name):
    assert trouble({"q": GOOD, "k": GOOD, "v": GOOD} | {name: BAD}) == Trouble(name, 0, 1, 2)


def test_weights_come_before_the_result_and_a_result_has_no_head():
    weights, result = torch.zeros(1, 2, 3, 3), torch.zeros(1, 3, 4)
    assert trouble({"q": GOOD}, weights, result) is None
    result[0, 1, 0] = torch.inf
    assert trouble({}, weights, result) == Trouble("result", 0, None, 1)
    weights[0, 1, 2, 0] = torch.nan
    assert trouble({}, weights, result) == Trouble("weights", 0, 1, 2)


def test_whole_numbers_are_finite():
    assert finite(torch.tensor([1, 2])) and not finite(torch.tensor([1.0, torch.nan]))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("input", "The model's input is not finite: x holds NaN or an infinite number."),
        ("parameter", "The parameter x held NaN or an infinite number before this step began."),
        ("output", "All attention is finite, and the model's output is not: it became so elsewhere, after layers.0.attn."),
    ],
)
def test_what_is_no_call_is_said_by_its_kind(kind, said):
    cause = cause_of(Found(kind, "x", {}, None), [CALL], [TRACE])
    assert (cause.trace, cause.sentence) == (None, said)


@pytest.mark.parametrize("tensor", ["q", "k", "v"])
def test_what_came_in_wrong_has_its_cause_before_the_call(tensor):
    cause = cause_of(Found("call", "x", {}, (CALL, Trouble(tensor, 0, 0, 1))), [CALL], [TRACE])
    assert cause.sentence.endswith("were not finite when they came in; the cause lies before this attention.")
    assert cause.query == (1 if tensor == "q" else None)


@pytest.mark.parametrize(
    ("tensor", "head", "said"), [("weights", 0, "the weights are not finite"), ("result", None, "projection overflow")]
)
def test_a_call_that_goes_wrong_by_itself_is_said_with_its_query(tensor, head, said):
    cause = cause_of(Found("call", "x", {}, (CALL, Trouble(tensor, 0, head, 1))), [CALL], [TRACE])
    assert said in cause.sentence and "query 1" in cause.sentence


@pytest.mark.parametrize("head", [0, None])
def test_a_query_without_a_key_is_the_cause(head):
    cause = cause_of(Found("call", "x", {}, (CALL, Trouble("weights", 0, head, 1))), [CALL], [NO_KEY])
    assert (cause.trace, cause.item, cause.query) == (0, 0, 1)


@pytest.mark.parametrize(
    ("name", "arrived", "trace", "index"),
    [
        ("layers.0.attn.in_proj_weight", {3: True}, TRACE, 0),
        ("layers.0.attn.in_proj_weight", {3: True}, NO_KEY, 0),
        ("layers.0.attn.in_proj_weight", {3: False}, TRACE, None),
        ("layers.1.attn.in_proj_weight", {3: True}, TRACE, None),
    ],
)
def test_a_gradient_went_wrong_in_the_last_call_that_it_reached_finite(name, arrived, trace, index):
    cause = cause_of(Found("gradient", name, arrived, None), [CALL], [trace])
    assert cause.trace == index and cause.sentence.startswith("Backward:") and name in cause.sentence
