"""Axes are followed through views, whatever they join or split."""

import pytest
import torch

from mha_viz.sources.capture.axes import Axis, Unclear, arranged, leaves, regroup


def axes(*sizes):
    return [(Axis(size),) for size in sizes]


def test_joined_axes_come_apart_again():
    n, h, rows, d = start = axes(2, 3, 4, 5)
    joined = regroup(start, (6, 4, 5))
    assert leaves([joined[0]]) == [*n, *h]
    assert regroup(joined, (2, 3, 20)) == [n, h, (*rows, *d)]


def test_one_axis_is_split_for_all_that_have_it():
    both = axes(6, 4)
    n, h, _ = regroup(both, (2, 3, 4))
    assert leaves([both[0]]) == [*n, *h]
    tensor = torch.arange(24).view(6, 4)
    assert torch.equal(arranged(tensor, both, [h, n, both[1]]), tensor.view(2, 3, 4).transpose(0, 1))


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1, 5), (5,)])
def test_axes_of_one_neither_block_nor_shift_the_others(shape):
    one, five = axes(1, 5)
    assert [leaves([axis])[-1:] == list(five) for axis in regroup([one, five], shape)].count(True) == 1


def test_a_view_across_axes_is_unclear():
    for shape in ((3, 4), (0,), (6,)):
        with pytest.raises(Unclear):
            regroup(axes(2, 6), shape)


def test_what_an_axis_is_broadcast_along_stays_one():
    n, h, s = axes(2, 3, 4)
    mask = torch.zeros(1, 4)
    assert arranged(mask, [h, s], [n, h, s]).shape == (1, 1, 4)
    assert arranged(torch.zeros(2, 1, 4), [n, h, s], [(*n, *h), s]).shape == (6, 4)
