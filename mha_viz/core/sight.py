"""What of a map is in sight: some of its queries and keys, each of them, or blocks of them where they are too many to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from mha_viz.core.pool import Pool

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Int

Pooling: TypeAlias = Literal["max", "mean"]  # what is said of a block: its largest weight, or its mean
CELLS = 256  # blocks along a side where nobody says
NAMES: dict[Pooling, str] = {
    "max": "largest {}",
    "mean": "mean {}",
}  # what a cell that stands for a block is called, by what it says of it


def pooling_of(quantity: str) -> Pooling | None:
    """What cells of this name say of the block that each stands for, "max" or "mean"; None where they stand for themselves.

    >>> pooling_of("largest weight"), pooling_of("weight")
    ('max', None)
    """
    return next((how for how, name in NAMES.items() if quantity.startswith(name.format(""))), None)


@dataclass(frozen=True)
class Sight:
    """The queries ``rows`` and keys ``columns`` of a map, (start, stop) of each, stop not included, by the blocks of a ``pool``."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    pool: Pool

    @classmethod
    def of(
        cls,
        L: int,
        S: int,
        rows: tuple[int, int] | None = None,
        columns: tuple[int, int] | None = None,
        shape: tuple[int, int] = (CELLS, CELLS),
    ) -> Sight:
        """The Sight of so much of a map of L × S, all of it where None, in at most ``shape`` blocks.

        >>> sight = Sight.of(1000, 1000, rows=(0, 512), columns=(0, 4), shape=(4, 4))
        >>> sight.several, sight.exact, sight.block(0, 300), sight.middle(0, 2), sight.span(0, 1, 3)
        ((True, False), False, 2, 320, (128, 384))
        >>> sight.names(0, [str(place) for place in range(1000)])
        ('0–127', '128–255', '256–383', '384–511')
        """
        rows, columns = rows or (0, L), columns or (0, S)
        return cls(rows, columns, Pool.fitting(rows[1] - rows[0], columns[1] - columns[0], *shape))

    @property
    def exact(self) -> bool:
        """True where every block is one cell."""
        return self.pool.whole

    @property
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The (start, stop) of its queries, and of its keys."""
        return self.rows, self.columns

    @property
    def several(self) -> tuple[bool, bool]:
        """(rows, columns): True where a block holds several of them."""
        return self.pool.rows < self.pool.L, self.pool.columns < self.pool.S

    def starts(self, side: int) -> Int[np.ndarray, " blocks+1"]:
        """The first query (side 0) or key (1) of each block, and the end of the last."""
        return self.pool.starts(side) + self.spans[side][0]

    def block(self, side: int, place: int) -> int | None:
        """Which block a query (side 0) or key (1) lies in; None where it is out of sight."""
        start, stop = self.spans[side]
        blocks = (self.pool.rows, self.pool.columns)[side]
        return (place - start) * blocks // (stop - start) if start <= place < stop else None

    def middle(self, side: int, block: int) -> int:
        """The query (side 0) or key (1) in the middle of a block."""
        return int(self.starts(side)[block : block + 2].sum()) // 2

    def span(self, side: int, first: int, last: int) -> tuple[int, int]:
        """(start, stop) of the queries (side 0) or keys (1) in the blocks from ``first`` on, ``last`` not included."""
        starts = self.starts(side)
        return int(starts[first]), int(starts[last])

    def names(self, side: int, texts: Sequence[str]) -> tuple[str, ...]:
        """The ``texts`` of all queries (side 0) or keys (1) as those of the blocks: of several cells their numbers, "128–255"."""
        if not self.several[side]:
            return tuple(texts[slice(*self.spans[side])])
        bounds = self.starts(side).tolist()
        return tuple(f"{start}–{end - 1}" if start + 1 < end else str(start) for start, end in pairwise(bounds))
