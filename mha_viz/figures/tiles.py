"""A map's cells as Plotly traces: weights as heatmaps, what holds no weight as hatched polygons, outlines.

The traces are plain dicts: that is many times faster than Plotly's classes, and a figure checks them all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.cells import NUMBERS
from mha_viz.core.decimals import in_decimals
from mha_viz.core.pool import Pool
from mha_viz.figures.piece import Axes, Looks, Piece, Stroke, quiet
from mha_viz.figures.theme import Theme

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Num

LOOKS = {  # in the order of the legend; of two that meet, the first wins; "once" where two Traces are compared
    "undefined": ("undefined: no key left", "x"),
    "nan": ("NaN, and no mask made it", "+"),
    "inf": ("+∞", "|"),
    "-inf": ("−∞", "-"),
    "masked": ("masked: may not be read", "/"),
    "once": ("masked in one of the two", "/"),
    "padded": ("padded query", "."),
    "lower": ("lower in B", "\\"),
}
THROUGH = ("once", "lower")  # looks that the colour of a cell is seen through


def pooled_looks(looks: Looks, pool: Pool) -> Looks:
    """``looks`` of cells, each [T, L, S], as those of a Pool's blocks: one cell that is not finite is enough, of the others all count."""
    return {name: pool.any(cells) if name in NUMBERS else pool.all(cells) for name, cells in looks.items()}


def polygons(
    cells: Bool[np.ndarray, "B L S"],
) -> tuple[Int[np.ndarray, " P"], Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """Batch index, x and y, [P] each, of polygons that cover exactly the True cells of [B, L, S], a NaN point after each polygon.

    Edges lie on whole numbers: a cell reaches from its column to the next, from its row to the next. Runs of True in a row that
    touch the run of the same rank in the row above make one polygon, as long as both rows have equally many runs.
    """
    L, S = cells.shape[1:]
    padded = np.zeros((*cells.shape[:2], S + 2), bool)
    padded[:, :, 1:-1] = cells
    turns = np.flatnonzero(padded[:, :, 1:] != padded[:, :, :-1])  # [2K] a run's first edge, its last, the next one's first, …
    line, left = np.divmod(turns[::2], S + 1)  # [K]; line counts the rows of all batches
    right = turns[1::2] % (S + 1)  # [K]
    runs = np.bincount(line, minlength=len(cells) * L)  # [B · L]
    rank = np.arange(len(line)) - (np.cumsum(runs) - runs)[line]  # [K] from the left in its row
    order = np.lexsort((line, rank, line // L))
    line, left, right, rank = line[order], left[order], right[order], rank[order]
    follows = (
        (line[1:] == line[:-1] + 1)
        & (line[1:] % L > 0)
        & (rank[1:] == rank[:-1])
        & (runs[line[1:]] == runs[line[:-1]])
        & (left[1:] < right[:-1])
        & (left[:-1] < right[1:])
    )
    first = np.append(True, ~follows)[: len(line)]
    last = np.append(~follows, True)[: len(line)]
    polygon, top = np.cumsum(first), line % L  # [K] each
    corners = [  # down the right sides, up the left ones, then a gap: polygon, place on that way, y, x
        *_side(polygon, top, right, first, last, 1),
        *_side(polygon, top, left, first, last, -1),
        (polygon[last], np.full(last.sum(), np.inf), np.full(last.sum(), np.nan), np.full(last.sum(), np.nan)),
    ]
    polygon, place, y, x = map(np.concatenate, zip(*corners, strict=True))  # [P] each
    order = np.lexsort((place, polygon))
    return (line[first] // L)[polygon[order] - 1], x[order], y[order]


def _side(
    polygon: Int[np.ndarray, " K"],
    top: Int[np.ndarray, " K"],
    edge: Int[np.ndarray, " K"],
    first: Bool[np.ndarray, " K"],
    last: Bool[np.ndarray, " K"],
    sign: int,
) -> tuple[tuple[np.ndarray, ...], ...]:
    """The corners of one side: its two ends, and two wherever it steps. Places count 2 a row, from −∞ up on the left side."""
    L = 2 * (top.max(initial=0) + 2)
    step = np.flatnonzero(~first & (np.append(0, edge[:-1]) != edge))

    def place(y: Int[np.ndarray, " K"], after: int) -> Int[np.ndarray, " K"]:
        return (0 if sign > 0 else 2 * L) + sign * (2 * y + after)

    return (
        (polygon[first], place(top[first], 1), top[first], edge[first]),
        (polygon[step], place(top[step], 0), top[step], edge[step - 1]),
        (polygon[step], place(top[step], 1), top[step], edge[step]),
        (polygon[last], place(top[last] + 1, 0), top[last] + 1, edge[last]),
    )


def outlines(
    top: Num[np.ndarray, " K"], bottom: Num[np.ndarray, " K"], left: Num[np.ndarray, " K"], right: Num[np.ndarray, " K"]
) -> Stroke:
    """x and y, [7K] float32, of one line that draws K rectangles, with a gap (NaN) after each; edges in axis units, [K] each.

    Each ends with the side that it began with, so that its first corner is as full as the others.
    """
    gap = np.full(len(top), np.nan)
    x = np.stack([left, right, right, left, left, right, gap], axis=1).ravel()  # [7K]
    y = np.stack([top, top, bottom, bottom, top, top, gap], axis=1).ravel()  # [7K]
    return x.astype(np.float32), y.astype(np.float32)


def heatmap(
    drawn: Float[np.ndarray, "rows columns"],
    name: str,
    axes: Axes,
    first: Sequence[float] = (0.0, 0.0),
    pool: Pool | None = None,
    exact: Float[np.ndarray, "rows columns"] | None = None,
    coloraxis: str = "coloraxis",
    gap: int = 0,
    number: str = "weight %{z:.6f}",
) -> Piece:
    """One map of what is ``drawn``, on a shared colour scale, the centre of its first cell at ``first`` (x, y) of ``axes``.

    drawn [L, S], or the blocks [rows, columns] of ``pool``; ``exact``, of the same shape, is the weight where the two differ.
    ``number`` is what hovering says of it.
    """
    step = (1, 1) if pool is None else pool.step
    x0, y0 = (start + (width - 1) / 2 for start, width in zip(first, step, strict=True))
    down, across = (1, 1) if pool is None else pool.size
    where = f"{'query' if down == 1 else 'queries'} %{{y}}<br>{'key' if across == 1 else 'keys'} %{{x}}"
    if down * across > 1:
        number = f"largest {number}"
    if exact is not None:
        number = number.replace("%{z:", "%{customdata:")
    trace = {
        "type": "heatmap",
        "z": np.ascontiguousarray(drawn, np.float32),
        "x0": x0,
        "dx": step[0],
        "y0": y0,
        "dy": step[1],
        "name": name,
        "xaxis": axes[0],
        "yaxis": axes[1],
        "xgap": gap,
        "ygap": gap,
        "coloraxis": coloraxis,
        "hovertemplate": f"{where}<br>{number}<extra>%{{fullData.name}}</extra>",
    }
    return trace if exact is None else trace | {"customdata": np.ascontiguousarray(exact, np.float32)}


def bar_only(coloraxis: str, axes: Axes) -> Piece:
    """A trace without points, whose colour axis has the bar that those of the maps cannot have."""
    return quiet("markers", [None], [None], axes, marker={"color": [0], "coloraxis": coloraxis})


def hatches(
    cells: Looks, origins: Float[np.ndarray, "T 2"], axes: Axes, theme: Theme, size: float, step: tuple[float, float] = (1, 1)
) -> list[Piece]:
    """One trace per look that occurs in several tiles, whose first cells' centres are ``origins`` [T, 2].

    ``cells`` maps a look to [T, L, S], or to [1, L, S] where all tiles are alike, each cell ``step`` (x, y) wide and high; ``size`` is
    the pattern's, in px.
    """
    traces = []
    for name, where in cells.items():
        tile, x, y = polygons(where)
        if len(x) == 0:
            continue
        if len(where) == 1:
            tile, x, y = np.repeat(np.arange(len(origins)), len(x)), np.tile(x, len(origins)), np.tile(y, len(origins))
        x0, y0 = origins[tile].T - 0.5
        edge = (
            {"width": 1.5, "color": theme.text} if name in NUMBERS else {"width": 0}
        )  # one cell may be smaller than a pattern
        pattern = {
            "shape": LOOKS[name][1],
            "size": 2 * size if name == "once" else size,
            "fillmode": "replace",
            "fgcolor": theme.paper if name == "lower" else theme.hatch,
            "solidity": round({"padded": 0.2, "once": 0.15, "lower": 1}.get(name, 0.3) * theme.hatched, 3),
            "bgcolor": "rgba(0,0,0,0)" if name in THROUGH else theme.paper,
        }
        said = {"fill": "toself", "name": LOOKS[name][0], "legendgroup": name}
        if name == "lower":  # its lines show on a grey alone
            on_grey = pattern | {"bgcolor": theme.soft}
            traces.append(quiet("lines", [None], [None], axes, **said, line={"width": 0}, fillpattern=on_grey))
        x, y = ((x0 + x * step[0]).astype(np.float32), (y0 + y * step[1]).astype(np.float32))
        traces.append(quiet("lines", x, y, axes, **said, line=edge, fillpattern=pattern))
    return traces


def lower(values: Float[np.ndarray, "T L S"], theme: Theme) -> Looks:
    """The look of negative ``values``, [T, L, S], where a theme tells signs by lines; none where it tells them by hue."""
    return {"lower": values < 0} if theme.lined else {}  # NaN is not below 0


def put_in_legend(traces: Iterable[Piece]) -> None:
    """Lets the legend name each look once, in the order of LOOKS."""
    named = set()
    for trace in traces:
        look = trace.get("legendgroup")
        if look and look not in named:
            named.add(look)
            trace |= {"showlegend": True, "legendrank": list(LOOKS).index(look)}


def line(x: Float[np.ndarray, " K"], y: Float[np.ndarray, " K"], axes: Axes, color: str, width: float) -> Piece:
    """An outline that is never cut at the edge of its axes and never answers the pointer."""
    return quiet("lines", x, y, axes, cliponaxis=False, line={"color": color, "width": width})


def frame(rows: int, columns: int, axes: Axes, theme: Theme) -> Piece:
    """The outline of a map of so many cells, the centre of whose first one is at 0."""
    edges = (np.array([edge]) for edge in (-0.5, rows - 0.5, -0.5, columns - 0.5))
    return line(*outlines(*edges), axes, theme.line, 1)


def twice(edges: Stroke, axes: Axes, theme: Theme, widths: tuple[float, float] = (5, 2)) -> list[Piece]:
    """A line over a wider one: dark on light (light on dark), so that it shows on any colour."""
    return [line(*edges, axes, color, width) for color, width in zip((theme.paper, theme.text), widths, strict=True)]


def marks(
    cell: tuple[int, int],
    origins: Float[np.ndarray, "T 2"],
    shape: tuple[int, int],
    size: tuple[float, float],
    axes: Axes,
    theme: Theme,
) -> list[Piece]:
    """The chosen cell's double outline in several tiles.

    ``cell`` (x, y) counts from the tiles' ``origins`` [T, 2]; ``shape`` (S, L) is a tile's in cells, ``size`` a cell's in px. The
    outline lies within a cell, or around one that is too small for that, and always within the tile.
    """
    half = np.array([(side / 2 - 2.5 if side >= 16 else max(side / 2, 4)) / side for side in size])
    room = half + 2.5 / np.array(size) - 0.5  # between an outline's centre and the centre of a cell at the tile's edge
    x, y = (origins + np.clip(cell, room, np.maximum(np.array(shape) - 1 - room, room))).T
    edges = outlines(y - half[1], y + half[1], x - half[0], x + half[0])
    return [outline | {"meta": "mark"} for outline in twice(edges, axes, theme)]


def numbers(
    values: Float[np.ndarray, "L S"],
    hidden: Bool[np.ndarray, "L S"],
    colors: Sequence[str],
    axes: Axes,
    first: Sequence[float] = (0.0, 0.0),
    digits: int = 3,
    sign: str = "",
) -> Piece:
    """The ``values`` [L, S] printed in their cells, except ``hidden`` ones, in ``colors``: one per printed value, row by row."""
    rows, columns = np.nonzero(~hidden)
    x, y = ((start + places).astype(np.float32) for start, places in zip(first, (columns, rows), strict=True))
    texts = [in_decimals(value, digits, sign) for value in values[rows, columns].tolist()]
    return quiet("text", x, y, axes, text=texts, textfont={"size": 13, "color": colors})
