"""One tensor of a file, and the bounds that every file keeps: how many bytes it may turn into, whatever it claims, and room for these."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.core.arrays import as_array
from mha_viz.core.budget import BUDGET
from mha_viz.core.memory import SHARE, readable_size
from mha_viz.core.rules import Wrong

if TYPE_CHECKING:
    from jaxtyping import Float, UInt16

Data: TypeAlias = bytes | Path  # what a file holds, or where it is

LARGEST = 2 * 2**30  # bytes that are read at once; of a larger .safetensors or .pt on a disk, the tensors that are asked for
FLOATING = ("float16", "bfloat16", "float32", "float64")
FREE, RATIO = 2**24, 8  # bytes that any file may turn into, and how many more for each byte that it has
READING = 2  # bytes that are taken for each byte while it is read and opened
MOST_OPENED = 2048  # layers, calls or arrays of maps that are opened from one file
MOST_TENSORS = 50_000  # that one file may hold, opened or not
_HAS_ROOM: ContextVar[bool] = ContextVar("has_room", default=False)  # reserved already, for the whole file


@dataclass(frozen=True, eq=False)
class Stored:
    """One tensor of a file, read when it is asked for: its ``shape``, and its type by PyTorch's or NumPy's name."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], np.ndarray]

    @property
    def floating(self) -> bool:
        """True for the types that can be read as weights or maps."""
        return self.dtype in FLOATING

    def read(self) -> Float[np.ndarray, ...]:
        """The tensor as a NumPy array of float16, float32 (bfloat16 too) or float64."""
        called = self.name or "the array"  # an .npy holds one, without a name
        size = 4 * prod(self.shape)
        check_size(called, size)
        with room_to_read(called, size), reading(called):
            array = as_array(called, self.load())
        if array.base is None:  # made just now, and nobody else's: who owns it need not copy it
            array.flags.writeable = False
        return array


def check_size(name: str, size: int) -> None:
    """Raises Wrong for more bytes than are read at once."""
    if size > LARGEST:
        raise Wrong("file", name, f"would take {size:,} bytes; at most {LARGEST:,} are read at once.")


def no_room(name: str, size: float, room: float) -> Wrong:
    """The Wrong for what would take ``size`` bytes where there is ``room`` for less."""
    rule = f"would take {readable_size(size)} while it is read, and {readable_size(max(room, 0))} may be used, half of what is free."
    return Wrong("file", name, rule)


@contextlib.contextmanager
def room_to_read(
    name: str, size: int, refuse: Callable[[str, float, float], Wrong] = no_room, visitor: Hashable = None
) -> Iterator[None]:
    """Within it ``size`` bytes can be read and opened: READING times as many are reserved, and within it no more for parts of them.

    Raises what ``refuse(name, bytes, room)`` returns where there is no room for that.
    """
    if _HAS_ROOM.get() or not size:
        yield
        return

    def refused(available: int) -> None:
        raise refuse(name, READING * size, SHARE * available)

    with BUDGET.reserved(READING * size, refused, visitor):
        outside = _HAS_ROOM.set(True)
        try:
            yield
        finally:
            _HAS_ROOM.reset(outside)


def check_expansion(name: str, size: int, held: int) -> None:
    """Raises Wrong where a file of ``held`` bytes would turn into ``size`` bytes that are mostly repeats.

    Compression and strides of 0 let a small file claim any size; honest arrays compress by less than RATIO.
    """
    if size > FREE + RATIO * held:
        rule = (
            f"has {held:,} bytes and would expand to {size:,}: most of it is repeated numbers. "
            "Save arrays with np.savez, not compressed, and expanded tensors after .clone()."
        )
        raise Wrong("file", name, rule)


def check_count(name: str, count: int, what: str, advice: str) -> None:
    """Raises Wrong where a file holds more of ``what`` than MOST_OPENED; no picture shows so many, and each takes a moment to open."""
    if count > MOST_OPENED:
        raise Wrong("file", name, f"holds {count:,} {what}, and at most {MOST_OPENED:,} are opened. {advice}")


def check_tensors(name: str, count: int) -> None:
    """Raises Wrong where a file holds more tensors than MOST_TENSORS, which would take seconds to list."""
    if count > MOST_TENSORS:
        rule = f"holds {count:,} tensors, and at most {MOST_TENSORS:,} are read. Save those to look at in a file of their own."
        raise Wrong("file", name, rule)


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Whatever a reader raises becomes a Wrong: in a damaged or hostile file it can fail anywhere, and in any way."""
    try:
        yield
    except Wrong:
        raise
    except MemoryError as error:
        raise Wrong("file", name, "does not fit into memory.") from error
    except FileNotFoundError as error:
        raise Wrong("file", name, "is not there: no such file.") from error
    except PermissionError as error:
        raise Wrong("file", name, "may not be read: permission denied.") from error
    except Exception as error:
        said = " ".join(str(error).split())
        raise Wrong(
            "file", name, f"cannot be read, it may be damaged or cut off: {said[:200] or type(error).__name__}"
        ) from error


def from_bfloat16(array: UInt16[np.ndarray, ...]) -> Float[np.ndarray, ...]:
    """bfloat16 numbers, held as uint16, as float32."""
    return (array.astype(np.uint32) << 16).view(np.float32)
