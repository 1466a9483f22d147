"""The writer gives what Plotly's own gives, and refuses what it would write wrongly."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz import Settings, View, synthetic
from mha_viz.figures.heads import spec
from mha_viz.figures.serial import to_json


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_same_as_plotly(theme):
    figure = spec(synthetic(Settings(seq_len=5, padding=(2,), causal=True, padding_side="left")), View(), theme)
    ours, plotlys = json.loads(to_json(figure)), json.loads(go.Figure(figure).to_json())
    ours["layout"].pop("template"), plotlys["layout"].pop("template")
    assert ours == plotlys


def test_arrays_are_without_loss():
    z = np.random.default_rng(0).random((3, 4)).astype(np.float32)
    z[1, 2] = np.nan
    written = json.loads(to_json({"z": z, "transposed": z.T}))
    from base64 import b64decode

    for name, array in (("z", z), ("transposed", z.T)):
        read = np.frombuffer(b64decode(written[name]["bdata"]), written[name]["dtype"])
        read = read.reshape([int(n) for n in written[name]["shape"].split(",")])
        assert np.array_equal(read, array, equal_nan=True)


@pytest.mark.parametrize("wrong", [np.zeros(2, bool), np.zeros(2, np.float16), np.zeros(2, np.int64), object()])
def test_other_arrays_are_refused(wrong):
    with pytest.raises(TypeError, match="float32 or float64"):
        to_json({"z": wrong})


def test_nan_outside_of_arrays_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        to_json({"cmax": float("nan")})


@pytest.mark.parametrize(("heads", "length"), [(12, 128), (32, 128)])
def test_a_cell_takes_six_bytes_at_most(heads, length):
    figure = spec(
        synthetic(Settings(embed_dim=heads, num_heads=heads, batch_size=1, seq_len=length, padding=(9,), causal=True)), View()
    )
    assert len(to_json(figure)) <= 6 * (heads + 1) * length**2
