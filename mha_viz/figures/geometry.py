"""What a picture of heads is laid out as: its strip of tiles, large maps, bars and legend, in px from the figure's top left corner.

Nothing here knows of Plotly. Which sizes these have ``mha_viz.figures.arrange`` decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mha_viz.figures.margins import EDGE
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.widths import width_of

NARROW = 640  # px: below, what stands side by side elsewhere stands one above the other
GAP = 12  # px between tiles of the strip
SWATCH, LEGEND_LINE = 45, 22  # px of an entry of the legend before its text, and of a line of entries
TITLE = 28  # px: height of a large map's title line
ROW_PITCH = 14  # px between lines of text
NICE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


@dataclass(frozen=True)
class Box:
    """A rectangle: left, top, width, height."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True)
class Strip:
    """Every head's tile: ``columns`` × ``rows`` of them in ``area``, each ``tile`` (width, height) under its label.

    ``cell`` is the size of one cell, ``step`` the way from tile to tile, ``label_height`` px above a tile are for its
    label, and ``words`` tells what fits there: "line" (head 1 differs 37 %), the same on two "lines", "percent" (1 37 %), "number"
    (1), "" where tiles have no label. The last ``names`` of these px are for the keys' names.
    """

    columns: int
    rows: int
    area: Box
    cell: tuple[float, float]
    tile: tuple[float, float]
    step: tuple[float, float]
    label_height: int
    words: str
    names: int = 0

    def place(self, index: int) -> Box:
        """The Box of tile ``index``."""
        row, column = divmod(index, self.columns)
        top = self.area.y + self.label_height
        return Box(self.area.x + EDGE + column * self.step[0], top + row * self.step[1], *self.tile)

    def label(self, index: int) -> Box:
        """The Box above tile ``index``, and above its keys' names, that its label has for itself."""
        tile = self.place(index)
        return Box(tile.x, tile.y - self.label_height, self.step[0] - GAP, self.label_height - self.names)


@dataclass(frozen=True)
class ColumnLabels:
    """How keys are named above a map.

    Their names are turned by ``angle`` degrees and stand at least ``pitch`` px apart in a band of ``height`` px; the last ones reach
    ``overhang`` px beyond the map.
    """

    angle: int
    pitch: float
    height: int
    overhang: int


@dataclass(frozen=True)
class MapPlace:
    """Where a large map stands: its cells in ``box``, ``cell`` the size of one.

    To its left are ``row_labels`` px for the names of queries, 0 where it has none; ``column_labels`` is how keys are named above it. Its
    title has at least ``title_width`` px, 0 without one.
    """

    box: Box
    cell: tuple[float, float]
    row_labels: float
    column_labels: ColumnLabels
    title_width: float = 0

    @property
    def column_step(self) -> int:
        """Every how many columns one is named."""
        return nice_step(self.column_labels.pitch / self.cell[0])

    @property
    def row_step(self) -> int:
        """Every how many rows one is named."""
        return nice_step(ROW_PITCH / self.cell[1])

    @property
    def title(self) -> Box:
        """The Box of its title line."""
        height = TITLE if self.title_width else 0
        top = self.box.y - self.column_labels.height - height
        return Box(self.box.x, top, max(self.box.width, self.title_width), height)


@dataclass(frozen=True)
class Geometry:
    """The whole picture: captions, the strip, the large maps with their titles and names, the colour bars, the legend.

    ``names`` is how the tiles of the strip are named, where they have names beside them. The picture has these ``parts``.
    """

    width: int
    height: int
    strip: Strip | None
    maps: tuple[MapPlace, ...]
    bars: tuple[Box, ...]
    stacked: bool
    legend: Box
    names: MapPlace | None = None
    parts: Parts = ALL

    def with_legend(self, entries: Sequence[str]) -> Geometry:
        """The same with room for these ``entries`` of the legend: where they need more than a line, they stand in even columns."""
        widths = [SWATCH + width_of(text, 14) for text in entries]
        if not self.legend.height or sum(widths) <= self.width:
            return self
        columns = max(int(self.width // max(widths)), 1)
        high = max(self.legend.height, 10 + LEGEND_LINE * math.ceil(len(entries) / columns))
        return replace(self, height=math.ceil(self.legend.y + high), legend=replace(self.legend, height=high))

    def beside(self, other: Geometry, below: bool = False) -> Geometry:
        """The Geometry of both pictures, the large maps and bars of ``other`` to the right of these or ``below`` them."""
        aside, down = (0, self.legend.y) if below else (self.width, 0)
        maps = tuple(replace(map, box=_moved(map.box, aside, down)) for map in other.maps)
        bars = tuple(_moved(bar, aside, down) for bar in other.bars)
        width, bottom = max(self.width, other.width + aside), max(self.legend.y, other.legend.y + down)
        legend = Box(0, bottom, width, self.legend.height)
        return replace(
            self, width=width, height=math.ceil(legend.bottom), maps=self.maps + maps, bars=self.bars + bars, legend=legend
        )


@dataclass(frozen=True)
class Tiled(Geometry):
    """A picture of a strip alone."""

    strip: Strip


def _moved(box: Box, aside: float, down: float) -> Box:
    return Box(box.x + aside, box.y + down, box.width, box.height)


def has_numbers(shape: tuple[int, ...], cell: tuple[float, float]) -> bool:
    """Whether cells of this size hold the numbers of a map of this ``shape``, (queries, keys)."""
    return max(shape) <= 8 and cell[0] >= 30 and cell[1] >= 18


def nice_step(least: float) -> int:
    """The first of 1, 2, 5, 10 … that is not below ``least``."""
    return next(step for step in NICE if step >= least - 1e-9)
