"""Calls of attention that are kept, and which of them a person wants."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import torch

from mha_viz.core.rules import Wrong, whole


@dataclass(eq=False)
class Kept:
    """One call as it is kept: what a Call needs but the tokens. ``full`` is (N, L, S) before filters, S without extra columns."""

    name: str
    step: int
    order: int
    full: tuple[int, int, int]
    arrays: dict
    mask: object
    scale: float | None
    one_sequence: bool
    extra: tuple[str, ...]
    query_padding: np.ndarray | None
    dtype: torch.dtype
    without_key: str = "nan"
    places: object = None  # Rows
    out: tuple = (None, None)
    trouble: object = None


@dataclass
class Filters:
    """Which calls are kept, and how much of each; everything where None."""

    layers: tuple[str, ...] | None = None
    items: tuple[int, ...] | None = None
    steps: object = None
    max_length: int | None = None

    @classmethod
    def checked(cls, layers, items, steps, max_length):
        """From what a person gives: a pattern or several, a number or several; raises Wrong for anything else."""
        if layers is not None:
            rule = 'must be a name of a module or several, "*" standing for any text: "encoder.*".'
            layers = (layers,) if isinstance(layers, str) else _each("layers", layers, rule)
            if not all(isinstance(pattern, str) for pattern in layers):
                raise Wrong("layers", layers, rule)
        items, steps = (_numbers(name, value) for name, value in (("items", items), ("steps", steps)))
        return cls(layers, items, steps, None if max_length is None else whole("max_length", max_length, 1))

    def takes(self, name):
        return self.layers is None or any(fnmatchcase(name, pattern) for pattern in self.layers)


def _numbers(name, value):
    if value is None or isinstance(value, range):
        return value
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return tuple(whole(name, number, 0) for number in _each(name, value, "must be a whole number, or several."))
    return (whole(name, value, 0),)


def _each(name, value, rule):
    """What ``value`` holds, in its order or in none; raises Wrong with this ``rule`` where it holds nothing."""
    try:
        return tuple(value)
    except TypeError:  # a number, an array without axes, a class
        raise Wrong(name, value, rule) from None
