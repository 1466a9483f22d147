"""Maps of sequences too long to be drawn whole: every head pooled, one of them large, and a window of it cell by cell.

A pooled map is drawn as any other; its cells are blocks, named by the numbers of their queries and keys.
"""

from itertools import pairwise

import numpy as np

from mha_viz.figures import around
from mha_viz.figures.geometry import arrange, arrange_all
from mha_viz.figures.heads import ticks_width, widest_labels
from mha_viz.figures.labels import Names
from mha_viz.figures.picture import Large, Map, Tiles, picture, strip_pool
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import THEMES
from mha_viz.figures.tiles import looks

NARROW = 480  # px: below, a colour bar lies under its map
QUANTITIES = {"max": "largest weight", "mean": "mean weight"}  # what a cell of a pooled map is


def every_head(tokens, maps, chosen, view, theme="light", width=1104):
    """The Pooled ``maps`` of one batch item side by side, as a plain dict for Plotly; ``tokens`` are the Trace's.

    ``view.pooling`` says whether a cell is the largest weight of its block or the mean, ``view.scale`` and ``view.limits`` how it is
    coloured, on one Scale for all. ``chosen`` is the head, and the block's row and column, that are marked.
    """
    theme, scale = THEMES[theme].dressed(view.colors), scale_of(maps, view)
    rows, columns = _blocks(tokens, maps[0], width)
    tiles = [_map(one, view, scale) for one in maps]
    hidden = {
        name: np.concatenate([_looks(tokens, one)[name] for one in maps]) for name in _looks(tokens, maps[0])
    }  # [T, R, C]
    shape = maps[0].largest.shape
    place = arrange_all(width, len(tiles), *shape, rows.widest, columns.widest, True, ticks_width(scale), widest_labels(tiles))
    drawn = strip_pool(place, shape)
    cells = " × ".join(str(a * b) for a, b in zip(drawn.size, maps[0].pool.size, strict=True))
    what = "largest weight" if view.pooling == "max" else "largest mean of blocks"
    texts = (
        f"Every head, pooled: each pixel is the {what} among {cells} cells",
        f"Every head, pooled, {view.pooling} of {cells}",
    )
    return picture(place, Tiles(tuple(tiles), hidden, rows, columns), [], chosen, [scale], theme, [texts])


def pooled_head(tokens, maps, chosen, view, theme="light", width=552):
    """One of the Pooled ``maps``, large, on the Scale of them all; ``chosen`` is its head, and the block that is marked."""
    found = next(one for one in maps if one.head == chosen[0])
    theme, scale = THEMES[theme].dressed(view.colors), scale_of(maps, view)
    names = _blocks(tokens, found, width)
    one = Large(_map(found, view, scale), _looks(tokens, found), *names, strong=True)
    return _alone(one, scale, chosen, theme, width, ("The whole map, in blocks: press one to see its cells",))


def exact_head(tokens, window, cell, view, theme="light", width=552):
    """The Window of a head, cell by cell, on a Scale of its own: a block's largest weight, or its mean, is of another size than most of
    its cells. ``cell`` (query, key) is the one that is chosen."""
    theme, scale = THEMES[theme].dressed(view.colors), Scale.of([window.p], view)
    (top, bottom), (left, right) = window.rows, window.columns
    padding = tokens.query_padding[window.item, top:bottom]  # [rows]
    names = (
        Names(tokens.queries[window.item][top:bottom], min(120, 0.2 * width), padding, top),
        Names(tokens.keys[window.item][left:right], 96, window.hidden.all(axis=0), left),
    )
    said = (
        f"exact: queries {top}–{bottom - 1}, keys {left}–{right - 1}",
        f"exact, {top}–{bottom - 1} × {left}–{right - 1}",
        "exact",
    )
    shown = Map(f"head {window.head}", window.head, window.p, scale, said)
    one = Large(shown, looks(window.hidden[None], padding, window.undefined[None]), *names)
    return _alone(
        one, scale, (window.head, cell[0] - top, cell[1] - left), theme, width, ("A window of it: every cell is one weight",)
    )


def scale_of(maps, view):
    """The Scale of Pooled maps."""
    return Scale.of([_values(one, view) for one in maps], view, QUANTITIES[view.pooling])


def describe(trace, maps, found, view):
    """What the pictures of a long sequence show, in words: their text alternative."""
    L, S = found.pool.L, found.pool.S
    H = trace.call.num_heads
    return (
        f"Attention maps of {len(maps)} of {H} heads, {L} queries by {S} keys, pooled: each cell is the {QUANTITIES[view.pooling]} of "
        f"a block of {around.block_size(found.pool)}. The largest weight of head {found.head} is {np.nanmax(found.largest):.6f}."
    )


def _alone(one, scale, chosen, theme, width, captions):
    rows, columns = one.rows, one.columns
    place = arrange(
        width, 0, *one.map.values.shape, rows.widest, columns.widest, columns.numbered, maps=1, bars={0: ticks_width(scale)},
        stacked=width < NARROW,
    )  # fmt: skip
    return picture(place, None, [one], chosen, [scale], theme, [captions])


def _values(found, view):
    return found.largest if view.pooling == "max" else found.mean


def _map(found, view, scale):
    largest = float(np.nanmax(found.largest, initial=0))
    said = f"pooled, {view.pooling} of {around.block_size(found.pool)}"
    return Map(
        f"head {found.head}", found.head, _values(found, view), scale, (said,), (f"up to {largest:.2g}", f"{largest:.2g}")
    )


def _blocks(tokens, found, width):
    """The Names of rows and columns of blocks: the numbers of their tokens."""
    hidden = _looks(tokens, found)["padded"][0].all(axis=1), found.hidden.all(axis=0)  # [rows], [columns]
    sides = []
    for side, (room, back) in enumerate(zip((min(120, 0.2 * width), 96), hidden, strict=True)):
        bounds = pairwise(found.pool.starts(side).tolist())
        texts = [str(start) if start + 1 == end else f"{start}–{end - 1}" for start, end in bounds]
        sides.append(Names(texts, room, back, blocks=found.pool.size[side] > 1))
    return sides


def _looks(tokens, found):
    """The looks of one Pooled map's blocks, each [1, rows, columns]: those that hold no weight at all, and those of padding alone."""
    padding = np.logical_and.reduceat(tokens.query_padding[found.item], found.pool.starts(0)[:-1])  # [rows]
    return looks(found.hidden[None], padding, found.hidden.all(axis=1)[None])
