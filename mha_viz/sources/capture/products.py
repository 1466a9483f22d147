"""Products of two tensors, whatever they are written with: which axes meet, and which of them a softmax may follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from torch.nn.parameter import Parameter

from mha_viz.sources.capture.axes import Axis
from mha_viz.sources.capture.beneath import plain

if TYPE_CHECKING:
    from torch import Tensor

    from mha_viz.sources.capture.axes import Axes, Side, TensorAxis
    from mha_viz.sources.capture.beneath import Args, Kwargs


@dataclass(eq=False)
class Product:
    """The product of two tensors along ``inner``, each tensor with its axes."""

    sides: tuple[Side, Side]
    inner: Axis
    places: tuple[Sequence[TensorAxis], Sequence[TensorAxis]] = ((), ())  # of each side, its axes as Places knows them


Letters: TypeAlias = Sequence[list[str]]  # the axes of two operands and of the result, a text each
Added: TypeAlias = "tuple[Tensor | float, float]"  # what is added, and what it is multiplied with
Operands: TypeAlias = "tuple[list[Tensor], Letters, float, Added | None]"


def operands_of(name: str, args: Args, kwargs: Kwargs) -> Operands | None:
    """(two operands, their axes and the result's as texts, factor, (what is added, times what)) of a product by name, or None."""
    values = [*args, *kwargs.values()]
    if name == "einsum":
        equation, *operands = values
        operands = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
        if not isinstance(equation, str) or len(operands) != 2:
            return None
        letters = _of_equation(equation, operands)
        return None if letters is None else (operands, letters, 1.0, None)
    factor, added = 1.0, None
    if name == "baddbmm":
        added, *values = values
        factor, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
        added = None if beta == 0 else (added, beta)
    letters = _of_matmul(*values[:2])
    return None if letters is None else (values[:2], letters, factor, added)


def _of_equation(equation: str, operands: Sequence[Tensor]) -> Letters | None:
    """The axes of two operands and the result of einsum, one letter (any text) each; None where an axis is met twice in one."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != 2:
        return None
    dots = [operand.dim() - len(part.replace("...", "")) for operand, part in zip(operands, parts, strict=True)]
    if not arrow:
        once = sorted(letter for letter in set(left) - set(".,") if left.count(letter) == 1)
        out = ("..." if "..." in left else "") + "".join(once)
    spelled = []
    for part, count in zip([*parts, out], [*dots, max(dots)], strict=True):
        before, ellipsis, after = part.partition("...")
        spelled.append([*before, *([f".{i}" for i in range(max(dots) - count, max(dots))] if ellipsis else []), *after])
    if any(len(set(part)) < len(part) for part in spelled):
        return None
    return spelled


def _of_matmul(one: Tensor, other: Tensor) -> Letters | None:
    if one.dim() < 2 or other.dim() < 2:
        return None
    count = max(one.dim(), other.dim()) - 2
    batch = [f".{i}" for i in range(count)]
    return (
        [*batch[count - one.dim() + 2 :], "row", "in"],
        [*batch[count - other.dim() + 2 :], "in", "column"],
        [*batch, "row", "column"],
    )


def product_of(operands: Sequence[Tensor], letters: Letters) -> tuple[Product, Axes] | None:
    """(Product, axes of its result) where two tensors are multiplied as queries and keys may be; None where not."""
    one, other, out = letters
    inner = [letter for letter in one if letter in other and letter not in out]
    free = [
        [letter for letter in side if letter not in against and letter in out] for side, against in ((one, other), (other, one))
    ]
    if len(inner) != 1 or not all(free) or set(one) | set(other) != {*out, *inner}:
        return None
    if any(isinstance(operand, Parameter) and operand.dim() == 2 for operand in operands):  # a projection
        return None
    sizes: dict[str, int] = {}
    for operand, side in zip(operands, (one, other), strict=True):
        for letter, size in zip(side, operand.shape, strict=True):
            sizes[letter] = max(sizes.get(letter, 1), size)
    axes: dict[str, TensorAxis] = {letter: (Axis(size),) for letter, size in sizes.items()}
    left, right = (
        plain(operand, [axes[letter] for letter in side]) for operand, side in zip(operands, (one, other), strict=True)
    )
    return Product((left, right), axes[inner[0]][0]), [axes[letter] for letter in out]
