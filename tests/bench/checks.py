"""The checks of ``python -m mha_viz validate`` on the tutorial's layer."""

import statistics
import subprocess
import sys
import time

from mha_viz.settings import Settings
from mha_viz.sources.source import source
from mha_viz.studies.validation import validate
from tests.bench.clock import Row, milliseconds

AT_MOST, TURNS, STARTS = 2, 15, 5  # seconds


def rows():
    """Once all is imported and has run, and as a command from nothing."""
    of = source(Settings())

    def warm():
        began = time.perf_counter()
        list(validate(of))
        return time.perf_counter() - began

    def cold():
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mha_viz", "validate", "--json"], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    warm()
    taken = statistics.median(warm() for _ in range(TURNS))
    started = statistics.median(cold() for _ in range(STARTS))
    yield Row(
        "every check of the tutorial's layer",
        f"{milliseconds(taken)}; as a command, PyTorch's import included, {started:.2g} s",
        f"≤ {AT_MOST} s",
        f"medians of {TURNS} turns and of {STARTS} starts",
    )
