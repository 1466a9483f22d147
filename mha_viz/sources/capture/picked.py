"""Axes of a tensor after some of its rows were picked: by a list of places, from one place to another, or one alone."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import torch

from mha_viz.sources.capture.axes import Axis, leaves
from mha_viz.sources.capture.beneath import has_numbers
from mha_viz.sources.capture.rows import numbers_of

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

    from mha_viz.sources.capture.axes import Axes, TensorAxis


def size_of(axis: TensorAxis) -> int:
    return int(np.prod([leaf.size for leaf in leaves([axis])], dtype=int))


def is_list(index: object) -> TypeGuard[list[int] | Tensor | np.ndarray]:
    """True of what picks rows one by one along one axis."""
    return isinstance(index, list) or (isinstance(index, torch.Tensor | np.ndarray) and index.ndim == 1)


def places_in(index: list[int] | Tensor | np.ndarray, size: int) -> Int[np.ndarray, " count"]:
    """Whole numbers from 0, the rows of ``size`` that ``index`` picks; −1 each where it cannot be read without waiting for a device."""
    if isinstance(index, torch.Tensor):
        if type(index) is not torch.Tensor or index.device.type != "cpu" or not has_numbers(index):
            return np.full(index.shape[0], -1)
        index = index.numpy()
    picked = np.asarray(index)
    return np.flatnonzero(picked) if picked.dtype == bool else picked.astype(int) % size


def take(axis: TensorAxis, places: Int[np.ndarray, " count"]) -> TensorAxis:
    own = _one(axis)
    return (Axis(len(places)) if own is None else own.taken(places),)


def cut(axis: TensorAxis, start: int, size: int, step: int) -> TensorAxis:
    if size == size_of(axis) and step == 1:
        return axis
    own = _one(axis)
    return (Axis(size) if own is None else own.part(start, size, step),)


def _one(axis: TensorAxis) -> Axis | None:
    """The leaf of ``axis``; of several that are parts of one sequence an Axis in their place. None where they are of more than one."""
    merged = merge(axis)
    return merged[0] if len(merged) == 1 else None


def merge(axis: TensorAxis) -> TensorAxis:
    """``axis`` with one leaf in place of neighbours that are parts of one sequence: what parts it from now on parts nothing else."""
    merged: list[Axis] = []
    for root, group in itertools.groupby(leaves([axis]), key=lambda leaf: leaf.root):
        own = tuple(group)
        if len(own) == 1:
            merged += own
            continue
        numbers = numbers_of([own], root)
        steps = np.diff(numbers)
        stride = int(steps[0]) if steps.size else 1
        if (numbers < 0).any() or (steps != stride).any():
            merged.append(Axis(len(numbers), root, listed=numbers))
        else:
            merged.append(Axis(len(numbers), root, int(numbers[0]), stride))
    return tuple(merged)


def select(axes: Axes, dim: int, index: int) -> Axes:
    """``axes`` without ``dim``, at ``index`` of it: what is left of its sequence begins that much later."""
    own = leaves([axes.pop(dim)])
    if len(own) != 1:
        return axes
    (leaf,) = own
    for i, axis in enumerate(axes):
        for other in leaves([axis]):
            if other.root is leaf.root:
                moved = other.later(leaf.start + index * leaf.stride)
                axes[i] = tuple(moved if one is other else one for one in leaves([axis]))
                return axes
    return axes
