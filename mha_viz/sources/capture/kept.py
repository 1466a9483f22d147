"""Calls of attention that are kept, what they take, and which of them a person wants."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from mha_viz.core.rules import Wrong, whole
from mha_viz.sources.capture.masks import version
from mha_viz.sources.capture.rows import Rows

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor

    from mha_viz.core.call import WithoutKey
    from mha_viz.core.mask import Mask


Projection: TypeAlias = "tuple[Tensor, Tensor | None]"  # weight [E, H·D], bias [E]
ProjectionKey: TypeAlias = tuple[Hashable, ...]  # where its tensors lie, and their versions
Picked: TypeAlias = range | tuple[int, ...]


@dataclass(eq=False)
class Kept:
    """One call as it is kept: what a Call needs but the tokens. ``full`` is (N, L, S) before filters, S without extra columns."""

    name: str
    step: int
    order: int
    full: tuple[int, int, int]
    arrays: dict[str, np.ndarray]
    mask: Mask
    scale: float | None
    one_sequence: bool
    extra: tuple[str, ...]
    query_padding: Bool[np.ndarray, "N L"] | None
    dtype: torch.dtype
    without_key: WithoutKey
    places: Rows
    out: tuple[np.ndarray | None, np.ndarray | None] = (None, None)


class Store:
    """The calls that are kept, and the bytes that they take: what several share, such as a mask, is counted once."""

    def __init__(self) -> None:
        self.calls: list[Kept] = []
        self.used = 0  # bytes
        self._counted: dict[int, np.ndarray] = {}  # by id
        self._projections: dict[ProjectionKey, tuple[Projection, tuple[np.ndarray, np.ndarray | None]]] = {}  # tensors, arrays

    def add(self, kept: Kept) -> None:
        """Keep a call."""
        self.calls.append(kept)
        for array in (*kept.arrays.values(), kept.mask.dense, kept.mask.bias):
            self._count(array)

    def add_projection(self, kept: Kept, weight: Tensor, bias: Tensor | None) -> None:
        """Keep the output projection, weight [E, H·D] and bias [E], of a call: once for all calls that it serves."""
        key = _key(weight, bias)
        if key not in self._projections:
            arrays = to_numpy(weight), None if bias is None else to_numpy(bias)
            self._projections[key] = (weight, bias), arrays
            for array in arrays:
                self._count(array)
        kept.out = self._projections[key][1]

    def size_of(self, weight: Tensor, bias: Tensor | None) -> int:
        """Bytes that this output projection would take besides: none where it is kept already."""
        return 0 if _key(weight, bias) in self._projections else weight.nbytes + (0 if bias is None else bias.nbytes)

    def clear(self) -> None:
        """Let go of everything."""
        self.calls.clear()
        self._counted.clear()
        self._projections.clear()
        self.used = 0

    def _count(self, array: np.ndarray | None) -> None:
        if array is not None and id(array) not in self._counted:
            self._counted[id(array)] = array
            self.used += array.nbytes


def _key(*tensors: Tensor | None) -> ProjectionKey:
    return tuple(None if t is None else (t.data_ptr(), t.shape, t.stride(), version(t)) for t in tensors)


def to_numpy(tensor: Tensor) -> np.ndarray:
    """A copy as NumPy in the tensor's own dtype; bfloat16, which NumPy has not, as float32: the same numbers in twice the bytes."""
    tensor = tensor.detach()
    array = np.array((tensor.float() if tensor.dtype is torch.bfloat16 else tensor).cpu().numpy(), order="C")
    array.flags.writeable = False
    return array


@dataclass
class Filters:
    """Which calls are kept, and how much of each; everything where None."""

    layers: tuple[str, ...] | None = None
    items: Picked | None = None
    steps: Picked | None = None
    max_length: int | None = None

    @classmethod
    def checked(cls, layers: object, items: object, steps: object, max_length: object) -> Filters:
        """From what a person gives: a pattern or several, a number or several; raises Wrong for anything else."""
        patterns: tuple[str, ...] | None = None
        if layers is not None:
            rule = 'must be a name of a module or several, "*" standing for any text: "encoder.*".'
            patterns = (layers,) if isinstance(layers, str) else _each("layers", layers, rule)
            if not all(isinstance(pattern, str) for pattern in patterns):
                raise Wrong("layers", patterns, rule)
        return cls(
            patterns,
            _numbers("items", items),
            _numbers("steps", steps),
            None if max_length is None else whole("max_length", max_length, 1),
        )

    def takes(self, name: str) -> bool:
        return self.layers is None or any(fnmatchcase(name, pattern) for pattern in self.layers)


def _numbers(name: str, value: object) -> Picked | None:
    if value is None or isinstance(value, range):
        return value
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return tuple(whole(name, number, 0) for number in _each(name, value, "must be a whole number, or several."))
    return (whole(name, value, 0),)


def _each(name: str, value: Any, rule: str) -> tuple[Any, ...]:
    """What ``value`` holds, in its order or in none; raises Wrong with this ``rule`` where it holds nothing."""
    try:
        return tuple(value)
    except TypeError:  # a number, an array without axes, a class
        raise Wrong(name, value, rule) from None
