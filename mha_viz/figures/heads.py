"""Every head of one layer in a strip, and under it one head beside the average of them all."""

import numpy as np
import plotly.graph_objects as go

from mha_viz.analysis import choose
from mha_viz.figures import around, tiles
from mha_viz.figures.axes import AVERAGE, AVERAGE_NAMES, HEAD, HEAD_NAMES, STRIP, axes
from mha_viz.figures.geometry import ROW_PITCH, arrange
from mha_viz.figures.labels import Names, visible
from mha_viz.figures.theme import FONT, THEMES


def heads(trace, view, theme="light", width=1104):
    """The picture of one batch item's weights, exactly ``width`` px wide, as a ``go.Figure``.

    Each map [L, S] holds the weights as they are; all share one colour scale, from 0 to the largest weight that a real query
    has in any head. ``layout.meta`` says what stands where, for whoever answers the pointer: ``tiles``, one per heatmap and in
    their order, each with its ``head`` (None: the average), the ids of its ``axes``, its first cell's centre ``x0``, ``y0``;
    ``queries`` and ``keys``, the tokens; ``names``, all short texts that axes of the layout have, and how many px apart those
    must stand to be drawn; ``chosen``, the head, query and key.
    """
    return go.Figure(spec(trace, view, theme, width))


def spec(trace, view, theme="light", width=1104):
    """``heads`` as the plain dict that ``go.Figure`` checks: for the live picture, which has no time for that at every change."""
    theme, choice = THEMES[theme], choose(trace, view)
    item, shown = choice.item, list(choice.order)
    weights, average, padding = trace.weights[item], trace.mean_weights[item], trace.query_padding[item]
    H, L, S = weights.shape
    rows, columns = (
        Names(tokens[item], room, hidden)
        for tokens, room, hidden in (
            (trace.query_tokens, min(120, 0.2 * width), padding),
            (trace.key_tokens, 96, trace.mask[item].all(axis=(0, 1))),
        )
    )
    place = arrange(width, len(shown), L, S, rows.widest, columns.widest, columns.numbered)
    origins = _origins(place.strip, len(shown))
    largest = largest_weight(weights, padding)

    mask, undefined = trace.mask[item], trace.undefined[item]
    strip_looks = head_looks = average_looks = tiles.looks(mask[:1], padding, undefined[:1])
    if not (mask == mask[0]).all() or not (undefined == undefined[0]).all():  # heads with masks of their own
        strip_looks = tiles.looks(mask[shown], padding, undefined[shown])
        head_looks = tiles.looks(mask[[choice.head]], padding, undefined[[choice.head]])
        average_looks = tiles.looks(mask.all(axis=0)[None], padding, undefined.any(axis=0)[None])

    zero, cell = np.zeros((1, 2)), (choice.key, choice.query)
    grid = 1 if min(place.cell) >= 8 else 0
    pattern = 8 if min(place.cell) >= 8 else 6
    data = [
        *(tiles.heatmap(weights[h], f"head {h}", STRIP, *origin) for h, origin in zip(shown, origins.tolist(), strict=True)),
        tiles.heatmap(weights[choice.head], f"head {choice.head}", HEAD, gap=grid),
        tiles.heatmap(average, f"average of {H} heads", AVERAGE, gap=grid),
        *tiles.hatches(strip_looks, origins, STRIP, theme, 5),
        *tiles.hatches(head_looks, zero, HEAD, theme, pattern),
        *tiles.hatches(average_looks, zero, AVERAGE, theme, pattern),
        *_numbers(place, weights[choice.head], head_looks, largest, HEAD, theme),
        *_numbers(place, average, average_looks, largest, AVERAGE, theme),
        *_frames(place.strip, origins, shown.index(choice.head), L, S, theme),
        *tiles.marks(cell, origins, (S, L), place.strip.cell, STRIP, theme),
        *tiles.marks(cell, zero, (S, L), place.cell, HEAD_NAMES, theme),
        *tiles.marks(cell, zero, (S, L), place.cell, AVERAGE_NAMES, theme),
        around.strip_labels(place.strip, origins, choice, theme),
    ]
    tiles.put_in_legend(data)
    meta = {
        "tiles": [
            *({"head": h, "axes": STRIP, "x0": x, "y0": y} for h, (x, y) in zip(shown, origins.tolist(), strict=True)),
            {"head": choice.head, "axes": HEAD, "x0": 0, "y0": 0},
            {"head": None, "axes": AVERAGE, "x0": 0, "y0": 0},
        ],
        "queries": rows.texts,
        "keys": columns.texts,
        "names": [
            {"axes": ["xaxis4", "xaxis5"], "texts": columns.drawn(1, theme)[1], "pitch": place.column_labels.pitch},
            {"axes": ["yaxis4", "yaxis5"], "texts": rows.drawn(1, theme)[1], "pitch": ROW_PITCH},
        ],
        "chosen": {"head": choice.head, "query": choice.query, "key": choice.key},
    }
    layout = {
        **axes(place, rows, columns, theme),
        "width": width, "height": place.height, "margin": {**dict.fromkeys("lrtb", 0), "autoexpand": False},
        "meta": meta,
        "paper_bgcolor": theme.paper, "plot_bgcolor": theme.paper, "font": {"family": FONT, "size": 14, "color": theme.text},
        "coloraxis": {"colorscale": theme.colorscale(), "cmin": 0, "cmax": largest, "colorbar": around.bar(place, theme)},
        "annotations": around.texts(place, choice, H, view.order, theme)
        + around.undefined_words(place, head_looks, average_looks, theme),
        "legend": around.legend(place, theme), "hovermode": "closest", "dragmode": False if place.stacked else "zoom",
        "hoverlabel": {"font": {"family": FONT, "size": 14}, "namelength": -1}, "uirevision": f"{L} {S}", "template": {},
    }  # fmt: skip
    return {"data": data, "layout": layout}


def describe(trace, view):
    """What the picture shows, in a few sentences: its text alternative."""
    choice = choose(trace, view)
    item, head, query, key = choice.item, choice.head, choice.query, choice.key
    mask, padding, undefined = trace.mask[item], trace.query_padding[item], trace.undefined[item]
    H, L, S = mask.shape
    shown = f"all {H} heads" if len(choice.order) == H else f"{len(choice.order)} of {H} heads"
    first = f", largest difference from their average first: head {choice.order[0]}" if view.order == "difference" else ""
    weights = [trace.weights[item, head, query, key], trace.mean_weights[item, query, key]]
    in_head, in_average = ("undefined" if np.isnan(weight) else f"{weight:.6f}" for weight in weights)
    names = (f"{i} “{visible(tokens[item][i])}”" for i, tokens in ((query, trace.query_tokens), (key, trace.key_tokens)))
    looks = tiles.looks(mask[[head]], padding, undefined[[head]])
    cells = [f"{look.sum()} {name}" for name, look in looks.items() if look.any()]
    return (
        f"Attention maps of {shown}, {L} queries by {S} keys{first}. "
        f"Head {head} differs {around.percent(choice.differences[head])} from the average of {H}. "
        f"Chosen cell: query {next(names)}, key {next(names)}: {in_head} in head {head}, {in_average} in the average."
        + (f" Of {L * S} cells in head {head}: {', '.join(cells)}." if cells else "")
    )


def largest_weight(weights, padding):
    """The largest weight of real queries in [H, L, S], where the colour scale ends: what padding attends to means nothing."""
    real = weights[:, ~padding]  # [H, R, S]
    largest = np.fmax.reduce(real, axis=None, initial=0)  # NaN, in undefined rows, gives way
    return float(largest) or 1.0


def _origins(strip, count):
    """[count, 2] centres of the tiles' first cells, in cells from the first tile's."""
    row, column = np.divmod(np.arange(count), strip.columns)
    return np.stack([column * strip.step[0] / strip.cell[0], row * strip.step[1] / strip.cell[1]], axis=1)


def _frames(strip, origins, chosen, L, S, theme):
    """A thin frame around every tile of the strip and a strong one around the chosen one, outside of the cells."""
    frames = []
    for corners, color, width in ((origins, theme.line, 1), (origins[[chosen]], theme.choice, 3)):
        x, y = (corners - 0.5).T
        aside, above = width / 2 / strip.cell[0], width / 2 / strip.cell[1]
        edges = tiles.outlines(y - above, y + L + above, x - aside, x + S + aside)
        frames.append(tiles.line(*edges, STRIP, color, width))
    return frames


def _numbers(place, z, looks, largest, axes, theme):
    """The weights printed in the cells of a large map of at most 8 × 8, where they fit."""
    L, S = z.shape
    if max(L, S) > 8 or place.cell[0] < 30 or place.cell[1] < 18:
        return []
    hidden = looks["undefined"][0] | looks["masked"][0] | looks["padded"][0]
    return [tiles.numbers(z, hidden, largest, axes, theme, digits=3 if place.cell[0] >= 44 else 2)]
