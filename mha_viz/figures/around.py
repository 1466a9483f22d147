"""What stands around the maps: captions, titles, labels of the strip, colour bars, legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mha_viz.analysis import STATISTICS
from mha_viz.analysis.choice import Choice
from mha_viz.analysis.norms import QUANTITY, SOFTMAX, by_norms
from mha_viz.core.pool import Pool
from mha_viz.core.sight import pooling_of
from mha_viz.core.trace import Trace
from mha_viz.figures import piece
from mha_viz.figures.geometry import Box, Geometry, MapPlace, Strip
from mha_viz.figures.labels import SIZE, Names
from mha_viz.figures.piece import Axes, Looks, Piece, color_bar, note, quiet
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import Theme
from mha_viz.figures.widths import width_of
from mha_viz.settings.view import UNSORTED

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class Label(NamedTuple):
    """What stands above a tile: the ``name`` of its map, what is ``said`` of that, and the ``value`` alone where there is little room."""

    name: str
    said: str
    value: str


SHORT = ("percent", "number")  # labels without the word "head"
_MEASURE = "Jensen–Shannon divergence of its rows: 0 % equal, 100 % no key in common"
SAID = {  # of a head: in a label, and in the caption
    "difference": ("differs", "difference from the average"),
    "entropy": ("entropy", "entropy"),
    "confidence": ("largest", "largest weight"),
    "distance": ("distance", "distance"),
    "previous": ("previous", "weight on the previous token"),
    "self": ("own", "weight on the query's own token"),
    "next": ("next", "weight on the next token"),
    "first": ("first", "weight on the first token"),
    "induction": ("induction", "weight on what followed the same token before"),
    "contribution": ("brings", "contribution to the output"),
}


def every_head(choice: Choice, H: int) -> str:
    """What the strip shows: "Every head", or "2 of 8 heads" where some were chosen."""
    return "Every head" if len(choice.order) == H else f"{len(choice.order)} of {H} heads"


def captions(order: str, heads: str = "Every head", dropout: bool = False, known: bool = True) -> tuple[str, ...]:
    """Captions of the strip, the longest first: which ``heads`` it shows and in which order.

    With ``dropout`` they add that the order comes from weights before it. The order is not ``known`` before all rows of a long
    sequence have been read.
    """
    if not known:
        return (f"{heads} by number",)
    before = ", before dropout" if dropout else ""
    if order == "difference":
        return (
            f"{heads}, the one that differs most from the average first ({_MEASURE}{before})",
            f"Heads by how much they differ from the average (Jensen–Shannon{before})",
            f"Heads by difference from the average{before}",
        )
    if order in UNSORTED:
        listed = "by number" if order == "index" else "as listed"
        return (
            f"{heads} {listed}, and how much each differs from the average ({_MEASURE}{before})",
            f"Heads, and how much they differ from the average (Jensen–Shannon{before})",
            f"Heads: difference from the average{before}",
        )
    phrase = SAID[order][1]
    return (
        f"{heads} by {phrase}, the largest first ({STATISTICS[order].meaning}{before})",
        f"Heads by {phrase}, the largest first{before}",
        f"Heads by {phrase}{before}",
    )


def weighted(trace: Trace) -> str:
    """What a caption adds where maps show no plain attention weights: " · value-norm weighted"."""
    if trace.quantity == SOFTMAX:
        return " · as the softmax gave them"
    return f" · {QUANTITY}ed" if by_norms(trace) else ""


def pooled(trace: Trace, tiles: Pool | None, large: Pool | None, what: str | None = None) -> tuple[str, ...]:
    """Say how the maps of a picture are pooled, as the end of its caption.

    Texts from the longest on, ("",) where every cell is drawn. ``tiles`` and ``large`` are the Pools of both, None for maps that there are
    not; each block stands for the largest ``what`` in it, the Trace's quantity where None. Of a part of a longer map they say which part.
    """
    if trace.tokens.sight is not None:
        return seen(trace)
    what = what or trace.quantity
    small, big = (None if pool is None or pool.whole else block_size(pool) for pool in (tiles, large))
    if small and big:
        long = f"each pixel of a tile is the largest {what} of {small} cells, of a large map {big}"
        return f" · pooled: {long}", f" · pooled, max of {small}, large maps {big}"
    block = small or big
    if not block:
        return ("",)
    where = "" if small or tiles is None else ", large maps"
    return f" · pooled{where}: each pixel is the largest {what} of {block} cells", f" · pooled, max of {block}"


def seen(trace: Trace) -> tuple[str, ...]:
    """Say which part of a longer map is in sight, and how exactly, as the end of a caption.

    Texts from the longest on, ("",) for a Trace that is whole.
    """
    sight = trace.tokens.sight
    if sight is None:
        return ("",)
    (top, bottom), (left, right) = sight.spans
    part = f"queries {top:,}–{bottom - 1:,}, keys {left:,}–{right - 1:,}"
    if sight.exact:
        return f" · exact: {part}", " · exact"
    blocks = f" · pooled, {pooling_of(trace.quantity)} of {block_size(sight.pool)}"
    return f"{blocks}: {part}", blocks


def block_size(pool: Pool) -> str:
    down, across = pool.size
    return f"{'' if pool.L % pool.rows == 0 and pool.S % pool.columns == 0 else 'up to '}{down} × {across}"


def percent(part: float) -> str:
    """A part from 0 to 1 as a person reads it: 37 %, 3.2 %, n/a."""
    return "n/a" if np.isnan(part) else f"{100 * part:.{1 if part < 0.0995 else 0}f} %"


def value(choice: Choice, head: int) -> str:
    """What the ordering statistic says of a head, with its unit: "93 %", "5.2 tokens" without the unit's name."""
    found = choice.values[head]
    if STATISTICS[choice.statistic].unit == "%":
        return percent(found)
    return "n/a" if np.isnan(found) else f"{found:.1f}"


def said(choice: Choice, head: int) -> str:
    """ "differs 4.5 %", "entropy 93 %", "distance 5.2"; nothing of what is not known yet."""
    if not choice.known:
        return ""
    return f"{SAID[choice.statistic][0]} {value(choice, head)}"


def caption(place: Geometry, line: int, texts: Sequence[str], theme: Theme) -> Piece:
    """The first of some texts that fits, as the picture's caption in this ``line``."""
    text = next((text for text in texts if width_of(text, 13) < place.width), texts[-1])
    return text_at(place, 0, 9 + 22 * line, text, 13, theme.soft)


def titles(place: Geometry, names: Sequence[tuple[str, Sequence[str]]], theme: Theme, columns: Names) -> list[Piece]:
    """The titles of the large maps and the names of their axes.

    ``names`` are pairs (name, what is said of it, the longest first). The names of axes make way for the first of the Names of ``columns``.
    """
    found: list[Piece] = []
    for map, (name, more) in zip(place.maps, names, strict=True):
        title = map.title
        room = title.width - width_of(name, 17, bold=True)
        text = next((text for text in more if width_of(text, 14) < room), "")
        text = f"<b>{name}</b> <span style='color:{theme.soft};font-size:14px'>{text}</span>"
        if place.parts.title:
            found.append(text_at(place, title.x, title.y + title.height / 2, text, 17, theme.text))
        if map.row_labels:
            found.append(_axis_names(place, map, theme, columns))
    return found + ([_axis_names(place, place.names, theme, columns)] if place.names and place.parts.labels else [])


def _axis_names(place: Geometry, map: MapPlace, theme: Theme, columns: Names) -> Piece:
    """What rows and columns are, left above a map; of a part of a long one out of the way of its first numbers, which are long."""
    right, middle = map.box.x - 8, map.box.y - 18
    if columns.of_more and not map.column_labels.angle:
        right -= max(0, width_of(columns.short[0], SIZE) / 2 - map.cell[0] / 2 - 4)
        middle -= max(0, 6 - map.cell[1] / 2)
    return text_at(place, right, middle, "key → is read<br>query ↓ asks", 13, theme.soft, xanchor="right", align="right")


def text_at(place: Geometry, x: float, y: float, text: str, size: float, color: str, **more: object) -> Piece:
    where = {"xanchor": "left", "yanchor": "middle", "align": "left", "borderpad": 0}
    return note(text, x / place.width, 1 - y / place.height, size, color, **(where | more))


def row_words(looks: Looks, cell: tuple[float, float], axes: Axes, theme: Theme) -> list[Piece]:
    """The word "undefined" or "NaN" on each block of rows of a large map that are so throughout.

    An annotation for each block that has room for the word, up to eight.
    """
    found: list[Piece] = []
    for look, word in (("undefined", "undefined"), ("nan", "NaN")):
        found += _words_on(looks[look][0].all(axis=1), word, cell, axes, theme)
    return found


def _words_on(rows: Bool[np.ndarray, " L"], word: str, cell: tuple[float, float], axes: Axes, theme: Theme) -> list[Piece]:
    """A ``word`` on each run of ``rows`` [L] bool."""
    found: list[Piece] = []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], rows, [False]])))
    for top, bottom in edges.reshape(-1, 2).tolist():
        if (bottom - top) * cell[1] >= 16 and len(found) < 8:
            found.append(
                {
                    "text": word,
                    "x": 0.5,
                    "xref": f"{axes[0]} domain",
                    "y": (top + bottom - 1) / 2,
                    "yref": axes[1],
                    "showarrow": False,
                    "bgcolor": theme.paper,
                    "borderpad": 1,
                    "font": {"size": 13, "color": theme.text},
                }
            )
    return found


def label_widths(labels: Sequence[Label]) -> dict[str, float]:
    """px that the widest of such labels takes in each of the ways in which a strip can say it."""
    return {
        "line": max(width_of(name, 14, bold=True) + width_of(f" {said}", 14) for name, said, _ in labels),
        "lines": max(max(width_of(name, 14, bold=True), width_of(said, 14)) for name, said, _ in labels),
        "percent": max(width_of(_least(name), 13, bold=True) + width_of(f" {value}", 13) for name, _, value in labels),
        "number": max(width_of(_least(name), 13, bold=True) for name, _, _ in labels),
    }


def title_of(strip: Strip, name: str) -> list[str | int]:
    """A tile's name as its label has it, and the size of that text in px."""
    return [_least(name), 13] if strip.words in SHORT else [name, 14]


def _least(name: str) -> str:
    return name.rpartition("head ")[2].replace("average", "avg")


def strip_labels(strip: Strip, origins: Float[np.ndarray, "T 2"], labels: Iterable[Label], axes: Axes, theme: Theme) -> Piece:
    """The labels above tiles, (name, what is said of it, its value alone), as one trace of texts."""
    texts = []
    for name, said, value in labels:
        between, more = {"line": (" ", said), "lines": ("<br>", said), "percent": (" ", value), "number": ("", "")}[strip.words]
        texts.append(f"<b>{title_of(strip, name)[0]}</b><span style='color:{theme.soft}'>{between}{more}</span>")
    x, y = (origins - [0.5, 0.5 + (3 + strip.names) / strip.cell[1]]).T  # 3 px above the tile's corner, or its names
    font = {"size": 13 if strip.words in SHORT else 14, "color": theme.text}
    return quiet("text", x, y, axes, text=texts, textposition="top right", textfont=font, cliponaxis=False)


def bar(place: Geometry, box: Box, scale: Scale, theme: Theme) -> Piece:
    """A colour bar: beside the maps, or below them where they are stacked."""
    length = box.width if place.stacked else box.height
    drawn = color_bar(box.x / place.width, 1 - box.y / place.height, length, place.stacked, scale, theme)
    return drawn | {"tickmode": "array"}


def legend(place: Geometry, theme: Theme) -> Piece:
    """What each hatch means, in a line below everything."""
    font = {"size": 14, "color": theme.text}
    return piece.legend(0, 1 - place.legend.y / place.height, font=font, itemsizing="constant")
