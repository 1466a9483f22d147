"""Maps read a part at a time: reading what is as large as all memory takes little more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.memory import PART

if TYPE_CHECKING:
    from jaxtyping import Bool, Int, Shaped


def in_parts(rows: Int[np.ndarray, " R"], cells: int) -> list[Int[np.ndarray, " some"]]:
    """``rows`` (indices) in runs that hold at most PART cells together, each row ``cells`` of them: one run of all where they are few."""
    step = max(PART // max(cells, 1), 1)
    return [rows[start : start + step] for start in range(0, max(len(rows), 1), step)]


def rows_where(array: Shaped[np.ndarray, "... L S"], kept: Bool[np.ndarray, " L"]) -> Shaped[np.ndarray, "... R S"]:
    """``array`` [..., L, S] at the rows where ``kept`` [L] is True: a view where these are a run, as they are but for padding within."""
    rows = np.flatnonzero(kept)
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return array[..., rows[0] : rows[-1] + 1, :]
    return array[..., rows, :]
