"""The rules that values have to keep, and the one error that says which was broken, by what, and what would be right."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from types import UnionType
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from mha_viz.core.typed_number import meant, read_number

T = TypeVar("T")
Change: TypeAlias = dict[str, Any]  # arguments by name, with values that would keep the rule
FILLED_IN: Any = None  # the default of a field that may be given as None, and never holds it once its object is made


class Shape(tuple[int, ...]):
    """The shape of an array, in place of the array: what a Wrong shows, and what it advises."""


class Wrong(ValueError):
    """A value that breaks a rule.

    ``argument`` and ``value`` say what was given, ``rule`` what has to hold, and each entry of ``nearest`` is a dict of
    arguments that would keep the rule, nearest first: a page turns each into one button.

    >>> import mha_viz as mv
    >>> try:
    ...     mv.Settings(embed_dim=130)
    ... except mv.Wrong as wrong:
    ...     print(wrong.argument, wrong.value, wrong.rule, wrong.nearest[0], sep="; ")
    num_heads; 8; embed_dim must be divisible by num_heads, but 130 = 8 × 16 + 2.; {'num_heads': 5}
    """

    def __init__(self, argument: str, value: object, rule: str, nearest: Iterable[Change] = ()) -> None:
        self.argument, self.value, self.rule, self.nearest = argument, value, rule, tuple(nearest)
        super().__init__(f"{_told(argument, value)}: {rule}{self.advice}")

    def __reduce__(
        self,
    ) -> tuple[
        type[Wrong], tuple[str, object, str, tuple[Change, ...]]
    ]:  # exceptions are rebuilt from .args, which hold the sentence alone
        return type(self), (self.argument, self.value, self.rule, self.nearest)

    @property
    def advice(self) -> str:
        """The nearest right values as a sentence, a space before it; no text where there are none."""
        choices = [", ".join(_told(name, value) for name, value in change.items()) for change in self.nearest]
        return f" Nearest right: {' or '.join(choices)}." if choices else ""


def _told(argument: str, value: object) -> str:
    if isinstance(value, Shape):
        return f"{argument} of shape {tuple(value)}"
    if isinstance(value, np.dtype):
        return f"{argument} of type {value}"
    text = repr(value.item() if isinstance(value, np.generic) else value).replace("\n", "")
    return f"{argument} = {text if len(text) <= 60 else text[:57] + '…'}"


def whole(argument: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an int between ``least`` and ``most``; raises Wrong otherwise. True, 4.0 and "4" are not whole numbers.

    >>> whole("num_heads", 4, 1)
    4
    >>> whole("num_heads", 4.0, 1)
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: num_heads = 4.0: must be a whole number, 1 or more. Nearest right: num_heads = 4.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    bounds = f"a whole number, {least} or more" if most is None else f"a whole number from {least} to {most}"
    if number is None:
        given = closest_number(value)
        close = round(given) if math.isfinite(given) else most if given > 0 and most is not None else least
        raise Wrong(argument, value, f"must be {bounds}.", [{argument: _clamp(close, least, most)}])
    if number < least or (most is not None and number > most):
        raise Wrong(argument, value, f"must be {bounds}.", [{argument: _clamp(number, least, most)}])
    return number


def fraction(argument: str, value: object) -> float:
    """``value``, which may be text, as a float from 0 to 1; raises Wrong otherwise.

    >>> fraction("dropout", "0.1")
    0.1
    """
    given = read_number(value)
    number = closest_number(given)
    if isinstance(given, bool | str) or not 0 <= number <= 1:
        close = 0.0 if math.isnan(number) else min(max(number, 0.0), 1.0)
        raise Wrong(argument, value, "must be a probability, from 0 to 1.", [{argument: close}])
    return number


def one_of(argument: str, value: object, choices: Sequence[T]) -> T:
    """The one of ``choices`` that equals ``value``; raises Wrong otherwise, with all choices.

    >>> one_of("engine", "jax", ("torch", "numpy"))
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: engine = 'jax': must be one of torch, numpy. Nearest right: engine = 'torch' or engine = 'numpy'.
    """
    try:
        return choices[choices.index(value)]
    except (ValueError, RuntimeError):  # which arrays and tensors raise too, as they equal in part
        rule = f"must be one of {', '.join(map(str, choices))}."
        raise Wrong(argument, value, rule, [{argument: choice} for choice in choices]) from None


@overload
def of_kind(argument: str, value: object, kind: type[T]) -> T: ...
@overload
def of_kind(argument: str, value: T, kind: UnionType) -> T: ...
def of_kind(argument: str, value: object, kind: type | UnionType) -> object:
    """``value``, which has to be a ``kind``; raises Wrong otherwise.

    >>> of_kind("name", 3, str)
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: name = 3: must be a str, and is a int.
    """
    if not isinstance(value, kind):
        raise Wrong(argument, value, f"must be a {getattr(kind, '__name__', kind)}, and is a {type(value).__name__}.")
    return value


def yes_or_no(argument: str, value: object) -> bool:
    """``value`` as a bool, where it is one or NumPy's; raises Wrong otherwise: an array is neither true nor false.

    >>> yes_or_no("causal", np.True_)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise Wrong(argument, value, "must be True or False.", [{argument: True}, {argument: False}])
    return bool(value)


def listed(argument: str, value: object, rule: str, nearest: Iterable[Change] = ()) -> tuple[Any, ...]:
    """``value``, which has to hold several things in an order, as a tuple; raises Wrong with this ``rule`` for text and what is none.

    >>> listed("heads", range(3), "must be a list.")
    (0, 1, 2)
    """
    if isinstance(value, str | bytes | Mapping | Set) or not isinstance(value, Iterable):
        raise Wrong(argument, value, rule, nearest)
    try:
        return tuple(value)
    except TypeError:  # an array or tensor without axes, a class
        raise Wrong(argument, value, rule, nearest) from None


def head_dim(embed_dim: int, num_heads: int) -> int:
    """``embed_dim / num_heads``, the size of one head; raises Wrong where that is not whole.

    ``nn.MultiheadAttention`` says "embed_dim must be divisible by num_heads". Here the remainder is stated, and the nearest
    head counts (divisors of ``embed_dim``) and dimensions (multiples of ``num_heads``) on either side are named.

    >>> head_dim(128, 8)
    16
    """
    embed_dim, num_heads = whole("embed_dim", embed_dim, 1), whole("num_heads", num_heads, 1)
    size, rest = divmod(embed_dim, num_heads)
    if not rest:
        return size
    most = min(embed_dim, FARTHEST)
    below, above = range(min(num_heads - 1, most), 0, -1), range(num_heads + 1, most + 1)
    heads = [found for side in (below, above) if (found := next((d for d in side if embed_dim % d == 0), None))]
    dims = sorted((d for d in (size * num_heads, (size + 1) * num_heads) if d), key=lambda d: abs(d - embed_dim))
    raise Wrong(
        "num_heads",
        num_heads,
        f"embed_dim must be divisible by num_heads, but {embed_dim} = {num_heads} × {size} + {rest}.",
        [{"num_heads": h} for h in heads] + [{"embed_dim": d} for d in dims],
    )


FARTHEST = 100_000  # no head count beyond it is advised: to find one can take long


def divisors(number: int) -> list[int]:
    """All divisors of ``number``, ascending: the head counts that an embed_dim allows.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    low = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return low + [number // d for d in reversed(low) if d * d != number]


def closest_number(value: Any) -> float:
    """``value`` as a float, text as it was most likely meant; NaN for what is no number.

    >>> closest_number("1,5"), closest_number("many")
    (1.5, nan)
    """
    if isinstance(value, str):
        found = read_number(value)
        value = meant(value) if isinstance(found, str) else found
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except OverflowError:  # an int beyond all floats
        return math.copysign(math.inf, value)
    except (TypeError, ValueError, RuntimeError):  # the last of tensors
        return math.nan


def _clamp(number: int, least: int, most: int | None) -> int:
    return max(least, number if most is None else min(number, most))
