"""The memory that a page takes at its peak, measured in a process of its own, is what it was estimated to be before it was made."""

from pathlib import Path

import pytest

from tests.forked import Forked

pytestmark = pytest.mark.slow

ADDRESSES = [
    "seq_len=2048&num_heads=16&embed_dim=512&batch_size=1&padding=",
    "seq_len=1000&num_heads=8&embed_dim=64&batch_size=3&causal=1",
    "seq_len=3000&num_heads=2&embed_dim=32&batch_size=1&padding=100&causal=1",
    "seq_len=1200&num_heads=8&embed_dim=64&batch_size=2&training=1",
    "embed_dim=6144&num_heads=64",
    "seq_len=16384&num_heads=8&embed_dim=1024&batch_size=1&padding=",
    "seq_len=8192&num_heads=4&embed_dim=512&batch_size=4&source_len=9000",
]
MEASURE = """
from urllib.parse import parse_qsl
from mha_viz.analysis import choose, findings, statistic, what_average_hides
from mha_viz.core.long import averaging, pooled
from mha_viz.core.memory import too_long
from mha_viz.figures.serial import to_json
from mha_viz.settings import Settings, View, from_address
from mha_viz.sources.base import Source
from mha_viz.sources.synthetic import peak_of, synthetic
from mha_viz.views import PAGE
from mha_viz.views.shown import Shown

def status(name):
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

def draw(settings):
    trace, view = synthetic(settings), View()
    if too_long(trace):
        return trace, next(pooled(trace)), next(averaging(trace))
    choose(trace, view), findings(trace, settings), what_average_hides(trace, 0), statistic(trace, 0, "entropy")
    return trace, to_json(PAGE.drawn(Shown(Source("layer", (trace,), settings), trace, view, a=None), theme="light", width=1100)[0])

def measure(address):
    draw(Settings())
    fields, notes = from_address(dict(parse_qsl(address, keep_blank_values=True)), Settings)
    settings = Settings(**fields)
    before = status("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")
    kept = draw(settings)
    return peak_of(settings), status("VmHWM") - before
"""


@pytest.fixture(scope="module")
def forked():
    with Forked(MEASURE) as forked:
        yield forked


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is read from Linux's /proc")
@pytest.mark.parametrize("address", ADDRESSES)
def test_the_peak_is_as_estimated(address, forked):
    estimated, measured = forked(address)
    assert 0.8 <= estimated / measured <= 1.25, f"estimated {estimated / 2**20:.0f} MiB, measured {measured / 2**20:.0f}"
