"""Time, memory and rate of attention: against length, with weights and without, and against head count at one length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mha_viz.core.decimals import prose
from mha_viz.core.memory import readable_size
from mha_viz.figures.plots import Line, Plot, plots, span_of
from mha_viz.figures.theme import ThemeName
from mha_viz.studies.profile_results import Results, Row, exponent
from mha_viz.studies.profiling import Point

if TYPE_CHECKING:
    import plotly.graph_objects as go

TIME, MEMORY = "milliseconds", "peak, MiB"
WAYS = {True: "need_weights=True", False: "need_weights=False"}


class Measure(NamedTuple):
    """What is measured of a Row, None where it is not known, and how a value of it is written."""

    of: Callable[[Results, Row], float | None]
    told: Callable[[float], str]


MEASURES = {  # by what the axis says
    TIME: Measure(lambda results, row: None if row.median is None else row.median * 1e3, "{:.3f} ms".format),
    MEMORY: Measure(lambda results, row: row.peak and row.peak / 2**20, lambda value: readable_size(value * 2**20)),
    "GFLOP/s": Measure(lambda results, row: (rate := results.rate(row)) and rate / 1e9, "{:.1f} GFLOP/s".format),
}


def profile_figure(results: Results, length: int | None = None, theme: ThemeName = "light", width: int = 1100) -> go.Figure:
    """The plots of a profile, a row for each of MEASURES that is known.

    Lines by head count over length, with weights and without; and over head count at one ``length``, the longest that was measured where
    None. A row has one scale. Bars are quartiles of the time; dotted is the formula.
    """
    ways = sorted({row.point.need_weights for row in results.rows}, reverse=True)
    length = length_of(results, length)
    rows = []
    for measure, (_, told) in MEASURES.items():
        titled = [(WAYS[way], "length", by_length(results, measure, way)) for way in ways]
        titled.append((f"at length {length:,}", "heads", by_heads(results, measure, length)))
        every = [line for _, _, lines in titled for line in lines]
        if not any(line.y for line in every):
            continue
        span = span_of(every)
        rows.append([Plot(title, across, measure, lines, span, told) for title, across, lines in titled])
    return plots(rows, theme, width)


def length_of(results: Results, length: int | None = None) -> int:
    """``length`` where it was measured, the longest that was else."""
    known = [row.point.seq_len for row in results.rows if row.seconds or row.peak is not None]
    return length if length is not None and length in known else max(known, default=results.profile.seq_len[-1])


def heads_of(count: int) -> str:
    """A count of heads in words: "1 head", "8 heads"."""
    return f"{count} head{'' if count == 1 else 's'}"


def by_length(results: Results, measure: str, way: bool) -> tuple[Line, ...]:
    """A Line for each head count; times with the exponent that is fitted to them."""
    found, times = [], results.lines(lambda row: row.median)
    for heads in results.profile.num_heads:
        name, power = heads_of(heads), exponent(times.get((way, heads), []))
        if measure == TIME and power is not None:
            name += f" ∝ L<sup>{power:.1f}</sup>"
        rows = [row for row in results.rows if (row.point.need_weights, row.point.num_heads) == (way, heads)]
        found.append(_line(results, measure, name, rows, lambda point: point.seq_len))
    return tuple(found)


def by_heads(results: Results, measure: str, length: int) -> tuple[Line, ...]:
    """A Line for each way that was measured."""
    found = []
    for way in WAYS:
        rows = [row for row in results.rows if (row.point.need_weights, row.point.seq_len) == (way, length)]
        if rows:
            found.append(_line(results, measure, "weights" if way else "no weights", rows, lambda point: point.num_heads))
    return tuple(found)


def _line(results: Results, measure: str, name: str, rows: Sequence[Row], across: Callable[[Point], int]) -> Line:
    of = MEASURES[measure].of
    known = [(row, value) for row in rows if (value := of(results, row))]
    spread = [row.spread for row, _ in known if row.spread] if measure == TIME else None
    return Line(
        name,
        [across(row.point) for row, _ in known],
        [value for _, value in known],
        None if spread is None else [(1e3 * low, 1e3 * high) for low, high in spread],
        [results.predicted(row) / 2**20 for row, _ in known] if measure == MEMORY else None,
    )


def describe_profile(results: Results, length: int | None = None) -> str:
    """What the picture shows, in words."""
    length, told = length_of(results, length), []
    for way, name in WAYS.items():
        rows = [row for row in results.rows if row.point.need_weights == way and row.point.seq_len == length]
        said = [
            f"{heads_of(row.point.num_heads)} {prose(row.median * 1e3, '.3g')} ms"
            + ("" if row.peak is None else f" and {readable_size(row.peak)}")
            for row in rows
            if row.median is not None
        ]
        if said:
            told.append(f"{name}: {', '.join(said)}")
    if not told:
        return "Nothing is timed yet."
    return (
        f"Time and peak memory of one call at embed_dim {results.profile.embed_dim} and length {length:,}. {'. '.join(told)}."
    )
