"""The pictures of heads against one bare figure with as many maps."""

import plotly.graph_objects as go

from mha_viz.analysis import choose
from mha_viz.figures.heads import spec
from mha_viz.figures.serial import to_json
from mha_viz.settings import Settings, View
from mha_viz.sources.synthetic import synthetic
from tests.bench.clock import Row, interleaved, milliseconds

SIZES = ((8, 20), (12, 128), (32, 128))  # heads, tokens
AT_MOST, TURNS = 1.3, 15
BYTES = 6  # a cell, from 12 × 128² on


def rows():
    """Both from a Trace whose weights, average and differences are there, with padding, so that there are hatches, to JSON text.

    Ours is the default picture, hatches, outlines, marks, names and all, the large copy of the chosen head included. Theirs is one
    ``go.Figure`` with a ``go.Heatmap`` per head and one for the average, float32 as ours, side by side on one pair of axes.
    """
    ours_sum = bare_sum = 0
    for heads, tokens in SIZES:
        trace = synthetic(Settings(embed_dim=4 * heads, num_heads=heads, batch_size=1, seq_len=tokens, padding=(tokens // 10,)))
        choose(trace, View())

        def ours(trace=trace):
            return to_json(spec(trace, View()))

        def bare(trace=trace, tokens=tokens):
            maps = [*trace.weights[0], trace.mean_weights[0]]
            return go.Figure(
                [go.Heatmap(z=z, x0=i * (tokens + 2), coloraxis="coloraxis") for i, z in enumerate(maps)]
            ).to_json()

        taken, theirs = interleaved((ours, bare), TURNS)
        ours_sum, bare_sum = ours_sum + taken, bare_sum + theirs
        cells = (heads + 1) * tokens**2
        yield Row(
            f"picture of heads : bare figure, {heads} × {tokens}²",
            f"{taken / theirs:.2f}× ({milliseconds(taken)} : {milliseconds(theirs)}), {len(ours()) / cells:.1f} bytes a cell",
            f"≤ {BYTES} bytes a cell" if tokens >= 128 else "",
            "Trace to JSON, hatches and outlines included, tiles pooled to their pixels : "
            f"one go.Heatmap per map; medians of {TURNS} turns; "
            "a cell is one of the heads' or the average's",
        )
    yield Row(
        "the same, summed",
        f"{ours_sum / bare_sum:.2f}× ({milliseconds(ours_sum)} : {milliseconds(bare_sum)})",
        f"≤ {AT_MOST}×",
        "sums of the medians",
    )
