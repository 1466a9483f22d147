"""Pictures as files, by a browser without a window: the first of them, and each that follows."""

import statistics
import time

from mha_viz.export.browser import Browser
from mha_viz.figures.heads import spec
from mha_viz.settings import Settings, View
from mha_viz.sources.synthetic import synthetic
from tests.bench.clock import Row, milliseconds

AT_MOST = 1.0  # seconds, of each after the first
TURNS = 5
SIZES = ((8, 20), (12, 28))  # heads, tokens: 4,000 and 10,976 cells, those of the large maps included


def rows():
    for heads, tokens in SIZES:
        size = {"embed_dim": 4 * heads, "num_heads": heads, "batch_size": 1, "seq_len": tokens}
        figure = spec(synthetic(Settings(**size, padding=(tokens // 10,), causal=True)), View())
        with Browser() as browser:
            first = taken(browser, figure, "png", 2)
            after = {format: [] for format in ("png", "svg", "pdf")}
            for _ in range(TURNS):
                for format, times in after.items():
                    times.append(taken(browser, figure, format, 2 if format == "png" else 1))
        said = ", ".join(f"{milliseconds(statistics.median(times))} ({format.upper()})" for format, times in after.items())
        yield Row(
            f"a figure of {heads} heads × {tokens}² as a file",
            f"{said}; the first {milliseconds(first)}",
            f"≤ {AT_MOST:g} s after the first",
            f"one Browser, the PNG at 2×; the first starts Chromium; medians of {TURNS} turns",
        )


def taken(browser, figure, format, scale):
    start = time.perf_counter()
    browser.picture(figure, format, scale)
    return time.perf_counter() - start
