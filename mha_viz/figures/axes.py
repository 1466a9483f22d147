"""The axes of a picture of heads: where cells stand, what they are called on hover, and which names are drawn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mha_viz.core.pool import Pool
from mha_viz.figures.geometry import Box, Geometry, MapPlace, Strip
from mha_viz.figures.labels import Names
from mha_viz.figures.margins import EDGE
from mha_viz.figures.piece import Axes, Piece
from mha_viz.figures.theme import Theme

STRIP = ("x", "y")


@dataclass(frozen=True)
class Side:
    """What the cells of a map are called: the Names of its ``rows`` and ``columns``, by blocks where ``pool`` makes them so."""

    rows: Names
    columns: Names
    pool: Pool

    def ticks(self, side: int) -> tuple[list[float], list[str]]:
        """Places of cells or blocks along rows (0) or columns (1), in cells from the first one, and their exact names."""
        step, blocks = self.pool.step[1 - side], (self.pool.rows, self.pool.columns)[side]
        places = [round(i * step + (step - 1) / 2, 6) for i in range(blocks)]
        return places, list(self.pool.ranges((self.rows, self.columns)[side].exact, side))


def cell_axes(place: Geometry, i: int) -> Axes:
    """The names of the axes on which the cells of large map ``i`` lie: ("x2", "y2")."""
    return f"x{i + 2}", f"y{i + 2}"


def name_axes(place: Geometry, i: int) -> Axes:
    """The axes over those of large map ``i``, or of row ``i`` of a strip with names, which draw the few names that fit."""
    return (f"x{i + 2}", "y2") if place.names else (f"x{i + 2 + len(place.maps)}", f"y{i + 2 + len(place.maps)}")


def axes(
    place: Geometry,
    tiles: int,
    strip: Side | None,
    sides: Sequence[Side],
    theme: Theme,
    chosen: Collection[int],
    linked: bool = True,
) -> Piece:
    """The axes of a Geometry by name, as its layout has them.

    ``strip`` is the Side of its so many ``tiles``, ``sides`` those of its large maps, of which ``chosen`` have a strong frame.

    Plotly takes a hovered cell's name from its axis' ticks, and draws every tick that an axis has. So the axes that cells lie on
    know all names and draw none; a second pair over each large map draws as many as fit. ``linked`` maps zoom together.
    """
    found: Piece = {}
    if place.strip and strip:
        found |= _strip(place, place.strip, strip)
        if place.names:
            found |= _names_of_strip(place, place.strip, place.names, tiles, strip, theme)
    for m, (map, side) in enumerate(zip(place.maps, sides, strict=True)):
        cells, names = cell_axes(place, m), name_axes(place, m)
        color, thick = (theme.choice, 3) if m in chosen else (theme.line, 1)
        for i, (ticks, step) in enumerate(((side.columns, map.column_step), (side.rows, map.row_step))):
            count, first = len(ticks.texts), cell_axes(place, 0)[i] if linked else cells[i]
            extent = [-0.5, count - 0.5] if i == 0 else [count - 0.5, -0.5]
            common = {**_axis(place, map.box, "xy"[i], extent), "fixedrange": place.stacked}
            centres, exact = side.ticks(1 - i)
            found[named(cells[i])] = {
                **common,
                "anchor": cells[1 - i],
                "tickvals": centres,
                "ticktext": exact,
                "showline": True,
                "mirror": True,
                "linecolor": color,
                "linewidth": thick,
                **({} if cells[i] == first else {"matches": first}),
            }
            places, texts = ticks.drawn(step, theme)
            drawn = place.parts.labels if i == 0 else map.row_labels > 0
            found[named(names[i])] = {
                **common,
                "anchor": names[1 - i],
                "overlaying": cells[i],
                "matches": first,
                "tickvals": places,
                "ticktext": texts,
                "showticklabels": drawn,
                "tickfont": {"size": 13},
                "side": "top" if i == 0 else "left",
                "tickangle": map.column_labels.angle if i == 0 else 0,
                "ticklabelstandoff": 4,
            }
    return found


def _strip(place: Geometry, strip: Strip, side: Side) -> Piece:
    """One pair of axes for all tiles of the strip, in cells from the first cell of the first tile."""
    step_x, step_y = strip.step[0] / strip.cell[0], strip.step[1] / strip.cell[1]
    (down, rows), (along, columns) = side.ticks(0), side.ticks(1)
    return {
        "xaxis": {
            **_axis(place, strip.area, "x", _range_x(strip)),
            "anchor": "y",
            "fixedrange": True,
            "ticktext": columns * strip.columns,
            "tickvals": [round(column * step_x + i, 6) for column in range(strip.columns) for i in along],
        },
        "yaxis": {
            **_axis(place, strip.area, "y", _range_y(strip)),
            "anchor": "x",
            "fixedrange": True,
            "ticktext": rows * strip.rows,
            "tickvals": [round(row * step_y + i, 6) for row in range(strip.rows) for i in down],
        },
    }


def _range_x(strip: Strip) -> list[float]:
    beside = EDGE / strip.cell[0]
    return [-beside - 0.5, strip.area.width / strip.cell[0] - beside - 0.5]


def _range_y(strip: Strip) -> list[float]:
    above = strip.label_height / strip.cell[1]
    return [strip.area.height / strip.cell[1] - above - 0.5, -above - 0.5]


def _names_of_strip(place: Geometry, strip: Strip, names: MapPlace, tiles: int, side: Side, theme: Theme) -> Piece:
    """Axes over a strip's that draw names: of keys above each row of tiles, of queries left of the first tile of each row."""
    found: Piece = {}
    drawn: Piece = {"anchor": "free", "fixedrange": True, "showticklabels": place.parts.labels}
    drawn |= {"tickfont": {"size": 13}, "ticklabelstandoff": 4}
    step_x, step_y = strip.step[0] / strip.cell[0], strip.step[1] / strip.cell[1]
    places, texts = side.columns.drawn(names.column_step, theme)
    for row in range(strip.rows):
        top, count = strip.place(row * strip.columns).y, min(strip.columns, tiles - row * strip.columns)
        found[f"xaxis{row + 2}"] = {
            **_axis(place, strip.area, "x", _range_x(strip)),
            **drawn,
            "overlaying": "x",
            "position": 1 - top / place.height,
            "side": "top",
            "tickangle": names.column_labels.angle,
            "ticktext": texts * count,
            "tickvals": [round(column * step_x + i, 6) for column in range(count) for i in places],
        }
    places, texts = side.rows.drawn(names.row_step, theme)
    found["yaxis2"] = {
        **_axis(place, strip.area, "y", _range_y(strip)),
        **drawn,
        "overlaying": "y",
        "position": strip.place(0).x / place.width,
        "side": "left",
        "ticktext": texts * strip.rows,
        "tickvals": [round(row * step_y + i, 6) for row in range(strip.rows) for i in places],
    }
    return found


def _axis(place: Geometry, box: Box, side: str, extent: list[float]) -> Piece:
    """An axis along one side of ``box`` that draws nothing."""
    along_x, along_y = [box.x / place.width, box.right / place.width], [1 - box.bottom / place.height, 1 - box.y / place.height]
    return {
        "domain": along_x if side == "x" else along_y,
        "range": extent,
        "tickmode": "array",
        "showticklabels": False,
        "ticks": "",
        "showgrid": False,
        "zeroline": False,
        "automargin": False,
    }


def named(axis: str) -> str:
    """ "x2" → "xaxis2": a trace's name for an axis, and the layout's."""
    return f"{axis[0]}axis{axis[1:]}"
