"""Batch items that are windows of a model's own: which of them each is, read from what is known of the axes of q."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from mha_viz.core.tokens import Parts
from mha_viz.sources.capture.axes import Unclear, arranged, leaves

if TYPE_CHECKING:
    from jaxtyping import Int

    from mha_viz.sources.capture.axes import Axis, TensorAxis

KINDS = {
    1: ("block", "item"),
    2: ("window", "image"),
}  # by how many axes a window is counted along: what it and its whole are called


def windows_of(
    places: Sequence[TensorAxis],
    axes: Sequence[TensorAxis],
    items: Sequence[Axis],
    heads: Sequence[Axis],
    rows: Sequence[Axis],
    N: int,
) -> Parts | None:
    """The Parts that the N items of q, a tensor with ``axes``, are; None where the program does not show that they are any.

    ``places`` are its axes as Places knows them; ``items``, ``heads`` and ``rows`` the leaves of its items, heads and queries. Items are
    windows where they count along the same sequence, or the same sides of a grid, as the queries do.
    """
    if len(places) != len(axes):
        return None
    own, queries = [], []
    for dim, (place, axis) in enumerate(zip(places, axes, strict=True)):
        own_leaves = [(leaf, dim) for leaf in leaves([place]) if leaf.size > 1]
        here = leaves([axis])
        own += own_leaves if any(leaf in here for leaf in items) else []
        queries += own_leaves if any(leaf in here for leaf in rows) else []
    roots = {leaf.root for leaf, _ in queries}
    counted = [leaf for leaf, _ in own if leaf.root in roots]
    if not counted or any(leaf in counted for leaf, _ in queries):
        return None
    try:
        indices = {leaf: _index(places, leaf, dim, axes, (items, heads, rows), N) for leaf, dim in own}  # [N] each
    except Unclear:
        return None
    if any(index is None for leaf, index in indices.items() if leaf in counted):
        return None
    whole = np.zeros(N, int)
    for leaf, index in indices.items():
        if leaf not in counted and index is not None:  # None of a leaf that counts heads
            whole = whole * leaf.size + index
    kind, of = KINDS.get(len(counted), ("window", "item"))
    if all(_stride(counted, leaf.root) < _stride([leaf for leaf, _ in queries], leaf.root) for leaf in counted):
        kind = f"grid {kind}"  # whose tokens are far apart, as many as there are windows
    if any(_moved(leaf) for leaf in counted):
        kind = f"shifted {kind}"
    return Parts(kind, of, tuple(tuple(map(int, at)) for at in zip(whole, *(indices[leaf] for leaf in counted), strict=True)))


def _index(
    places: Sequence[TensorAxis], leaf: Axis, dim: int, axes: Sequence[TensorAxis], groups: Sequence[Sequence[Axis]], N: int
) -> Int[np.ndarray, " N"] | None:
    """[N]: where along ``leaf``, a part of axis ``dim``, each item is; None where heads or queries of an item are at several."""
    inner = leaves([places[dim]])
    after = math.prod(one.size for one in inner[inner.index(leaf) + 1 :])
    size = math.prod(one.size for one in inner)
    shape = [1] * len(places)
    shape[dim] = size
    found = arranged(
        torch.arange(size).div(after, rounding_mode="floor").remainder(leaf.size).view(shape), axes, groups
    )  # [1|N, 1|H, 1|L]
    if bool((found != found[:, :1, :1]).any()):
        return None
    return np.broadcast_to(found[:, 0, 0].numpy(), N)


def _stride(found: Sequence[Axis], root: Axis) -> int:
    """How far apart in ``root`` neighbours are along the nearest of these leaves of it."""
    return min(leaf.stride for leaf in found if leaf.root is root)


def _moved(leaf: Axis) -> bool:
    """True for a part of rows that were moved before they were parted, as by ``torch.roll``."""
    return leaf.root.listed is not None and len(set(np.diff(leaf.root.listed).tolist())) > 1
