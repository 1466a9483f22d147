"""The axes of products as einsum and matmul name them, and rows that an index picks."""

import numpy as np
import pytest
import torch

from mha_viz.sources.capture.nonfinite import _tensors
from mha_viz.sources.capture.picked import places_in
from mha_viz.sources.capture.products import _of_equation, _of_matmul
from mha_viz.sources.capture.scores import number

Q, K = torch.zeros(2, 3, 4), torch.zeros(2, 5, 4)


@pytest.mark.parametrize("equation", ["nld,nsd->nls", "nld, nsd -> nls"])
def test_an_equation_names_each_axis(equation):
    assert _of_equation(equation, (Q, K)) == [[*"nld"], [*"nsd"], [*"nls"]]


def test_what_an_equation_leaves_out_is_what_einsum_makes_of_it():
    assert _of_equation("nld,nsd", (Q, K))[2] == [*"ls"]
    one, other, out = _of_equation("...ld,...sd->...ls", (Q, K))
    assert one[0] == other[0] == out[0] and [one[1:], other[1:], out[1:]] == [[*"ld"], [*"sd"], [*"ls"]]


@pytest.mark.parametrize(("equation", "operands"), [("nld->nl", (Q,)), ("nll,nsd->ns", (torch.zeros(2, 3, 3), K))])
def test_no_product_of_two_with_each_axis_once_is_none(equation, operands):
    assert _of_equation(equation, operands) is None


def test_a_vector_has_no_rows_to_attend_from():
    assert _of_matmul(torch.zeros(4), torch.zeros(4, 5)) is None
    one, other, out = _of_matmul(Q, K.mT)
    assert one[-1] == other[-2] and [out[-2], out[-1]] == [one[-2], other[-1]]


@pytest.mark.parametrize("index", [[0, -1], torch.tensor([0, -1]), np.array([True, False, False, False, True])])
def test_an_index_picks_rows(index):
    assert places_in(index, 5).tolist() == [0, 4]


def test_an_index_without_numbers_here_picks_nobody_knows_what():
    assert places_in(torch.zeros(2, dtype=torch.long, device="meta"), 5).tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("value", "found"), [(torch.tensor([2.0]), 2.0), (torch.zeros(2), None), (3, 3.0), (0.5, 0.5), (True, None), ("3", None)]
)
def test_a_number_is_one_or_a_tensor_of_one(value, found):
    assert number(value) == found


def test_tensors_are_found_in_dicts_and_lists():
    given = {"a": [Q, (K, 3)], "b": {"c": Q}, "d": "text"}
    assert [tensor.shape for tensor in _tensors(given)] == [Q.shape, K.shape, Q.shape]
