"""Where everything in a picture of heads goes, and how large it is there.

Nothing here knows of Plotly: sizes of maps, labels and gaps follow from the width, the number of heads and tokens, and how wide
the tokens' texts are. So nothing overlaps or is cut at any width, and tests can prove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mha_viz.figures.geometry import (
    GAP,
    NARROW,
    ROW_PITCH,
    TITLE,
    Box,
    ColumnLabels,
    Geometry,
    MapPlace,
    Strip,
    Tiled,
    has_numbers,
)
from mha_viz.figures.margins import BAR, CORNER, EDGE, Margins
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.widths import widened

NARROW_FOR_THREE = 780  # px: the same of three large maps
CAPTION = 22  # px: a line of words above everything
LARGE, EVEN = (
    128,
    6,
)  # px of tiles that may be smaller for full rows; a quarter of empty places weighs 0.75^−6, 5.6 times the area
LABELS = {"line": 144, "lines": 78, "percent": 52, "number": 16}  # px that the labels of tiles take, see Strip
LABEL_HEIGHTS = {"line": 22, "lines": 40, "percent": 22, "number": 20}  # px
ROWS = 3  # of tiles above large maps: where labels with their percentages take more, heads are named by number alone
LEAST = 36  # px that such a tile has across at least
MIN_TITLE = {1: 190, 2: 190, 3: 110}  # px: its width above one of so many narrow maps
BAR_TICKS = 26  # px: the numbers of the colour bar beside the maps where nobody says how wide
BAR_LYING = 62  # px: the same below the maps, with its title
SLANT = 50  # degrees


def arrange(
    width: int,
    heads: int,
    queries: int,
    keys: int,
    row_texts: float,
    column_texts: float,
    numbered: bool = False,
    *,
    maps: int = 2,
    own_names: bool = True,
    bars: dict[int, float] | None = None,
    captions: int = 1,
    stacked: bool | None = None,
    labels: Mapping[str, float] | None = LABELS,
    parts: Parts = ALL,
) -> Geometry:
    """The Geometry of a strip of ``heads`` tiles of ``queries`` × ``keys`` cells, and large ``maps`` of as many, ``width`` px wide.

    ``row_texts`` and ``column_texts`` are the widths in px of the widest names of rows and columns; columns that are just
    ``numbered`` need not all be named. Each map has its ``own_names`` of rows, or only the first one has. ``bars`` tells after which
    maps a colour bar stands, and how wide its numbers are: {1: 26} where nobody says. So many lines of ``captions`` come first.
    Maps are ``stacked`` where nobody says and the width is small. ``labels`` are the px that labels of the strip take: see LABELS.
    Only these ``parts`` take room. Without any, a map alone is as wide as the picture.
    """
    bars = ({maps - 1: BAR_TICKS} if bars is None else bars) if parts.bar else {}
    if stacked is None:
        stacked = width < (NARROW_FOR_THREE if maps > 2 else NARROW)
    margins = Margins(stacked, parts)
    title, title_width = (TITLE, MIN_TITLE[maps]) if parts.title else (0, 0)
    # A 16:10 window whose page leaves `width` for the picture leaves about this height under its controls.
    budget = 640 if stacked else min(max(0.58 * width, 540), 820)
    top: float = CAPTION * captions if parts.title else 0
    strip = _strip(width, heads, queries, keys, top, budget, labels if parts.title else None) if heads else None
    top = (strip.area.bottom + 18 if strip else top) + title
    row_labels, left = margins.left(row_texts)
    across = 1 if stacked else maps
    named = across if own_names else 1
    between = 0 if stacked else sum(BAR + ticks for i, ticks in bars.items() if i < maps - 1)
    beside = margins.right(bars.get(maps - 1))

    def gap_for(names: ColumnLabels) -> int:
        if stacked:
            return 0
        if not parts.labels:
            return GAP
        return max(24, names.overhang + 8 + (widened(CORNER) - row_labels if own_names else 0))

    def above(names: ColumnLabels) -> int:
        return max(names.height, margins.above() - title)

    def cell_for(names: ColumnLabels) -> tuple[float, float]:
        gap = gap_for(names)
        room = width - left - (named - 1) * row_labels - (across - 1) * gap - between - max(beside, names.overhang + 4)
        if maps == 1 and not (strip or parts.around):
            return _filling(queries, keys, room)
        thin = room - (across - 1) * (title_width - gap)  # where the others are narrower than their titles
        rest = budget - top - above(names) - margins.legend - 6
        tall = 1.2 * room if stacked else max(rest, 224) if rest >= 120 else 340  # beyond a screen maps may as well be large
        return _cell(queries, keys, min(room / across, thin), tall, largest=96, smallest_side=96)

    names, cell = _label_columns(cell_for, column_texts, numbered, parts)
    size, gap = (keys * cell[0], queries * cell[1]), gap_for(names)
    placed: list[MapPlace] = []
    bar_boxes: list[Box] = []
    x: float = left
    y = top + above(names)
    for i in range(maps):
        first = own_names or i == 0 or stacked
        box = Box(x, y, *size)
        placed.append(MapPlace(box, cell, row_labels if first else 0, names, title_width))
        bottom = box.bottom
        if i in bars and stacked:
            bar_boxes.append(margins.lying(Box(left, bottom + 10, max(size[0], 160), BAR_LYING), bars[i]))
            bottom += 10 + BAR_LYING
        elif i in bars:
            bar_boxes.append(Box(box.right + 18, y, BAR + bars[i] - 18, max(size[1], 140)))
        if stacked:
            y = bottom + ((22 if bottom == box.bottom else 0) if parts.title else GAP) + title + above(names)
        else:
            x += max(size[0], title_width - gap) + gap + (BAR + bars[i] if i in bars else 0) + (row_labels if own_names else 0)
    bottom = max(box.bottom for box in [*(map.box for map in placed), *bar_boxes])
    legend_box = Box(0, bottom + margins.below(4), width, margins.legend)
    return Geometry(
        width, math.ceil(legend_box.bottom), strip, tuple(placed), tuple(bar_boxes), stacked, legend_box, parts=parts
    )


def arrange_all(
    width: int,
    tiles: int,
    queries: int,
    keys: int,
    row_texts: float,
    column_texts: float,
    numbered: bool = False,
    bar_ticks: float = BAR_TICKS,
    labels: Mapping[str, float] | None = LABELS,
    parts: Parts = ALL,
) -> Tiled:
    """Lay ``tiles`` out alone, as large as the width allows and two screens hold.

    Their rows are as full as can be without making them small; all else is as in ``arrange``.
    """
    stacked, labels = width < NARROW, labels if parts.title else None
    margins = Margins(stacked, parts)
    budget = 2 * (640 if stacked else min(max(0.58 * width, 540), 820))
    row_labels, left = margins.left(row_texts)
    beside = margins.right(bar_ticks)

    def grid(columns: int) -> Tiled:
        rows = -(-tiles // columns)

        def room_for(names: ColumnLabels) -> float:
            return (width - left - (columns - 1) * GAP - max(beside, names.overhang + 4)) // columns

        def cell_for(names: ColumnLabels) -> tuple[float, float]:
            if tiles == 1 and not parts.around:
                return _filling(queries, keys, room_for(names))
            return _cell(queries, keys, room_for(names), 640, largest=96, smallest_side=32)

        names, cell = _label_columns(cell_for, column_texts, numbered, parts)
        tile = keys * cell[0], queries * cell[1]
        least = math.ceil(labels["line"]) if labels else 0  # a label may need more room
        across = min(max(math.ceil(tile[0] - 1e-6), least), room_for(names))
        words, label_height = _words(across, labels)
        step = across + GAP, math.ceil(tile[1] - 1e-6) + label_height + names.height + GAP
        top = CAPTION if parts.title else max(margins.above() - label_height - names.height, 0)
        area = Box(left - EDGE, top, (columns - 1) * step[0] + across + 2 * EDGE, rows * step[1] - GAP + EDGE)
        strip = Strip(columns, rows, area, cell, tile, step, label_height + names.height, words, names.height)
        first = strip.place(0)
        if stacked:
            bar = margins.lying(Box(left, area.bottom + 8, max(tile[0], 160), BAR_LYING), bar_ticks)
        else:
            bar = Box(area.right + 18 - EDGE, first.y, BAR + bar_ticks - 18, min(max(area.bottom - first.y, 140), 320))
        return _alone(width, strip, bar, 8, margins, MapPlace(first, cell, row_labels, names))

    most = max(min(tiles, int((width - left - beside + GAP) // (_least(labels)[0] + 24 + GAP))), 1)
    grids = [grid(columns) for columns in range(1, most + 1)]
    fitting = [place for place in grids if place.height <= budget] or [min(grids, key=lambda place: place.height)]
    numbers = [place for place in fitting if has_numbers((queries, keys), place.strip.cell)]
    large = [place for place in numbers or fitting if max(place.strip.tile) >= LARGE]

    def worth(place: Tiled) -> tuple[float, int]:
        wide, high = place.strip.tile
        full = tiles / (place.strip.columns * place.strip.rows)
        return wide * high * full ** (EVEN if large else 0), -place.height

    return max(large or fitting, key=worth)


def arrange_grid(
    width: int,
    rows: int,
    columns: int,
    queries: int,
    keys: int,
    left: float,
    bar_ticks: float = BAR_TICKS,
    labels: Mapping[str, float] | None = LABELS,
    parts: Parts = ALL,
    height: float = math.inf,
) -> Tiled:
    """Lay ``rows`` × ``columns`` tiles out alone, ``left`` px to their left for the names of rows.

    A colour bar stands beside them, or below where that leaves them too little. Where so many columns have no room for their numbers, each
    row becomes several, evenly filled. Tiles are lower where that keeps them within a ``height``, as long as one sees them.
    """
    stacked, labels, left = width < NARROW, labels if parts.title else None, left if parts.labels else 0
    margins = Margins(stacked, parts)
    beside = margins.right(bar_ticks)

    def room_in(columns: int) -> float:
        return (width - left - beside - 2 * EDGE - (columns - 1) * GAP) // columns

    even = [fewer for fewer in range(1, columns + 1) if columns % fewer == 0]
    fitting = max([fewer for fewer in even if room_in(fewer) + GAP - 4 >= _least(labels)[1]], default=1)
    room = max(room_in(fitting), 1)
    usual = 88 if rows < 4 else 56 if rows < 9 else 44
    tall = min(usual, max((height - CAPTION) // rows - LABEL_HEIGHTS["percent"] - 4, LEAST))
    cell = _cell(queries, keys, min(room, 112), tall, largest=28, smallest_side=min(room, 32))
    tile = keys * cell[0], queries * cell[1]
    across = min(max(math.ceil(tile[0] - 1e-6), 112 if labels else 0), room)  # a label may need more room than a narrow tile
    words, label_height = _words(across, labels and {name: labels[name] for name in ("percent", "number")})
    columns, rows = fitting, rows * columns // fitting
    step = across + GAP, math.ceil(tile[1] - 1e-6) + label_height + 4
    top = CAPTION if parts.title else max(margins.above(corner=False) - label_height, 0)
    area = Box(left, top, (columns - 1) * step[0] + math.ceil(tile[0] - 1e-6) + 2 * EDGE, rows * step[1] + EDGE)
    strip = Strip(columns, rows, area, cell, tile, step, label_height, words)
    if stacked:
        bar = margins.lying(Box(left, area.bottom + 8, max(min(tile[0], width - left - 12), 160), BAR_LYING), bar_ticks)
    else:
        first = strip.place(0).y
        long = min(max(area.bottom - first - EDGE, 140), 320, height - first)
        bar = Box(area.right + 18, first, BAR + bar_ticks - 18, long)
    return _alone(width, strip, bar, 4, margins)


def _alone(width: int, strip: Strip, bar: Box, gap: int, margins: Margins, names: MapPlace | None = None) -> Tiled:
    """The Geometry of tiles without large maps, the legend ``gap`` px below them."""
    bars = (bar,) if margins.parts.bar else ()
    tiles = strip.area.bottom - (0 if margins.parts.legend else EDGE)  # the area ends with the room of a frame
    bottom = max(tiles, *(box.bottom for box in bars)) if bars else tiles
    legend = Box(0, bottom + margins.below(gap), width, margins.legend)
    return Tiled(width, math.ceil(legend.bottom), strip, (), bars, margins.stacked, legend, names, margins.parts)


def _least(labels: Mapping[str, float] | None) -> tuple[float, float]:
    """px that a tile must have across for a name with its value, and for its number alone."""
    return (labels["percent"], labels["number"]) if labels else (LEAST, LABELS["number"])


def _strip(
    width: int, heads: int, queries: int, keys: int, top: float, budget: float, labels: Mapping[str, float] | None
) -> Strip:
    """The arrangement in evenly filled rows that gives the largest tiles within its share of the budget; else the lowest one."""
    share, tallest = (0.45 if width < NARROW else 0.34) * budget, min(max(0.16 * budget, 72), 128)

    def room_in(columns: int) -> int:
        return (width - 2 * EDGE - (columns - 1) * GAP) // columns

    valued, numbered = _least(labels)
    many = width >= NARROW and room_in(-(-heads // ROWS)) < valued
    least = max(LEAST, numbered) if many else valued
    strips: list[tuple[float, Strip]] = []  # what its share leaves a row of tiles, and the strip; the lowest first
    for rows in range(1, heads + 1):
        columns = -(-heads // rows)
        room = room_in(columns)
        if room < least and columns > 1:
            continue
        _, label = _words(min(room, 128), labels)
        spare = share / rows - label - GAP
        tall = spare if spare >= 40 else tallest if width < NARROW else 48  # beyond its share: small, or on a phone as it likes
        strips.append((spare, _rows_of(columns, rows, room, queries, keys, top, min(tallest, tall), labels)))
    fitting = [strip for spare, strip in strips if spare >= 40]
    return max(fitting, key=lambda s: s.tile[0] * s.tile[1]) if fitting else strips[0][1]


def _rows_of(
    columns: int, rows: int, room: int, queries: int, keys: int, top: float, tallest: float, labels: Mapping[str, float] | None
) -> Strip:
    cell = _cell(queries, keys, room, tallest, largest=28, smallest_side=32)
    tile = keys * cell[0], queries * cell[1]
    across = min(max(math.ceil(tile[0] - 1e-6), 128 if labels else 0), room)  # a label may need more room than a narrow tile
    words, label = _words(across, labels)
    step = across + GAP, math.ceil(tile[1] - 1e-6) + label + GAP
    area = Box(0, top, (columns - 1) * step[0] + math.ceil(tile[0] - 1e-6) + 2 * EDGE, rows * step[1] - GAP + EDGE)
    return Strip(columns, rows, area, cell, tile, step, label, words)


def _words(across: float, labels: Mapping[str, float] | None) -> tuple[str, int]:
    """What a label says above a tile that many px across, and how high it is; without labels, room for a frame."""
    if not labels:
        return "", EDGE
    words = next(words for words, least in labels.items() if across + GAP - 4 >= least or words == "number")
    return words, LABEL_HEIGHTS[words]


def _cell(queries: int, keys: int, width: float, height: float, largest: float, smallest_side: float) -> tuple[float, float]:
    """(width, height) of one cell of a map that fits into width × height: square, unless the map would be too thin to see."""
    side = min(width / keys, height / queries, largest)
    side = math.floor(side) if side >= 4 else side  # whole px draw even cells
    wide = max(side, min(smallest_side / keys, width / keys, largest))
    high = max(side, min(smallest_side / queries, height / queries, largest))
    return wide, high


def _filling(queries: int, keys: int, width: float) -> tuple[float, float]:
    """(width, height) of one cell of a map that is as wide as that: square, unless the map would be much higher than wide."""
    return width / keys, min(width / keys, 1.2 * width / queries)


def _label_columns(
    cell_for: Callable[[ColumnLabels], tuple[float, float]], text: float, numbered: bool, parts: Parts
) -> tuple[ColumnLabels, tuple[float, float]]:
    """The first way of naming columns, from the most readable on, that fits the cells which it leaves."""
    if not parts.labels:
        none = ColumnLabels(0, ROW_PITCH, 0, 0)
        return none, cell_for(none)
    text, angle = math.ceil(text), math.radians(SLANT)
    lying = ColumnLabels(0, text + (3 if numbered else 6), 20, 0)
    slanted = ColumnLabels(-SLANT, 18.5, math.ceil(text * math.sin(angle)) + 16, math.ceil(text * math.cos(angle)) + 6)
    standing = ColumnLabels(-90, ROW_PITCH, text + 8, 0)
    for labels in (lying, slanted, standing):
        cell = cell_for(labels)
        if numbered or cell[0] >= labels.pitch:
            return labels, cell
    labels = lying if text <= 32 else standing  # not every column can be named
    return labels, cell_for(labels)
