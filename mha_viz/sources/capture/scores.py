"""Scores on their way from the product of queries and keys to softmax: scaled, hidden, added to, or changed by something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import torch

from mha_viz.sources.capture.axes import Axis, Unclear, arranged, leaves
from mha_viz.sources.capture.beneath import batched, plain
from mha_viz.sources.capture.masks import FILLED, joined, of_floats, symbolic, together, version
from mha_viz.sources.capture.products import Product

if TYPE_CHECKING:
    from torch import Tensor

    from mha_viz.core.mask import Mask
    from mha_viz.sources.capture.axes import Axes, Side, TensorAxis
    from mha_viz.sources.capture.beneath import Args, Kwargs
    from mha_viz.sources.capture.masks import Memory

JOINED = {"cat", "concat", "concatenate"}
T = TypeVar("T")
Groups: TypeAlias = Sequence[Sequence[Axis]]  # the leaves of items, heads, queries and keys
LOW = -1e4  # a score that is set to this or less is hidden: its weight is 0 but where nothing else is left


Hidden: TypeAlias = "tuple[Tensor, Axes, bool, float]"
Bias: TypeAlias = "tuple[Tensor, Axes, float]"


@dataclass(eq=False)
class Sink:
    """A column of scores beside those of the keys, which takes part in the softmax and multiplies no value: ``tensor`` with its ``axes``.

    ``keys`` are the axis of the keys, ``wide`` that of keys and sink, on which the keys begin at ``start``: 1 where the sink is first.
    """

    tensor: torch.Tensor
    axes: Axes
    keys: Axis
    wide: Axis
    start: int


@dataclass(eq=False)
class Scores:
    """What became of a Product: its ``axes``, its ``scale``, and what was hidden and added.

    ``hidden`` are (bool tensor, its axes, what it is where keys are seen, the value that hides others), ``bias`` (tensor of floats,
    its axes, the factor that it is added with), ``rules`` Masks, ``factors`` (tensor, its axes) that multiply. ``changed`` names an
    operator whose effect is not followed; ``axes`` is None after one that they cannot be followed through. ``sink`` is a Sink.
    """

    product: Product
    axes: Axes | None
    scale: float = 1.0
    hidden: list[Hidden] = field(default_factory=list)
    bias: list[Bias] = field(default_factory=list)
    rules: list[Mask] = field(default_factory=list)
    factors: list[Side] = field(default_factory=list)
    changed: str | None = None
    sink: Sink | None = None

    @property
    def known_axes(self) -> Axes:
        """The axes; raises Unclear after an operator that they cannot be followed through."""
        if self.axes is None:
            raise Unclear
        return self.axes

    def after(self, name: str, args: Args, kwargs: Kwargs, tensor: Tensor, shape: torch.Size) -> Scores:
        """These Scores, which are ``tensor``, after an operator that is no view and gives something of this ``shape``."""
        if shape != tensor.shape:
            sunk = self._sunk(args, kwargs, tensor, shape) if name in JOINED else None
            return sunk or replace(self, axes=None, changed=name)
        values = [*args, *kwargs.values()]
        others = [value for value in values if value is not tensor]
        first = values[0] is tensor
        after = None
        if name in ("mul", "multiply") or (name in ("div", "divide", "true_divide") and first):
            after = self._scaled(others[0], divide=name not in ("mul", "multiply"))
        elif name == "add" or (name in ("sub", "subtract") and first):
            after = self.added(others[0], kwargs.get("alpha", 1) * (1 if name == "add" else -1))
        elif name == "masked_fill":
            after = self.filled(*others[:2])
        elif name == "where" and len(values) == 3:
            where_true = values[1] is tensor or first
            condition, other = (values[1] if first else values[0]), (values[2] if where_true else values[1])
            after = self.filled(condition, other, shown=where_true)
        return after or replace(self, changed=name)

    def _sunk(self, args: Args, kwargs: Kwargs, tensor: Tensor, shape: torch.Size) -> Scores | None:
        """With a Sink, where these are joined with one column of scores; None where they are with something else."""
        parts: Sequence[Tensor] = kwargs["tensors"] if "tensors" in kwargs else args[0] if args else ()
        dim = kwargs.get("dim", args[1] if len(args) > 1 else 0)
        if self.sink is not None or len(parts) != 2 or not isinstance(dim, int):
            return None
        start = int(parts[1] is tensor)
        known = self.known_axes
        beside, own = parts[1 - start], known[dim % len(known)]
        if beside is tensor or beside.shape[dim] != 1 or len(own) != 1:
            return None
        axes, wide = list(known), Axis(shape[dim])
        axes[dim] = ()
        sink = Sink(*plain(beside, list(axes)), own[0], wide, start)
        axes[dim] = (wide,)
        return replace(self, axes=axes, sink=sink)

    def filled(self, mask: Tensor, value: Tensor | float, shown: bool = False) -> Scores | None:
        """With ``value`` where ``mask`` is not ``shown``; None where that is not so low that it hides."""
        most = float(plain(value)[0].max()) if isinstance(value, torch.Tensor) else value
        if most > LOW or self.sink is not None:
            return None
        return replace(self, hidden=[*self.hidden, (*plain(mask, last(self.known_axes, mask)), shown, most)])

    def added(self, other: Tensor | float, sign: float = 1) -> Scores | None:
        """With ``sign`` · ``other`` added, a number or a tensor of floats."""
        value = number(other)
        if value is not None and math.isfinite(value):
            return self  # softmax does not see what is added to a whole row
        other = other if isinstance(other, torch.Tensor) else self.product.sides[0][0].new_tensor([other])  # ∞ or NaN
        if not other.is_floating_point():
            return None
        sink = self.sink
        if sink is not None:  # such as the largest of a row, which is taken from all of it
            same = [
                i for i, axis in enumerate(reversed(self.known_axes)) if sink.wide in axis and other.shape[-1 - i :][:1] == (1,)
            ]
            return self if same and bool(plain(other)[0].isfinite().all()) else None
        return replace(self, bias=[*self.bias, (*plain(other, last(self.known_axes, other)), sign)])

    def assigned(self, tensor: Tensor, index: object, value: object) -> Scores:
        """After ``tensor[index] = value``, in place."""
        low, filled = number(value), None
        if isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.shape == tensor.shape:
            filled = None if low is None or self.axes is None else self.filled(plain(index)[0].clone(), low)
        return filled or replace(self, changed="an assignment")

    def _scaled(self, other: Tensor | float, divide: bool) -> Scores | None:
        factor = number(other)
        if self.sink is not None:
            return self if factor == 1 else None
        if (
            isinstance(other, torch.Tensor)
            and factor is None
            and not self.hidden
            and not self.bias
            and other.is_floating_point()
        ):
            factors, axes = plain(other, last(self.known_axes, other))
            return replace(self, factors=[*self.factors, (factors.reciprocal() if divide else factors, axes)])
        if factor is None or (self.hidden and factor <= 0):
            return None
        factor = 1 / factor if divide else factor
        return replace(
            self, scale=self.scale * factor, bias=[(tensor, axes, sign * factor) for tensor, axes, sign in self.bias]
        )


@dataclass(eq=False)
class Weights:
    """Scores after softmax over ``keys``, which gave ``given``, (tensor, its axes); ``axes`` are those of what became of it.

    ``version`` is that of the tensor as softmax left it. ``changed`` names the operators that changed the weights afterwards, and
    ``last`` is what they gave, (tensor, its axes); ``dropped`` says that dropout fell on them.
    """

    scores: Scores
    keys: Axis
    given: Side
    axes: Axes
    version: int | None = None
    changed: tuple[str, ...] = ()
    last: Side | None = None
    dropped: bool = False

    def __post_init__(self) -> None:
        self.version = version(self.given[0]) if self.version is None else self.version

    def after(self, name: str, output: Tensor) -> Weights:
        """These Weights after an operator changed them, which gave ``output`` or worked in place."""
        names = dict.fromkeys((*self.changed, *["dropout"] * self.dropped, name))
        return replace(self, changed=tuple(names), last=plain(output, self.axes))

    def without_sink(self, axes: Axes) -> Weights | None:
        """These Weights where all but the Sink is left of them, as ``axes`` tell; None where something else is."""
        sink = self.scores.sink
        if sink is None or self.keys is not sink.wide:
            return None
        place = next((i for i, axis in enumerate(self.axes) if sink.wide in axis), None)
        if (
            place is None
            or len(axes) != len(self.axes)
            or axes[:place] + axes[place + 1 :] != self.axes[:place] + self.axes[place + 1 :]
        ):
            return None
        left = leaves([axes[place]])
        if len(left) != 1 or left[0].root is not sink.wide or (left[0].start, left[0].size) != (sink.start, sink.keys.size):
            return None
        axes = [*self.axes[:place], (sink.keys,), *self.axes[place + 1 :]]
        return replace(self, scores=replace(self.scores, axes=axes), keys=sink.keys, axes=axes)

    @property
    def sides(self) -> tuple[Side, Side]:
        """((q, its axes), (k, its axes)): k is the side that softmax runs over."""
        one, other = self.scores.product.sides
        return (other, one) if any(self.keys in axis for axis in one[1]) else (one, other)


def number(value: object) -> float | None:
    """A number, or a tensor of one, as a float; None for anything else."""
    if isinstance(value, torch.Tensor):
        return float(plain(value)[0]) if value.numel() == 1 and not batched(value) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def last(axes: Sequence[TensorAxis], tensor: Tensor) -> Axes:
    """The axes that ``tensor`` has where it is broadcast to one with ``axes``."""
    more = max(tensor.dim() - len(axes), 0)
    if any(size > 1 for size in tensor.shape[:more]):
        raise Unclear
    return [*[()] * more, *axes[len(axes) + more - tensor.dim() :]]


def mask_of(memory: Memory, scores: Scores, groups: Groups, absorbs: bool) -> Mask:
    """The Mask of the scores, for the leaves of N, H, L and S; ``absorbs`` says that masks are added in the dtype of the scores."""
    L, S = (math.prod(leaf.size for leaf in group) for group in groups[2:])
    places = {leaf: place for place, leaf in enumerate(leaf for group in groups for leaf in group)}
    sizes = tuple(tuple(leaf.size for leaf in group) for group in groups)

    def remembered(make: Callable[..., T], tensor: Tensor, axes: Axes, *how: float) -> T:
        arrangement = tuple(tuple(places.get(leaf) for leaf in leaves([axis])) for axis in axes)
        return memory.of(tensor, (make, how, arrangement, sizes), lambda: make(arranged(tensor, axes, groups), L, S, *how))

    filled = [remembered(_mask_of_bools, *hidden[:3]) for hidden in scores.hidden if hidden[3] > float("-inf")]
    found = [joined(filled, FILLED)] if filled else []
    found += [remembered(_mask_of_bools, *hidden[:3]) for hidden in scores.hidden if hidden[3] == float("-inf")]
    for tensor, axes, factor in scores.bias:
        found += remembered(_masks_of_floats, tensor, axes, factor, absorbs and tensor.dtype == torch.float16)
    return together([symbolic(L, S), *scores.rules, *found], scores.product.sides[0][0].dtype)


def _mask_of_bools(mask: Tensor, L: int, S: int, shown: bool) -> Mask:
    return symbolic(L, S, mask.bool() != shown)


def _masks_of_floats(added: Tensor, L: int, S: int, factor: float, absorbs: bool) -> tuple[Mask, ...]:
    return of_floats(added * factor if factor != 1 else added, L, S, absorbs=absorbs)
