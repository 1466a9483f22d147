"""Arrays on their way in and out of the core: whatever a person has comes in as NumPy, and leaves as NumPy that nobody can change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from mha_viz.core.rules import Wrong, one_of

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike

    Numbers: TypeAlias = ArrayLike | torch.Tensor  # what a person may have: an array, a nested list, a tensor

A = TypeVar("A", bound=np.ndarray)
Dtype: TypeAlias = Literal["float32", "float64", "float16", "bfloat16"]
DTYPES: tuple[Dtype, ...] = ("float32", "float64", "float16", "bfloat16")
FLOATS = {np.float16, np.float32, np.float64}


def as_array(argument: str, value: Numbers | None) -> Float[np.ndarray, ...]:
    """``value``, an array, nested list or torch tensor, as a NumPy array of float16, float32 (bfloat16 too) or float64.

    Raises Wrong for what is no array, and for one of another type.

    >>> as_array("weights", [[0.5, 0.5]]).dtype
    dtype('float64')
    >>> as_array("weights", [1, 0])
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: weights of type int64: must be of floating type. Nearest right: weights of type float32.
    """
    array = _read(argument, value)
    if array.dtype.type not in FLOATS:
        nearest = [{argument: np.dtype("float32")}] if array.dtype.kind in "biu" else []
        raise Wrong(argument, array.dtype, "must be of floating type.", nearest)
    return array


def as_mask(argument: str, value: Numbers | None) -> Float[np.ndarray, ...] | Bool[np.ndarray, ...]:
    """``value`` as ``as_array`` takes it, or of bool type. Integers are refused: 1 is masked to some libraries, kept to others.

    >>> as_mask("attn_mask", [[False, True]])
    array([[False,  True]])
    """
    array = _read(argument, value)
    if array.dtype != bool and array.dtype.type not in FLOATS:
        rule = (
            "must be bool, True = may not attend, or floats to add to the scaled scores. "
            "If 1 means kept, as it does to some libraries, pass mask == 0."
        )
        raise Wrong(argument, array.dtype, rule, [{argument: np.dtype(bool)}] if array.dtype.kind in "iu" else [])
    return array


def _read(argument: str, value: Any) -> np.ndarray:
    if value is None:
        raise Wrong(argument, None, "must be an array.")
    try:
        if hasattr(value, "detach"):  # a torch tensor, told without importing torch
            value = value.detach().cpu()
            value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise Wrong(argument, value, f"cannot be read as an array: {error}") from None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))  # torch knows no foreign byte order


def dtype_of(array: Float[np.ndarray, ...]) -> Dtype:
    """The type of its numbers, by name."""
    return one_of("dtype", array.dtype.name, DTYPES)


def read_only(array: np.ndarray) -> np.ndarray:
    """A view of ``array`` that cannot be written to.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def own(array: A) -> A:
    """A read-only copy of ``array``: whoever goes on changing theirs does not change ours. What nobody can change is not copied."""
    if not _can_change(array):
        return array
    array = array.copy()
    array.flags.writeable = False
    return array


def _can_change(array: object) -> bool:
    """False where ``array`` and all that it is a view of are read-only, down to an array or bytes of nobody else."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return not (array is None or isinstance(array.obj if isinstance(array, memoryview) else array, bytes))
