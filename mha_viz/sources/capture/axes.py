"""Axes of tensors by what they are: followed through views, and put in an order of one's own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import torch
    from jaxtyping import Int


class Unclear(Exception):
    """Axes that cannot be followed."""


class Axis:
    """Something that a tensor counts along: batch items, heads, queries … A view may split it into ``parts``.

    Where it is a part of a longer one, ``root`` is that, and its places there begin at ``start`` and are ``stride`` apart, or are
    ``listed``, −1 for what is not of the root. The parts of a listed one have it as their root. ``born`` tells which of two was
    there first. ``ordered`` says that something was added which differs along it and not along the batch, as positions are.
    """

    count = itertools.count()
    level: int  # of torch.vmap, where it stands for one

    def __init__(
        self,
        size: int,
        root: Axis | None = None,
        start: int = 0,
        stride: int = 1,
        listed: Int[np.ndarray, " size"] | None = None,
    ) -> None:
        self.born = next(self.count)
        while listed is not None and root is not None and root.root is not root:  # a part of one that is listed itself
            listed, root = np.where(listed < 0, -1, root.numbers[listed]), root.root
        self.size, self.ordered = size, False
        self.listed: Int[np.ndarray, " size"] | None = listed
        self.parts: tuple[Axis, ...] = ()
        self.root: Axis = self if root is None else root
        self.start, self.stride = start, stride

    def split(self, size: int) -> tuple[Axis, Axis]:
        """Two parts, of ``size`` runs each as long as what is left."""
        rest = self.size // size
        root, start, stride = (self.root, self.start, self.stride) if self.listed is None else (self, 0, 1)
        parts = Axis(size, root, start, stride * rest), Axis(rest, root, 0, stride)
        self.parts = parts
        return parts

    @property
    def numbers(self) -> Int[np.ndarray, " size"]:
        """[size] its places in the root."""
        return self.start + np.arange(self.size) * self.stride if self.listed is None else self.listed

    def part(self, start: int, size: int, step: int) -> Axis:
        """The Axis of ``size`` of these places, every ``step``-th from ``start`` on."""
        if self.listed is not None:
            return Axis(size, self.root, listed=self.listed[start : start + size * step : step])
        return Axis(size, self.root, self.start + start * self.stride, self.stride * step)

    def taken(self, places: Int[np.ndarray, " count"]) -> Axis:
        """The Axis of these ``places``, whole numbers in any order, −1 for what is not known."""
        return Axis(len(places), self.root, listed=np.where(places < 0, -1, self.numbers[places]))

    def later(self, places: int) -> Axis:
        """The same so many places later in its root."""
        listed = None if self.listed is None else self.listed + places
        return Axis(self.size, self.root, self.start + places, self.stride, listed)

    @property
    def leaves(self) -> tuple[Axis, ...]:
        return tuple(leaf for part in self.parts for leaf in part.leaves) if self.parts else (self,)


TensorAxis: TypeAlias = tuple[Axis, ...]  # what one axis of a tensor counts along: several where they were joined
Axes: TypeAlias = list[TensorAxis]
Side: TypeAlias = "tuple[torch.Tensor, Axes]"  # a tensor and its axes


def leaves(axes: Iterable[TensorAxis]) -> list[Axis]:
    """The smallest known Axis objects of ``axes``, one tuple of them per axis of a tensor, in order."""
    return [leaf for axis in axes for part in axis for leaf in part.leaves]


def regroup(axes: Iterable[TensorAxis], shape: Sequence[int]) -> Axes:
    """The axes of a tensor with ``axes`` after it was viewed as ``shape``: joined, split (an Axis then has parts) or of size 1.

    Raises Unclear where ``shape`` cuts across an axis.
    """
    if 0 in shape:
        raise Unclear
    waiting = leaves(axes)
    result: Axes = []
    for i, size in enumerate(shape):
        taken: list[Axis] = []
        product = 1
        while product < size or _takes_a_one(waiting, taken, size, shape[i + 1 :]):
            if not waiting:
                raise Unclear
            leaf = waiting.pop(0)
            if size % (product * leaf.size):
                need = size // product
                if size % product or leaf.size % need:
                    raise Unclear
                leaf, rest = leaf.split(need)
                waiting.insert(0, rest)
            taken.append(leaf)
            product *= leaf.size
        result.append(tuple(taken))
    if any(leaf.size > 1 for leaf in waiting):
        raise Unclear
    return result


def _takes_a_one(waiting: Sequence[Axis], taken: Sequence[Axis], size: int, later: Sequence[int]) -> bool:
    """Whether an Axis of size 1 goes to an axis of ``size`` that is full: where it is for one, or no later axis is."""
    if not waiting or waiting[0].size != 1:
        return False
    ones = sum(leaf.size == 1 for leaf in waiting)
    return (size == 1 and not taken) or ones > sum(n == 1 for n in later)


def arranged(tensor: torch.Tensor, axes: Sequence[TensorAxis], groups: Sequence[Sequence[Axis]]) -> torch.Tensor:
    """``tensor`` with one axis per group of leaves, in this order; a group that it does not have is an axis of size 1.

    Where it has some of a group's leaves and is the same along the others, it is expanded along those.
    """
    split: list[Axis | None] = []
    sizes: list[int] = []
    for axis, size in zip(axes, tensor.shape, strict=True):
        own = leaves([axis])
        whole = math.prod(leaf.size for leaf in own) == size
        if not whole and size != 1:
            raise Unclear
        split += own
        sizes += [leaf.size for leaf in own] if whole else [1] * len(own)
        if not own:
            split.append(None)
            sizes.append(1)
    tensor = tensor.reshape(sizes)
    wanted = [leaf for group in groups for leaf in group]
    for i in reversed(range(len(split))):
        if split[i] not in wanted:
            if sizes[i] != 1:
                raise Unclear
            tensor = tensor.squeeze(i)
            del split[i]
    tensor = tensor.permute([split.index(leaf) for leaf in wanted if leaf in split])
    for i, leaf in enumerate(wanted):
        if leaf not in split:
            tensor = tensor.unsqueeze(i)
    start, spread = 0, list(tensor.shape)
    shape: list[int] = []
    for group in groups:
        part = tensor.shape[start : start + len(group)]
        if any(size > 1 for size in part):
            spread[start : start + len(group)] = [leaf.size for leaf in group]
        shape.append(math.prod(spread[start : start + len(group)]))
        start += len(group)
    return tensor.expand(spread).reshape(shape)
