"""Tables hold every number that is shown, in full."""

import csv
import io

import numpy as np
import pytest

from mha_viz import Settings, Trained, View, synthetic, trained
from mha_viz.analysis import STATISTICS, statistic
from mha_viz.analysis.long_maps import in_sight
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.maps import trace_of_maps
from mha_viz.export.table import quoted, statistics_table, weights_table


def lines(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_every_cell_that_is_shown_exactly():
    trace = synthetic(Settings(causal=True, padding_side="left", words='a "b"\nc,d', padding=(1,)))
    found = lines(weights_table(trace, 0, (2, 5, "mean")))
    assert len(found) == 3 * trace.weights.shape[2] * trace.weights.shape[3]
    for line in found:
        query, key = int(line["query"]), int(line["key"])
        maps = trace.mean_weights[0] if line["head"] == "average" else trace.weights[0, int(line["head"])]
        assert line["weight"] == "" if np.isnan(maps[query, key]) else np.float32(line["weight"]) == maps[query, key]
        assert line["query_token"] == trace.query_tokens[0][query]
        assert line["padded_query"] == str(int(trace.query_padding[0][query]))
    assert {line["head"] for line in found} == {"2", "5", "average"}


def test_beside_a_also_its_weight_and_the_difference():
    a, b = synthetic(Settings(seed=8)), synthetic()
    line = lines(weights_table(b, 0, (1,), a))[3]
    assert float(line["weight_a"]) == a.weights[0, 1, 0, 3]
    assert float(line["difference"]) == float(line["weight"]) - float(line["weight_a"])
    assert "difference" not in weights_table(b, 0, (1,), synthetic(Settings(num_heads=4)))  # whose heads are others
    here, there = (in_sight(trace, View(rows=rows)) for trace, rows in ((a, (0, 9)), (b, (5, 14))))
    assert "difference" not in weights_table(there, 0, (1,), here)  # whose queries are others


def test_statistics_of_every_head_of_every_layer():
    traces = trained(Trained("induction")).recording.traces
    found = lines(statistics_table(traces, 0))
    heads = range(traces[0].weights.shape[1])
    assert [(line["layer"], line["head"]) for line in found] == [(str(i), str(h)) for i in (0, 1) for h in heads]
    for name in STATISTICS:
        right = np.concatenate([statistic(trace, 0, name) for trace in traces])
        ours = [float("nan") if line[name] == "" else float(line[name]) for line in found]
        np.testing.assert_array_equal(ours, right.tolist())


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-2+3", "'-2+3"),
        ("@sum", "'@sum"),
        ("-", "'-"),
        ("\t=1", "'\t=1"),
        ("-inf", "'-inf"),
        ("-3", "-3"),
        ("+.5e-3", "+.5e-3"),
        ("the", "the"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_no_text_is_a_formula(text, cell):
    """A spreadsheet runs a cell that begins with one of = + - @; numbers stay numbers, and weights as well."""
    assert quoted(text) == cell
    trace = synthetic(Settings(words=f"{text.strip() or 'x'} dog", padding=()))
    first = lines(weights_table(trace, 0, (0,)))[0]
    assert first["query_token"] == first["key_token"] == quoted(text.strip() or "x")
    assert float(first["weight"]) == trace.weights[0, 0, 0, 0]


def test_steps_of_a_layer_are_no_layers():
    """Two layers that ran in three steps, as in generating: layers 0 and 1 in each of steps 0, 1 and 2."""
    layers = [Layer.random(8, 2, seed=seed) for seed in (1, 2)]
    batches = [Batch(np.ones((1, length, 8), np.float32)) for length in (2, 3, 4)]
    traces = [attend(layer, batch, name=f"layers.{i}") for batch in batches for i, layer in enumerate(layers)]
    assert "step" not in lines(statistics_table(traces, 0))[0]
    for place, trace in enumerate(traces):
        trace.step = place // 2
    found = lines(statistics_table(traces, 0))
    assert [line["layer"] + line["step"] for line in found[::2]] == ["00", "10", "01", "11", "02", "12"]


def test_no_name_of_a_layer_is_a_formula():
    trace = attend(Layer.random(8, 2), Batch(np.ones((1, 2, 8), np.float32)), name="=cmd|'/c calc'!A1")
    assert lines(statistics_table([trace], 0))[0]["name"] == "'=cmd|'/c calc'!A1"


def test_a_number_that_is_none_is_told_from_a_row_without_a_key():
    weights = np.full((1, 2, 3, 3), 1 / 3)
    weights[0, :, 0] = weights[0, 0, 1, 0] = np.nan
    weights[0, 0, 1, 1], weights[0, 0, 2, 2] = np.inf, -np.inf
    found = [line["weight"] for line in lines(weights_table(trace_of_maps(weights), 0, (0,)))]
    assert found == ["", "", "", "nan", "inf", repr(1 / 3), repr(1 / 3), repr(1 / 3), "-inf"]
