"""A map's cells as Plotly traces: weights as heatmaps, what holds no weight as hatched polygons, outlines.

The traces are plain dicts: that is many times faster than Plotly's classes, and a figure checks them all the same.
"""

import numpy as np

LOOKS = {  # in the order of the legend; of two that meet, the first wins
    "undefined": ("undefined: no key left", "x"),
    "masked": ("masked: may not be read", "/"),
    "padded": ("padded query", "."),
}


def looks(mask, padding, undefined):
    """Which cells have which look: name → [..., L, S] bool, each cell in one at most.

    mask [..., L, S], padding [L] and undefined [..., L] are bool.
    """
    undefined = np.broadcast_to(undefined[..., None], mask.shape)  # [..., L, S]
    masked = mask & ~undefined
    return {"undefined": undefined, "masked": masked, "padded": padding[:, None] & ~(undefined | masked)}


def rectangles(cells):
    """[B, 5] of (batch index, top, bottom, left, right): rectangles that cover exactly the True cells of [B, L, S].

    A rectangle is a run of True in a row, merged with the equal run of the row above; bottom and right are exclusive.
    """
    edges = np.diff(np.pad(cells, ((0, 0), (0, 0), (1, 1))).astype(np.int8), axis=2)  # [B, L, S + 1]
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)  # [K, 3] each, pairwise one run
    batch, row, left, right = starts[:, 0], starts[:, 1], starts[:, 2], ends[:, 2]
    order = np.lexsort((row, right, left, batch))  # runs of the same columns one after the other, from top to bottom
    batch, row, left, right = batch[order], row[order], left[order], right[order]
    goes_on = np.zeros(len(row), bool)
    goes_on[1:] = (batch[1:] == batch[:-1]) & (left[1:] == left[:-1]) & (right[1:] == right[:-1]) & (row[1:] == row[:-1] + 1)
    first = np.flatnonzero(~goes_on)
    last = np.append(first[1:], len(row))[: len(first)] - 1
    return np.stack([batch[first], row[first], row[last] + 1, left[first], right[first]], axis=1)


def outlines(top, bottom, left, right):
    """x and y, float32, of one line that draws all rectangles, with a gap (NaN) after each; edges in axis units, [K] each."""
    gap = np.full(len(top), np.nan)
    x = np.stack([left, right, right, left, left, gap], axis=1).ravel()  # [K · 6]
    y = np.stack([top, top, bottom, bottom, top, gap], axis=1).ravel()  # [K · 6]
    return x.astype(np.float32), y.astype(np.float32)


def heatmap(z, name, axes, x0=0.0, y0=0.0, gap=0):
    """One map [L, S] on the shared colour scale, its first cell's centre at x0, y0 of ``axes`` ("x2", "y2")."""
    return {
        "type": "heatmap", "z": np.ascontiguousarray(z, np.float32), "x0": x0, "dx": 1, "y0": y0, "dy": 1, "name": name,
        "xaxis": axes[0], "yaxis": axes[1], "xgap": gap, "ygap": gap, "coloraxis": "coloraxis",
        "hovertemplate": "query %{y}<br>key %{x}<br>weight %{z:.6f}<extra>%{fullData.name}</extra>",
    }  # fmt: skip


def hatches(cells, origins, axes, theme, size):
    """One trace per look that occurs: ``cells`` maps it to [B, L, S], and ``origins`` [B, 2] are the tiles' x0, y0."""
    traces = []
    for name, where in cells.items():
        found = rectangles(where)
        if len(found) == 0:
            continue
        x0, y0 = origins[found[:, 0]].T - 0.5
        x, y = outlines(y0 + found[:, 1], y0 + found[:, 2], x0 + found[:, 3], x0 + found[:, 4])
        pattern = {
            "shape": LOOKS[name][1], "size": size, "solidity": 0.2 if name == "padded" else 0.3, "fillmode": "replace",
            "fgcolor": theme.hatch, "bgcolor": theme.paper,
        }  # fmt: skip
        traces.append({
            "type": "scatter", "mode": "lines", "x": x, "y": y, "xaxis": axes[0], "yaxis": axes[1],
            "line": {"width": 0}, "fill": "toself", "fillpattern": pattern, "hoverinfo": "skip",
            "name": LOOKS[name][0], "legendgroup": name, "showlegend": False,
        })  # fmt: skip
    return traces


def put_in_legend(traces):
    """Lets the legend name each look once, in the order of LOOKS."""
    named = set()
    for trace in traces:
        look = trace.get("legendgroup")
        if look and look not in named:
            named.add(look)
            trace |= {"showlegend": True, "legendrank": list(LOOKS).index(look)}


def line(x, y, axes, color, width):
    """An outline that is never cut at the edge of its axes and never answers the pointer."""
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "xaxis": axes[0], "yaxis": axes[1], "cliponaxis": False,
        "line": {"color": color, "width": width}, "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def marks(cells, cell, axes, theme):
    """The chosen cell's double outline in several tiles: dark inside light (light inside dark), so that it shows on any colour.

    ``cells`` [B, 2] are its centres x, y; ``cell`` the size of a cell in px, which small ones exceed to remain visible.
    """
    half = [max(0.5, 4 / side) for side in cell]
    x, y = cells.T
    edges = outlines(y - half[1], y + half[1], x - half[0], x + half[0])
    return [line(*edges, axes, theme.paper, 5) | {"meta": "mark"}, line(*edges, axes, theme.text, 2) | {"meta": "mark"}]


def numbers(z, hidden, largest, axes, theme, digits):
    """The weights of [L, S] printed in their cells, except ``hidden`` ones, each in black or white."""
    rows, columns = np.nonzero(~hidden)
    values = z[rows, columns]
    return {
        "type": "scatter", "mode": "text", "x": columns.astype(np.float32), "y": rows.astype(np.float32),
        "xaxis": axes[0], "yaxis": axes[1], "text": [f"{value:.{digits}f}" for value in values],
        "textfont": {"size": 13, "color": [theme.readable_at(value / largest) for value in values]},
        "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip
