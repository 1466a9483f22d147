"""How many px stand around the maps of a picture, for the parts that it has."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mha_viz.figures.parts import Parts
from mha_viz.figures.widths import widened

if TYPE_CHECKING:
    from mha_viz.figures.geometry import Box

EDGE = 4  # px beside and below maps and tiles for the frame around one
CORNER, CORNER_HEIGHT = 94, 36  # px: "key → is read" and "query ↓ asks" in the corner above the row labels
BAR, TICK = 52, 9  # px: the colour bar beside the maps with its gap and title; what its numbers reach beyond its ends


@dataclass(frozen=True)
class Margins:
    """The px that ``parts`` take, in a picture whose large maps are ``stacked`` or not."""

    stacked: bool
    parts: Parts

    @property
    def legend(self) -> int:
        """How high the legend is."""
        return (56 if self.stacked else 32) if self.parts.legend else 0

    def above(self, corner: bool = True) -> int:
        """What a map has above it at least: for the words in its ``corner``, the end of a bar beside it, or its frame."""
        return CORNER_HEIGHT if corner and self.parts.labels else TICK if self.parts.bar and not self.stacked else EDGE

    def left(self, texts: float) -> tuple[int, int]:
        """For the names of rows, the widest of them ``texts`` px; and in all."""
        labels = max(math.ceil(texts) + 8, widened(CORNER)) if self.parts.labels else 0
        return labels, labels or EDGE

    def right(self, ticks: float | None) -> float:
        """For a bar with numbers ``ticks`` px wide, None without one; for the last names of keys; or for a frame."""
        if self.parts.bar and not self.stacked and ticks is not None:
            return BAR + ticks
        return 12 if self.parts.labels else EDGE

    def below(self, gap: int) -> int:
        """Down to the legend a ``gap``, or for the end of a bar beside the maps, or for a frame."""
        return gap if self.parts.legend else TICK if self.parts.bar and not self.stacked else EDGE

    def lying(self, bar: Box, ticks: float) -> Box:
        """The Box of a ``bar`` below a map, half a number away from the picture's sides where names of rows do not keep it so."""
        aside = 0 if self.parts.labels else math.ceil(ticks / 2)
        return replace(bar, x=bar.x + aside, width=bar.width - 2 * aside)
