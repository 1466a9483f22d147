"""Where everything stands in a picture of heads, in px from the figure's top left corner.

Nothing here knows of Plotly: sizes of maps, labels and gaps follow from the width, the number of heads and tokens, and how wide
the tokens' texts are. So nothing overlaps or is cut at any width, and tests can prove it.
"""

import math
from dataclasses import dataclass

NARROW = 640  # px: below, the pair of large maps stands one above the other
GAP = 12  # px between tiles of the strip
EDGE = 4  # px beside and below the strip's tiles for the frame around one
LABELS = {"line": (144, 22), "lines": (78, 40), "percent": (52, 22)}  # of tiles: from how many px across, and how many above
TITLE, MIN_TITLE = 28, 190  # px: height of a large map's title line, and its width above a narrow map
CORNER = 94  # px: "key → is read" and "query ↓ asks" in the corner above the row labels
BAR = 78  # px: the colour bar beside the maps, its gap and its numbers included
BAR_LYING = 62  # px: the same below the maps, with its title
ROW_PITCH, SLANT = 14, 50  # px between lines of text; degrees
NICE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


@dataclass(frozen=True)
class Box:
    """A rectangle: left, top, width, height."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self):
        return self.x + self.width

    @property
    def bottom(self):
        return self.y + self.height


@dataclass(frozen=True)
class Strip:
    """Every head's tile: ``columns`` × ``rows`` of them in ``area``, each ``tile`` (width, height) under its label.

    ``cell`` is the size of one cell, ``step`` the way from tile to tile, ``label_height`` px above a tile are for its
    label, and ``words`` tells what fits there: "line" (head 1 differs 37 %), the same on two "lines", "percent" (1 37 %).
    """

    columns: int
    rows: int
    area: Box
    cell: tuple[float, float]
    tile: tuple[float, float]
    step: tuple[float, float]
    label_height: int
    words: str

    def place(self, index):
        """The Box of tile ``index``."""
        row, column = divmod(index, self.columns)
        top = self.area.y + self.label_height
        return Box(self.area.x + EDGE + column * self.step[0], top + row * self.step[1], *self.tile)

    def label(self, index):
        """The Box above tile ``index`` that its label has for itself."""
        tile = self.place(index)
        return Box(tile.x, tile.y - self.label_height, self.step[0] - GAP, self.label_height)


@dataclass(frozen=True)
class ColumnLabels:
    """How keys are named above a map: turned by ``angle`` degrees, at least ``pitch`` px apart, in a band of ``height`` px; the
    last ones reach ``overhang`` px beyond the map."""

    angle: int
    pitch: float
    height: int
    overhang: int


@dataclass(frozen=True)
class Geometry:
    """The whole picture: a caption, the strip, the two large maps with their titles and labels, the colour bar, the legend."""

    width: int
    height: int
    strip: Strip
    head: Box
    average: Box
    cell: tuple[float, float]
    row_labels: float
    column_labels: ColumnLabels
    bar: Box
    stacked: bool
    legend: Box

    @property
    def column_step(self):
        """Every how many columns one is named."""
        return _nice_step(self.column_labels.pitch / self.cell[0])

    @property
    def row_step(self):
        """Every how many rows one is named."""
        return _nice_step(ROW_PITCH / self.cell[1])

    def title(self, map_box):
        """The Box of a large map's title line."""
        top = map_box.y - self.column_labels.height - TITLE
        return Box(map_box.x, top, max(map_box.width, MIN_TITLE), TITLE)


def arrange(width, heads, queries, keys, row_texts, column_texts, numbered=False):
    """The Geometry of ``heads`` tiles of ``queries`` × ``keys`` cells and the pair, ``width`` px wide.

    ``row_texts`` and ``column_texts`` are the widths in px of the widest names of rows and columns; columns that are just
    ``numbered`` need not all be named.
    """
    stacked = width < NARROW
    # A 16:10 window whose page leaves `width` for the picture leaves about this height under its controls.
    budget = 640 if stacked else min(max(0.58 * width, 540), 820)
    caption = 22
    strip = _strip(width, heads, queries, keys, caption, budget)
    top = strip.area.bottom + 18 + TITLE
    row_labels = max(math.ceil(row_texts) + 8, CORNER)
    across = 1 if stacked else 2
    beside = 12 if stacked else BAR
    legend = 56 if stacked else 32

    def cell_for(labels):
        gap = 0 if stacked else max(24, labels.overhang + CORNER + 8 - row_labels)
        room = (width - across * row_labels - gap - max(beside, labels.overhang + 4)) / across
        if not stacked:  # a head's map narrower than its title
            room = min(room, width - 2 * row_labels - MIN_TITLE - beside)
        tall = 1.2 * room if stacked else max(budget - top - labels.height - legend - 6, 224)
        return _cell(queries, keys, room, tall, largest=96, smallest_side=96), gap

    column_labels, cell, gap = _label_columns(cell_for, column_texts, numbered)
    map_width, map_height = keys * cell[0], queries * cell[1]
    y = top + column_labels.height
    head = Box(row_labels, y, map_width, map_height)
    if stacked:
        average = Box(head.x, head.bottom + 22 + TITLE + column_labels.height, map_width, map_height)
        bar = Box(row_labels, average.bottom + 10, max(map_width, 160), BAR_LYING)
        legend_box = Box(0, bar.bottom + 4, width, legend)
    else:
        step = row_labels + max(map_width, MIN_TITLE - gap) + gap
        average = Box(head.x + step, y, map_width, map_height)
        bar = Box(average.right + 18, y, BAR - 18, max(map_height, 140))
        legend_box = Box(0, max(head.bottom, bar.bottom) + 4, width, legend)
    return Geometry(
        width, math.ceil(legend_box.bottom), strip, head, average, cell, row_labels, column_labels, bar, stacked, legend_box,
    )  # fmt: skip


def _strip(width, heads, queries, keys, top, budget):
    """The arrangement in evenly filled rows that gives the largest tiles within its share of the budget; else the lowest one."""
    share, tallest = (0.45 if width < NARROW else 0.34) * budget, min(max(0.16 * budget, 72), 128)
    fitting, first = [], None
    for rows in range(1, heads + 1):
        columns = -(-heads // rows)
        room = (width - 2 * EDGE - (columns - 1) * GAP) // columns
        if room < LABELS["percent"][0] and columns > 1:
            continue
        strip = _rows_of(columns, rows, room, queries, keys, top, tallest)
        first = first or strip
        spare = share / rows - strip.label_height - GAP
        if spare >= 40:
            fitting.append(_rows_of(columns, rows, room, queries, keys, top, min(tallest, spare)))
    return max(fitting, key=lambda s: s.tile[0] * s.tile[1], default=first)


def _rows_of(columns, rows, room, queries, keys, top, tallest):
    cell = _cell(queries, keys, room, tallest, largest=28, smallest_side=32)
    tile = keys * cell[0], queries * cell[1]
    across = min(max(math.ceil(tile[0]), 128), room)  # a label may need more room than a narrow tile
    words = next(words for words, (least, _) in LABELS.items() if across >= least or words == "percent")
    label = LABELS[words][1]
    step = across + GAP, math.ceil(tile[1]) + label + GAP
    area = Box(0, top, (columns - 1) * step[0] + math.ceil(tile[0]) + 2 * EDGE, rows * step[1] - GAP + EDGE)
    return Strip(columns, rows, area, cell, tile, step, label, words)


def _cell(queries, keys, width, height, largest, smallest_side):
    """(width, height) of one cell of a map that fits into width × height: square, unless the map would be too thin to see."""
    side = min(width / keys, height / queries, largest)
    side = math.floor(side) if side >= 4 else side  # whole px draw even cells
    wide = max(side, min(smallest_side / keys, width / keys, largest))
    high = max(side, min(smallest_side / queries, height / queries, largest))
    return wide, high


def _label_columns(cell_for, text, numbered):
    """The first way of naming columns, from the most readable on, that fits the cells which it leaves."""
    text, angle = math.ceil(text), math.radians(SLANT)
    lying = ColumnLabels(0, text + (3 if numbered else 6), 20, 0)
    slanted = ColumnLabels(-SLANT, 18.5, math.ceil(text * math.sin(angle)) + 16, math.ceil(text * math.cos(angle)) + 6)
    standing = ColumnLabels(-90, ROW_PITCH, text + 8, 0)
    for labels in (lying, slanted, standing):
        cell, gap = cell_for(labels)
        if numbered or cell[0] >= labels.pitch:
            return labels, cell, gap
    labels = lying if text <= 32 else standing  # not every column can be named
    return labels, *cell_for(labels)


def _nice_step(least):
    return next(step for step in NICE if step >= least - 1e-9)
