"""What head counts do to quality, time and memory at once: four plots over head count."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from mha_viz.figures.plots import Line, Plot, plots, span_of
from mha_viz.figures.profile import MEASURES, MEMORY, TIME, by_heads, heads_of
from mha_viz.figures.theme import ThemeName
from mha_viz.studies.quality import Quality

if TYPE_CHECKING:
    import plotly.graph_objects as go

LEAST = 1e-6  # nats: results are kept to six decimals, and a logarithmic axis has no zero


def quality_figure(quality: Quality, theme: ThemeName = "light", width: int = 1100) -> go.Figure:
    """Held-out accuracy and loss, and time and peak memory of one layer on a batch, over head count.

    Medians have bars from the worst seed to the best. Beside the accuracy stand uniform attention and, dotted, one head at every head
    count.
    """
    accuracy, loss = _seeds(quality, "accuracy", "trained"), _seeds(quality, "loss", "trained")
    uniform = _seeds(quality, "uniform", "uniform")
    one = (Line("one head", accuracy.x, [], beside=[accuracy.y[0]] * len(accuracy.x)),) if accuracy.x[:1] == [1] else ()
    row = [
        Plot("right answers", "heads", "share", (uniform, *one, accuracy), (0, 1.05), "{:.3f}".format, log=False),
        Plot("loss", "heads", "nats", (loss,), span_of([loss]), "{:.5f}".format),
    ]
    for measure, title in ((TIME, "time of a layer"), (MEMORY, "memory of a layer")):
        lines = () if quality.results is None else by_heads(quality.results, measure, quality.results.profile.seq_len[0])
        row.append(Plot(title, "heads", measure, lines, span_of(lines), MEASURES[measure].told))
    return plots([row], theme, width)


def _seeds(quality: Quality, name: str, title: str) -> Line:
    of = quality.of(name)
    if name == "loss":
        of = {heads: [max(value, LEAST) for value in values] for heads, values in of.items()}
    spread = [(min(values), max(values)) for values in of.values()]
    return Line(title, list(of), [statistics.median(values) for values in of.values()], spread)


def describe_quality(quality: Quality) -> str:
    """What the picture shows, in words."""
    of = quality.of("accuracy")
    told = "; ".join(
        f"{heads_of(heads)} {statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"
        for heads, values in of.items()
    )
    return f"Share of right answers by head count, median of the seeds and their range: {told}."
