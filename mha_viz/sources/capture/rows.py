"""Which tokens the queries and keys of one call are, read from what is known of their axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from mha_viz.core.tokens import Parts
from mha_viz.sources.capture.axes import Unclear, arranged, leaves

if TYPE_CHECKING:
    from jaxtyping import Int

    from mha_viz.sources.capture.axes import Axis, TensorAxis


Roots: TypeAlias = "tuple[Axis | None, Axis | None]"  # of the queries, of the keys


@dataclass(frozen=True, eq=False)
class Rows:
    """Which tokens the queries and keys of a call are, of the sequences that ``roots`` and ``families`` stand for,
    (of the queries, of the keys); None where that is not known. ``two`` says that these are two sequences, ``apart`` that queries do
    not stand at the keys in their order. ``parts`` say which part each batch item is, where the model
    parted its batch and that is known."""

    roots: Roots = (None, None)
    families: Roots = (None, None)
    queries: Int[np.ndarray, "#N L"] | None = None
    keys: Int[np.ndarray, "#N S"] | None = None
    two: bool = False
    apart: bool = False
    parts: Parts | None = None

    def of_some(self, items: Sequence[int], rows: int, keys: int) -> Rows:
        """The Rows of some items, and of the first ``rows`` queries and ``keys`` keys."""

        def part(array: np.ndarray | None, count: int) -> np.ndarray | None:
            return None if array is None else (array[items] if len(array) > 1 else array)[:, :count]

        parts = self.parts and self.parts.some(items)
        return replace(self, queries=part(self.queries, rows), keys=part(self.keys, keys), parts=parts)

    def positions(self) -> Int[np.ndarray, " L"] | None:
        """[L] the key at which each query stands, where both are of one sequence and alike in all items; else None."""
        if self.roots[0] is None or self.roots[0] is not self.roots[1] or self.queries is None or self.keys is None:
            return None
        if len(self.queries) > 1 or len(self.keys) > 1 or not np.isin(self.queries, self.keys).all():
            return None
        if (self.queries < 0).any() or (self.keys < 0).any():
            return None
        order = np.argsort(self.keys[0])
        places: Int[np.ndarray, " L"] = order[np.searchsorted(self.keys[0], self.queries[0], sorter=order)]
        return places

    def numbers(self, side: int) -> Int[np.ndarray, "#N rows"] | None:
        """[1|N, L or S] of side 0 or 1 where they are a part of a sequence, and not its first ones; None where they go without saying."""
        numbers = (self.queries, self.keys)[side]
        if numbers is None or (len(numbers) == 1 and np.array_equal(numbers[0], np.arange(numbers.shape[1]))):
            return None
        return numbers


def tokens_of(
    places: Sequence[TensorAxis],
    tensor: torch.Tensor,
    axes: Sequence[TensorAxis],
    items: Sequence[Axis],
    heads: Sequence[Axis],
    rows: Sequence[Axis],
) -> tuple[Axis | None, Int[np.ndarray, "#N rows"] | None]:
    """(root of the sequence, [1|N, L] which of its tokens each row is) of q or k, a ``tensor`` with ``axes``; (None, None) where it is
    not one sequence, or differs by head. ``places`` are its axes as Places knows them, ``rows`` the leaves of its rows."""
    if len(places) != len(axes):
        return None, None
    roots = {
        root for place, axis in zip(places, axes, strict=True) for root in _roots(leaves([place]), leaves([axis]), heads, rows)
    }
    if len(roots) != 1:
        return None, None
    (root,) = roots
    try:
        by_head = arranged(torch.from_numpy(numbers_of(places, root)), axes, [items, heads, rows])  # [1|N, 1|H, L]
    except Unclear:
        return root, None
    numbers = by_head[:, 0].numpy() if bool((by_head == by_head[:, :1]).all()) else None
    while root.root is not root:  # of rows that were moved, and parted then
        root, numbers = root.root, None if numbers is None else np.where(numbers < 0, -1, root.numbers[numbers])
    return root, numbers


def _roots(place: list[Axis], axis: list[Axis], heads: Sequence[Axis], rows: Sequence[Axis]) -> list[Axis]:
    """The roots of the leaves of ``place`` that are ``rows`` in ``axis``, the leaves of the same axis; where heads were folded into
    the axis of one query, which then has no leaf, of what stands beside them."""
    if not rows:
        ones = [leaf.root for leaf in place if leaf.size == 1]
        return ones if heads and heads[-1] in axis else []
    if not any(row in axis for row in rows):
        return []
    place, axis = ([leaf for leaf in side if leaf.size > 1] or side for side in (place, axis))
    if [leaf.size for leaf in place] != [leaf.size for leaf in axis]:
        return [leaf.root for leaf in place]
    return [leaf.root for leaf, own in zip(place, axis, strict=True) if own in rows]


def numbers_of(places: Sequence[TensorAxis], root: Axis) -> Int[np.ndarray, ...]:
    """Whole numbers with these axes, of size 1 where ``root`` is not among them: which token of it each cell is."""
    total = np.zeros([1] * len(places), int)
    for dim, place in enumerate(places):
        own = leaves([place])
        if any(leaf.root is root for leaf in own):
            vector = np.zeros(1, int)
            for leaf in own:
                step = leaf.numbers if leaf.root is root else np.zeros(leaf.size, int)
                vector = (vector[:, None] + step).ravel()
            shape = [1] * len(places)
            shape[dim] = -1
            total = total + vector.reshape(shape)
    return total
