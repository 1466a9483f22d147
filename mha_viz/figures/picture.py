"""A picture of maps put together: tiles and large maps, as figures of heads and of differences have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mha_viz.core.pool import Pool
from mha_viz.figures import around, tiles
from mha_viz.figures.around import Label
from mha_viz.figures.axes import STRIP, Side, axes, cell_axes, name_axes, named
from mha_viz.figures.geometry import ROW_PITCH, Geometry, Strip, has_numbers
from mha_viz.figures.labels import Names
from mha_viz.figures.piece import Axes, Looks, Piece, Spec, ground
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import FONT, Theme, readable_on

if TYPE_CHECKING:
    from jaxtyping import Bool

MOST = 512  # cells along a side of a large map, beyond which it is pooled


class Chosen(NamedTuple):
    """What is chosen: a ``head``, None for the average, and the cell of a ``query`` and a ``key``."""

    head: int | None
    query: int
    key: int


@dataclass(frozen=True, eq=False)
class Map:
    """What a map shows: ``values`` [L, S] of a ``head`` (None: the average) on a ``scale``.

    ``name`` is what it is called, ``said`` what a title adds to that, the longest first, and ``short`` what a label does: in a
    line, and where there is little room. ``source`` tells Traces apart where there are two.
    """

    name: str
    head: int | None
    values: np.ndarray
    scale: Scale
    said: tuple[str, ...] = ("",)
    short: tuple[str, str] = ("", "")
    source: str | None = None

    @property
    def label(self) -> Label:
        """What stands above it as a tile."""
        return Label(self.name, *self.short)

    @property
    def signed(self) -> bool:
        """Whether it shows changes, more or less than nothing."""
        return self.scale.kind == "change"

    def heatmap(self, where: Axes, first: Sequence[float], pool: Pool, gap: int = 0) -> Piece:
        values, exact = pool.largest(self.values, self.signed), None  # [rows, columns]
        if self.scale.kind == "row":
            values, exact = pool.largest(self.scale.drawn(self.values)), values
        number = "change %{z:+.6f}" if self.signed else f"{self.scale.quantity} %{{z:.6f}}"
        return tiles.heatmap(values, self.name, where, first, pool, exact, _coloraxis(self.scale), gap, number)

    def numbers(
        self, hidden: Bool[np.ndarray, "L S"], cell: tuple[float, float], where: Axes, first: Sequence[float], theme: Theme
    ) -> list[Piece]:
        """Its values printed in the cells of at most 8 × 8, where they fit; ``hidden`` [L, S] bool hold none."""
        if not has_numbers(self.values.shape, cell):
            return []
        digits = 3 if cell[0] >= (52 if self.signed else 44) else 2
        colors = [readable_on(self.scale.color_at(theme, value)) for value in self.scale.drawn(self.values)[~hidden].tolist()]
        return [tiles.numbers(self.values, hidden, colors, where, first, digits, "+" if self.signed else "")]


@dataclass(frozen=True, eq=False)
class Tiles:
    """The small ``maps`` [T] of the strip.

    With the ``looks`` of their cells, each [T, L, S] or [1, L, S] where all are alike, and the Names of their rows and columns.
    """

    maps: tuple[Map, ...]
    looks: Looks
    rows: Names
    columns: Names


@dataclass(frozen=True, eq=False)
class Large:
    """A large ``map``, the ``looks`` of its cells, each [1, L, S], the Names of its rows and columns; ``strong`` in its frame."""

    map: Map
    looks: Looks
    rows: Names
    columns: Names
    strong: bool = False

    @property
    def maps(self) -> tuple[Map, ...]:
        """It alone, as ``Tiles`` has several."""
        return (self.map,)


def picture(
    place: Geometry,
    strip: Tiles | None,
    large: Sequence[Large],
    chosen: Chosen,
    scales: Sequence[Scale],
    theme: Theme,
    captions: Sequence[Sequence[str]],
    linked: bool = True,
) -> Spec:
    """The figure's dict: the Tiles of the ``strip``, or None, and the ``large`` maps where the Geometry ``place`` has them.

    ``chosen`` is the head, query and key; ``scales`` those of the colour bars; ``captions`` lines of texts, the longest of each
    first. ``linked`` maps have the same cells and zoom together.
    """
    every: list[Tiles | Large] = [*([strip] if strip else []), *large]
    L, S = every[0].maps[0].values.shape
    place = place.with_legend(
        [words for look, (words, _) in tiles.LOOKS.items() if any(look in one.looks and one.looks[look].any() for one in every)]
    )
    data: list[Piece] = []
    more: list[Piece] = []
    meta: list[Piece] = []
    words: list[Piece] = []
    sides: list[Side] = []
    small = None
    if strip and place.strip:
        small = Side(strip.rows, strip.columns, _tiles_pool(place.strip, (L, S)))
        data, more, meta = _strip(place, place.strip, strip, small.pool, chosen, theme)
    for i, one in enumerate(large):
        pool = large_pool(one.map.values.shape)
        sides.append(Side(one.rows, one.columns, pool))
        maps, rest, entries = _large(place, i, one, pool, chosen, theme)
        data, more, meta = data + maps, more + rest, meta + entries
        if place.parts.legend:
            words += around.row_words(one.looks, place.maps[i].cell, cell_axes(place, i), theme)
    coloraxes: Piece = {}
    for scale, box in zip(scales, place.bars if place.parts.bar else [None] * len(scales), strict=True):
        bar = None if box is None else around.bar(place, box, scale, theme)
        coloraxes |= scale.coloraxes(theme, bar, _coloraxis(scale))
    data += more
    if "coloraxis9" in coloraxes:
        data.append(tiles.bar_only("coloraxis9", meta[0]["axes"]))
    if place.parts.legend:
        tiles.put_in_legend(data)
    layout = {
        **axes(
            place,
            len(strip.maps) if strip else 0,
            small,
            sides,
            theme,
            [i for i, one in enumerate(large) if one.strong],
            linked,
        ),
        **ground(place.width, place.height, theme),
        "meta": _meta(place, every, large, meta, chosen, scales, theme),
        **coloraxes,
        "annotations": [
            *(around.caption(place, line, texts, theme) for line, texts in enumerate(captions if place.parts.title else ())),
            *around.titles(place, [(one.map.name, one.map.said) for one in large], theme, [*large, *every][0].columns),
            *words,
        ],
        "legend": around.legend(place, theme),
        "hovermode": "closest",
        "dragmode": False if place.stacked or not large else "zoom",
        "hoverlabel": {"font": {"family": FONT, "size": 14}, "namelength": -1},
        "uirevision": " ".join(map(str, (len(large), L, S, *_sight(every[0])))),
    }
    return {"data": data, "layout": layout}


def strip_pool(place: Geometry, shape: tuple[int, int]) -> Pool | None:
    """The Pool of the tiles of a strip, None without one."""
    return None if place.strip is None else _tiles_pool(place.strip, shape)


def _tiles_pool(strip: Strip, shape: tuple[int, int]) -> Pool:
    """Never more cells than px."""
    return Pool.fitting(*shape, strip.tile[1], strip.tile[0])


def large_pool(shape: tuple[int, int]) -> Pool:
    """The Pool of a large map: at most MOST blocks a side."""
    return Pool.fitting(*shape, MOST, MOST)


def lower(maps: Sequence[Map], pool: Pool, cell: tuple[float, float] | None, theme: Theme) -> Looks:
    """The look of what was lost in ``maps`` of changes; none of maps of weights, and none where numbers in the cells tell the sign."""
    if not maps[0].signed or (cell and has_numbers(maps[0].values.shape, cell)):
        return {}
    return tiles.lower(np.stack([pool.largest(map.values, True) for map in maps]), theme)


def _strip(
    place: Geometry, box: Strip, strip: Tiles, pool: Pool, chosen: Chosen, theme: Theme
) -> tuple[list[Piece], list[Piece], list[Piece]]:
    """Traces of the maps, those over them, and entries of the meta."""
    head, query, key = chosen
    L, S = strip.maps[0].values.shape
    row, column = np.divmod(np.arange(len(strip.maps)), box.columns)
    origins = np.stack([column * box.step[0] / box.cell[0], row * box.step[1] / box.cell[1]], axis=1)  # [T, 2] in cells
    firsts = origins.tolist()
    maps = [map.heatmap(STRIP, first, pool) for map, first in zip(strip.maps, firsts, strict=True)]
    looks = lower(strip.maps, pool, box.cell if place.names else None, theme) | tiles.pooled_looks(strip.looks, pool)
    over = tiles.hatches(looks, origins, STRIP, theme, 5, pool.step)
    strong = [i for i, map in enumerate(strip.maps) if map.head == head][:1]
    for corners, color, width in ((origins, theme.line, 1), (origins[strong], theme.choice, 3)):
        x, y = (corners - 0.5).T
        aside, above = width / 2 / box.cell[0], width / 2 / box.cell[1]
        edges = tiles.outlines(y - above, y + L + above, x - aside, x + S + aside)
        over.append(tiles.line(*edges, STRIP, color, width))
    if place.names:
        hidden = np.any(list(strip.looks.values()), axis=0)  # [T, L, S] or [1, L, S]
        for i, (map, first) in enumerate(zip(strip.maps, firsts, strict=True) if place.parts.values else ()):
            over += map.numbers(hidden[min(i, len(hidden) - 1)], box.cell, STRIP, first, theme)
        for i in range(box.rows):
            over += tiles.marks((key, query), origins[row == i], (S, L), box.cell, name_axes(place, i), theme)
    else:
        over += tiles.marks((key, query), origins, (S, L), box.cell, STRIP, theme)
    if place.parts.title:
        over.append(around.strip_labels(box, origins, [map.label for map in strip.maps], STRIP, theme))
    entries, names = [], place.names is not None and place.parts.labels
    for i, (map, (x, y)) in enumerate(zip(strip.maps, firsts, strict=True)):
        label = box.label(i)
        entries.append(
            {
                "head": map.head,
                "source": map.source,
                "axes": STRIP,
                "x0": x,
                "y0": y,
                "label": [label.x, label.y, label.width, label.height],
                "named": [names and i % box.columns == 0, names],
                "title": around.title_of(box, map.name),
            }
        )
    return maps, over, entries


def _large(
    place: Geometry, i: int, one: Large, pool: Pool, chosen: Chosen, theme: Theme
) -> tuple[list[Piece], list[Piece], list[Piece]]:
    """The same of one large map."""
    where, names, cell = cell_axes(place, i), name_axes(place, i), place.maps[i].cell
    L, S = one.map.values.shape
    spacious = min(cell) >= 8
    looks = lower([one.map], pool, cell if place.parts.values else None, theme) | tiles.pooled_looks(one.looks, pool)
    hidden = np.any(list(one.looks.values()), axis=0)[0]  # [L, S]
    over = [
        *tiles.hatches(looks, np.zeros((1, 2)), where, theme, 8 if spacious else 6, pool.step),
        *(one.map.numbers(hidden, cell, where, (0, 0), theme) if place.parts.values else []),
        *tiles.marks(
            (chosen.key, chosen.query), np.zeros((int(chosen.query < L and chosen.key < S), 2)), (S, L), cell, names, theme
        ),
    ]
    title, map = place.maps[i].title, place.maps[i]
    entry = {
        "head": one.map.head,
        "source": one.map.source,
        "axes": where,
        "x0": 0,
        "y0": 0,
        "label": [title.x, title.y, title.width, title.height],
        "named": [map.row_labels > 0, place.parts.labels],
        "title": [one.map.name, 17],
    }
    return [one.map.heatmap(where, (0, 0), pool, 1 if spacious else 0)], over, [entry]


def _meta(
    place: Geometry,
    every: Sequence[Tiles | Large],
    large: Sequence[Large],
    entries: list[Piece],
    chosen: Chosen,
    scales: Sequence[Scale],
    theme: Theme,
) -> Piece:
    """What stands where, for whoever answers the pointer: see ``heads``."""
    sides: list[Piece] = []
    names: list[Piece] = []
    for i, one in enumerate(large or every):
        rows, columns, named_by = one.rows, one.columns, place.maps[i] if large else place.names
        side: Piece = {
            "queries": rows.texts,
            "keys": columns.texts,
            "rows": rows.short,
            "columns": columns.short,
            "angle": named_by.column_labels.angle if named_by else 0,
            "first": [rows.first, columns.first],
            "blocks": [rows.blocks, columns.blocks],
        }
        if side not in sides:
            sides.append(side)
        if large:
            entries[len(entries) - len(large) + i]["side"] = sides.index(side)
            across, down = name_axes(place, i)
            drawn = [(across, columns, place.maps[i].column_labels.pitch)] if place.parts.labels else []
            drawn += [(down, rows, ROW_PITCH)] if place.maps[i].row_labels else []
            names += [{"axes": [named(axis)], "texts": own.drawn(1, theme)[1], "pitch": pitch} for axis, own, pitch in drawn]
    head, query, key = chosen
    order = [head]
    if isinstance(every[0], Tiles):
        order = list(dict.fromkeys(map.head for map in every[0].maps if map.head is not None))
    return {
        "kind": "maps",
        "tiles": entries,
        "queries": sides[0]["queries"],
        "keys": sides[0]["keys"],
        "sides": sides,
        "names": names,
        "order": order,
        "largest": {"change" if scale.kind == "change" else "weight": scale.high for scale in scales},
        "chosen": {"head": head, "query": query, "key": key},
        "quantity": scales[0].quantity,
    }


def _sight(one: Tiles | Large) -> list[str]:
    """What is in sight of a longer map, by the first and the last name of each side: another part of it begins without a zoom."""
    return [end for side in (one.rows, one.columns) if side.of_more for end in (side.texts[0], side.texts[-1])]


def _coloraxis(scale: Scale) -> str:
    return "coloraxis2" if scale.kind == "change" else "coloraxis"
