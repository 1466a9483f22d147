"""Scores on their way from the product of queries and keys to softmax: scaled, hidden, added to, or changed by something else."""

import math
from dataclasses import dataclass, field, replace

import torch

from mha_viz.sources.capture.axes import Axis, Unclear
from mha_viz.sources.capture.beneath import batched, plain
from mha_viz.sources.capture.masks import version
from mha_viz.sources.capture.products import Product

LOW = -1e4  # a score that is set to this or less is hidden: its weight is 0 but where nothing else is left


@dataclass(eq=False)
class Scores:
    """What became of a Product: its ``axes``, its ``scale``, and what was hidden and added.

    ``hidden`` are (bool tensor, its axes, what it is where keys are seen, the value that hides others), ``bias`` (tensor of floats,
    its axes, the factor that it is added with), ``rules`` Masks, ``factors`` (tensor, its axes) that multiply. ``changed`` names an
    operator whose effect is not followed; ``axes`` is None after one that they cannot be followed through.
    """

    product: Product
    axes: list | None
    scale: float = 1.0
    hidden: list = field(default_factory=list)
    bias: list = field(default_factory=list)
    rules: list = field(default_factory=list)
    factors: list = field(default_factory=list)
    changed: str | None = None

    def after(self, name, args, kwargs, tensor, shape):
        """These Scores, which are ``tensor``, after an operator that is no view and gives something of this ``shape``."""
        if shape != tensor.shape:
            return replace(self, axes=None, changed=name)
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

    def filled(self, mask, value, shown=False):
        """With ``value`` where ``mask`` is not ``shown``; None where that is not so low that it hides."""
        most = float(plain(value)[0].max()) if isinstance(value, torch.Tensor) else value
        if most > LOW:
            return None
        return replace(self, hidden=[*self.hidden, (*plain(mask, last(self.axes, mask)), shown, most)])

    def added(self, other, sign=1):
        """With ``sign`` · ``other`` added, a number or a tensor of floats."""
        value = number(other)
        if value is not None and math.isfinite(value):
            return self  # softmax does not see what is added to a whole row
        other = other if isinstance(other, torch.Tensor) else self.product.sides[0][0].new_tensor([other])  # ∞ or NaN
        if not other.is_floating_point():
            return None
        return replace(self, bias=[*self.bias, (*plain(other, last(self.axes, other)), sign)])

    def _scaled(self, other, divide):
        factor = number(other)
        if factor is None and not self.hidden and not self.bias and other.is_floating_point():
            other, axes = plain(other, last(self.axes, other))
            return replace(self, factors=[*self.factors, (other.reciprocal() if divide else other, axes)])
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
    given: tuple
    axes: list
    version: int | None = None
    changed: tuple = ()
    last: tuple | None = None
    dropped: bool = False

    def __post_init__(self):
        self.version = version(self.given[0]) if self.version is None else self.version

    def after(self, name, output):
        """These Weights after an operator changed them, which gave ``output`` or worked in place."""
        names = dict.fromkeys((*self.changed, *["dropout"] * self.dropped, name))
        return replace(self, changed=tuple(names), last=plain(output, self.axes))

    @property
    def sides(self):
        """((q, its axes), (k, its axes)): k is the side that softmax runs over."""
        one, other = self.scores.product.sides
        return (other, one) if any(self.keys in axis for axis in one[1]) else (one, other)


def number(value):
    """A number, or a tensor of one, as a float; None for anything else."""
    if isinstance(value, torch.Tensor):
        return float(plain(value)[0]) if value.numel() == 1 and not batched(value) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def last(axes, tensor):
    """The axes that ``tensor`` has where it is broadcast to one with ``axes``."""
    more = max(tensor.dim() - len(axes), 0)
    if any(size > 1 for size in tensor.shape[:more]):
        raise Unclear
    return [()] * more + list(axes[len(axes) + more - tensor.dim() :])
