"""Calls of attention that are kept, and which of them a person wants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from mha_viz.core.rules import Wrong, whole
from mha_viz.sources.capture.rows import Rows

if TYPE_CHECKING:
    from jaxtyping import Bool

    from mha_viz.core.call import WithoutKey
    from mha_viz.core.mask import Mask


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
