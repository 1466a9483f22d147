"""Maps with more cells than there are pixels for: blocks of cells, each shown as what is largest in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class Pool:
    """L × S cells seen as ``rows`` × ``columns`` blocks of nearly equal size: cell i of n lies in block ⌊i · blocks / n⌋."""

    L: int
    S: int
    rows: int
    columns: int

    @classmethod
    def fitting(cls, L: int, S: int, high: float, wide: float) -> Pool:
        """The Pool of k × k cells a block, and fewer where that does not divide, into at most ``high`` × ``wide`` blocks.

        >>> Pool.fitting(1000, 500, high=256, wide=256)
        Pool(L=1000, S=500, rows=250, columns=250)
        """
        rows, columns = (math.ceil(cells / math.ceil(cells / max(int(most), 1))) for cells, most in ((L, high), (S, wide)))
        return cls(L, S, rows, columns)

    @property
    def whole(self) -> bool:
        """True where every cell is a block of its own."""
        return (self.rows, self.columns) == (self.L, self.S)

    @property
    def size(self) -> tuple[int, int]:
        """Cells in a block, down and across, in the largest one."""
        return math.ceil(self.L / self.rows), math.ceil(self.S / self.columns)

    @property
    def step(self) -> tuple[float, float]:
        """How far it is from block to block, across and down, in cells."""
        return self.S / self.columns, self.L / self.rows

    def largest(self, values: Float[np.ndarray, "... L S"], signed: bool = False) -> Float[np.ndarray, "... rows columns"]:
        """The largest value of each block, ``signed`` the one farthest from zero. NaN gives way.

        >>> Pool(2, 4, 1, 2).largest(np.array([[1, -5, 3, 4], [0, 2, np.nan, 1]]), signed=True)
        array([[-5.,  4.]])
        """
        if self.whole:
            return values
        high = self._reduced(np.fmax, values)
        if not signed:
            return high
        low = self._reduced(np.fmin, values)
        return np.where(-low > high, low, high)

    def all(self, cells: Bool[np.ndarray, "... L S"]) -> Bool[np.ndarray, "... rows columns"]:
        """Blocks in which every cell is True."""
        return cells if self.whole else self._reduced(np.logical_and, cells)

    def any(self, cells: Bool[np.ndarray, "... L S"]) -> Bool[np.ndarray, "... rows columns"]:
        """Blocks in which some cell is True."""
        return cells if self.whole else self._reduced(np.logical_or, cells)

    def starts(self, side: int) -> Int[np.ndarray, " blocks+1"]:
        """The first cell of each block and the end of the last: side 0 for rows, 1 for columns.

        >>> Pool(10, 10, 3, 10).starts(0)
        array([ 0,  4,  7, 10])
        """
        cells, blocks = ((self.L, self.rows), (self.S, self.columns))[side]
        return -(-np.arange(blocks + 1) * cells // blocks)

    def touched(self, side: int, first: int, last: int) -> tuple[slice, Int[np.ndarray, " blocks+1"]]:
        """(blocks, bounds): the slice of the blocks that hold cells ``first`` to ``last``, and their bounds.

        These say where each block begins among these cells, and where the last ends.

        >>> blocks, bounds = Pool(12, 12, 4, 4).touched(0, 2, 7)
        >>> int(blocks.start), int(blocks.stop), bounds.tolist()
        (0, 3, [0, 1, 4, 5])
        """
        starts = self.starts(side)
        low, high = np.searchsorted(starts, first, "right") - 1, np.searchsorted(starts, last)
        return slice(low, high), np.minimum(np.maximum(starts[low : high + 1], first), last) - first

    def _reduced(self, function: np.ufunc, values: np.ndarray) -> np.ndarray:
        for axis, cells, blocks in ((-2, self.L, self.rows), (-1, self.S, self.columns)):
            if cells % blocks == 0:  # many times faster
                before, after = values.shape[:axis], values.shape[axis:][1:]
                values = function.reduce(values.reshape(*before, blocks, cells // blocks, *after), axis=axis)
            else:
                values = function.reduceat(values, self.starts(0 if axis == -2 else 1)[:-1], axis=axis)
        return values  # [..., rows, columns]

    def ranges(self, names: Sequence[str], side: int) -> Sequence[str]:
        """Blocks by the exact names of their first and last cell: side 0 for rows, 1 for columns.

        >>> Pool(4, 4, 2, 4).ranges(["a", "b", "c", "d"], 0)
        ['a … b', 'c … d']
        """
        cells, blocks = ((self.L, self.rows), (self.S, self.columns))[side]
        if cells == blocks:
            return names
        bounds = pairwise(self.starts(side))
        return [names[first] if first + 1 == end else f"{names[first]} … {names[end - 1]}" for first, end in bounds]
