"""Time, memory and rate of attention: against length, with weights and without, and against head count at one length."""

import math
from itertools import chain

import plotly.graph_objects as go

from mha_viz.core.attend import readable_size
from mha_viz.figures.curves import apart
from mha_viz.figures.labels import width_of
from mha_viz.figures.theme import FONT, THEMES
from mha_viz.studies.profile_results import exponent

WIDE = 1000  # px from which panels stand beside each other
HEIGHT, ABOVE, BELOW, LEFT = 190, 30, 46, 64  # px of a plot, and of what stands around it
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "pentagon")
WAYS = {True: "need_weights=True", False: "need_weights=False"}
MEASURES = {  # name on the axis: (of a Row, how a value is written)
    "milliseconds": (lambda results, row: None if row.median is None else row.median * 1e3, "{:.3f} ms".format),
    "peak, MiB": (lambda results, row: row.peak and row.peak / 2**20, lambda value: readable_size(value * 2**20)),
    "GFLOP/s": (lambda results, row: results.rate(row) and results.rate(row) / 1e9, "{:.1f} GFLOP/s".format),
}


def profile_figure(results, length=None, theme="light", width=1100):
    """A row of panels for each measure of MEASURES: lines by head count over length, those without weights beside those with, and at one
    ``length``, the longest that was measured where None, over head count. A row has one scale. Bars are quartiles of the time; dotted is
    the formula.
    """
    theme, ways = THEMES[theme], sorted({row.point.need_weights for row in results.rows}, reverse=True)
    columns = len(ways) + 1 if width >= WIDE else 1
    length = length_of(results, length)
    count = len(MEASURES) * (len(ways) + 1)
    data, notes, axes = [], [], {}
    names = width_of("128 heads ∝ L2.00", 13)
    for row, measure in enumerate(MEASURES):
        panels = {WAYS[way]: _by_length(results, measure, way) for way in ways}
        panels[f"at length {length:,}"] = _by_heads(results, measure, length)
        span = _span(line for lines in panels.values() for line in lines)
        for column, (title, lines) in enumerate(panels.items()):
            number = row * len(panels) + column
            box = _box(number, count, columns, width, names)
            across = "length" if column < len(ways) else "heads"
            _panel(data, notes, axes, number + 1, box, lines, span, (measure, title, across), theme)
    layout = {
        "width": width, "height": _rows(count, columns) * (ABOVE + HEIGHT + BELOW), "showlegend": False, "template": {},
        "paper_bgcolor": theme.paper, "plot_bgcolor": theme.paper, "font": {"family": FONT, "size": 14, "color": theme.text},
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0, "autoexpand": False}, "hovermode": "closest", "dragmode": False,
        "annotations": notes, **axes,
    }  # fmt: skip
    return go.Figure({"data": data, "layout": layout})


def length_of(results, length=None):
    """``length`` where it was measured, the longest that was else."""
    timed = [row.point.seq_len for row in results.rows if row.seconds or row.peak is not None]
    return length if length in timed else max(timed, default=results.profile.seq_len[-1])


def _by_length(results, measure, way):
    """[(name, x, y, low, high, formula)] a line for each head count."""
    found, of = [], MEASURES[measure][0]
    times = results.lines(lambda row: row.median)
    for heads in results.profile.num_heads:
        rows = [row for row in results.rows if row.point.need_weights == way and row.point.num_heads == heads and of(results, row)]
        name, power = f"{heads} head{'' if heads == 1 else 's'}", exponent(times.get((way, heads), []))
        if measure == "milliseconds" and power is not None:
            name += f" ∝ L<sup>{power:.1f}</sup>"
        found.append(_line(results, measure, name, rows, lambda row: row.point.seq_len))
    return found


def _by_heads(results, measure, length):
    of, found = MEASURES[measure][0], []
    for way in WAYS:
        rows = [row for row in results.rows if row.point.need_weights == way and row.point.seq_len == length and of(results, row)]
        if rows:
            found.append(_line(results, measure, "weights" if way else "no weights", rows, lambda row: row.point.num_heads))
    return found


def _line(results, measure, name, rows, across):
    of = MEASURES[measure][0]
    spread = [[1e3 * end for end in row.spread] for row in rows] if measure == "milliseconds" else None
    formula = [results.predicted(row) / 2**20 for row in rows] if measure == "peak, MiB" else None
    return name, [across(row) for row in rows], [of(results, row) for row in rows], spread, formula


def _rows(panels, columns):
    return math.ceil(panels / columns)


def _box(number, panels, columns, width, names):
    """(left, right, bottom, top) of a plot as shares of the figure; ``names`` px are left at its right."""
    row, column, rows = number // columns, number % columns, _rows(panels, columns)
    each, high = width / columns, rows * (ABOVE + HEIGHT + BELOW)
    top = row * (ABOVE + HEIGHT + BELOW) + ABOVE
    left = column * each
    return (left + LEFT) / width, (left + each - names - 8) / width, 1 - (top + HEIGHT) / high, 1 - top / high


def _span(lines):
    """The logarithms between which all of these lines lie, with a little room."""
    values = [value for _, _, y, spread, formula in lines for value in (*y, *chain(*(spread or ())), *(formula or ())) if value > 0]
    return math.log10(min(values, default=1) / 1.3), math.log10(max(values, default=10) * 1.3)


def _panel(data, notes, axes, number, box, lines, span, names, theme):
    """One plot: ``lines`` on logarithmic axes, each named at its end."""
    measure, title, across = names
    left, right, bottom, top = box
    suffix = "" if number == 1 else str(number)
    low, high = span
    ends = apart([(math.log10(line[2][-1]) - low) / (high - low) if line[2] else 0 for line in lines], 17 / HEIGHT)
    for i, ((name, x, y, spread, formula), end) in enumerate(zip(lines, ends, strict=True)):
        color = "rgb({:.0f},{:.0f},{:.0f})".format(*theme.ink_at(0.5 + 0.5 * (i + 1) / len(lines)))
        common = {"type": "scatter", "x": x, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "name": name}
        if formula:
            data.append(common | {
                "y": formula, "mode": "lines", "line": {"color": color, "width": 1.5, "dash": "dot"}, "hoverinfo": "skip",
            })  # fmt: skip
        line = common | {
            "y": y, "mode": "lines+markers", "line": {"color": color, "width": 2},
            "marker": {"symbol": SYMBOLS[i % len(SYMBOLS)], "size": 8, "color": color},
            "text": [MEASURES[measure][1](value) for value in y],
            "hovertemplate": f"{across} %{{x}}: %{{text}}<extra>%{{fullData.name}}</extra>",
        }  # fmt: skip
        if spread:
            above, below = ([abs(ends[side] - value) for ends, value in zip(spread, y, strict=True)] for side in (1, 0))
            line["error_y"] = {"type": "data", "array": above, "arrayminus": below, "color": color, "thickness": 1.5, "width": 3}
        data.append(line)
        if y:
            notes.append(_note(name, right, bottom + end * (top - bottom), theme.text, 13, xanchor="left", xshift=6, yanchor="middle"))
    notes.append(_note(f"<b>{title}</b>", left, top, theme.text, 14, xanchor="left", yanchor="bottom", yshift=4))
    ticks = sorted({at for line in lines for at in line[1]})
    common = {"type": "log", "zeroline": False, "fixedrange": True, "tickfont": {"size": 13}}
    axes[f"xaxis{suffix}"] = common | {
        "domain": [left, right], "anchor": f"y{suffix}", "showgrid": False, "showline": True, "linecolor": theme.line,
        "tickvals": ticks, "ticktext": [f"{at:,}" for at in ticks], "title": {"text": across, "font": {"size": 14}, "standoff": 4},
        "range": [math.log10(ticks[0]) - 0.06, math.log10(ticks[-1]) + 0.06] if ticks else [0, 1],
    }  # fmt: skip
    axes[f"yaxis{suffix}"] = common | {
        "domain": [bottom, top], "anchor": f"x{suffix}", "gridcolor": theme.line, "range": [low, high],
        "title": {"text": measure, "font": {"size": 14}, "standoff": 4}, **_ticks(low, high),
    }  # fmt: skip


def _ticks(low, high):
    """Ticks of a logarithmic axis: decades, with 2 and 5 between them where there are few."""
    parts = (1,) if high - low > 2.5 else (1, 2, 5) if high - low > 0.5 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    found = [part * 10.0**p for p in range(math.floor(low), math.ceil(high) + 1) for part in parts]
    found = [value for value in found if low <= math.log10(value) <= high]
    return {"tickvals": found, "ticktext": [f"{value:,.6g}" for value in found]}


def _note(text, x, y, color, size, **place):
    return {"text": text, "x": x, "y": y, "xref": "paper", "yref": "paper", "showarrow": False} | place | {
        "font": {"size": size, "color": color}
    }  # fmt: skip


def describe_profile(results, length=None):
    """What the picture shows, in words."""
    length, told = length_of(results, length), []
    for way, name in WAYS.items():
        rows = [row for row in results.rows if row.point.need_weights == way and row.point.seq_len == length and row.seconds]
        if rows:
            said = ", ".join(
                f"{row.point.num_heads} heads {row.median * 1e3:.3g} ms"
                + ("" if row.peak is None else f" and {readable_size(row.peak)}")
                for row in rows
            )
            told.append(f"{name}: {said}")
    if not told:
        return "Nothing is timed yet."
    return f"Time and peak memory of one call at embed_dim {results.profile.embed_dim} and length {length:,}. {'. '.join(told)}."
