"""A number that is not finite is named where it came in, before softmax or masks are blamed for what is made of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from mha_viz import Batch, Layer, Settings, attend, record, synthetic
from mha_viz.analysis.causes import findings, origin_of_nonfinite
from mha_viz.analysis.statistics import STATISTICS, why_not
from mha_viz.analysis.validation import FAIL, checks
from mha_viz.core.attend import call_of, trace_of_call
from mha_viz.core.maps import trace_of_maps
from mha_viz.sources.base import Source
from mha_viz.studies.validation import report

SETTINGS = Settings(embed_dim=8, num_heads=2, batch_size=2, seq_len=5, padding=(2, 0), causal=True)


def spoilt(what, value=np.nan):
    """The layer of SETTINGS with one number of its input, its weights, or its recorded q that is not finite."""
    trace = synthetic(SETTINGS)
    if what == "input":
        query = trace.batch.query.copy()
        query[0, 1, 0] = value
        return attend(trace.layer, replace(trace.batch, query=query))
    if what == "q":
        call = call_of(trace)
        q = call.q.copy()
        q[0, 0, 3, 1] = value
        return trace_of_call(replace(call, q=q))
    weights = {name: array.copy() for name, array in trace.layer.weights.items()}
    weights[what].flat[3] = value
    return attend(Layer.from_state_dict(weights, 2), trace.batch)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("what", ["input", "q", "in_proj_weight", "out_proj.weight", "out_proj.bias"])
def test_only_what_came_in_is_blamed(what, value):
    trace = spoilt(what, value)
    failed = {check.name: check.words for check in checks(trace) if check.verdict == FAIL}
    assert failed.keys() <= {"input_values", "input_range", "no_key"} and "no_key" not in failed
    name = {"input": "query"}.get(what, what)
    said = {np.nan: "1 NaN", np.inf: "1 ∞", -np.inf: "1 −∞"}[value]
    assert f"{name} holds {said}, at" in failed["input_values"]


@pytest.mark.parametrize("what", ["input", "q", "in_proj_weight"])
def test_the_page_names_the_cause_first(what):
    found = findings(spoilt(what))
    assert found[0].kind == "not_finite" and found[0].sentence.startswith({"input": "query"}.get(what, what))
    assert "No mask made that." in found[0].sentence
    assert [finding.kind for finding in found].count("not_finite") == 1


def test_where_it_came_in_is_told_by_its_place():
    assert origin_of_nonfinite(spoilt("input")) == "query holds 1 NaN, at item 0, token 1, dimension 0"
    assert origin_of_nonfinite(spoilt("q")) == "q holds 1 NaN, at item 0, head 0, token 3, dimension 1"
    assert origin_of_nonfinite(synthetic(SETTINGS)) is None


def test_rows_that_are_finite_are_still_checked():
    """A leak in an item that the NaN does not reach is found beside it."""
    trace = spoilt("q")
    named = {check.name: check for check in checks(trace)}
    assert named["row_sums"].verdict == named["mask_weight"].verdict == "pass"
    assert "1 row left out that cannot be finite: q holds 1 NaN, at item 0" in named["row_sums"].words


def test_scores_that_overflow_are_no_fault_of_the_input():
    batch = Batch(np.full((1, 3, 4), 3e19, np.float32))
    trace = attend(
        Layer.from_state_dict({"in_proj_weight": np.tile(np.eye(4), (3, 1)), "out_proj.weight": np.eye(4)}, 2), batch
    )
    assert trace.nonfinite.all() and origin_of_nonfinite(trace) is None
    (finding,) = findings(trace)
    assert "q and k are finite: scores overflow" in finding.sentence
    named = {check.name: check for check in checks(trace)}
    assert named["row_sums"].verdict == FAIL and "do scores overflow?" in named["row_sums"].words


def test_statistics_say_what_is_missing():
    trace = spoilt("in_proj_weight")
    for name in STATISTICS:
        assert why_not(trace, 1, name) == "no query of item 1 counts: each has weights that are not finite (NaN)"
    trace = spoilt("q")
    assert why_not(trace, 0, "entropy") is None, "the other rows count"
    values = synthetic(SETTINGS)
    call = call_of(values)
    v = call.v.copy()
    v[0, 0, 2, 0] = np.inf
    assert "values v are not all finite" in why_not(trace_of_call(replace(call, v=v)), 0, "contribution")


def test_maps_with_a_number_that_is_none_are_told_as_such():
    weights = np.full((1, 2, 3, 3), 1 / 3)
    weights[0, 1, 2, 0] = np.inf
    (finding,) = findings(trace_of_maps(weights))
    said = "The maps hold numbers that are not finite beside others: 1 row of weights is not finite (item 0, head 1,"
    assert finding.sentence.startswith(said)


def test_a_report_is_json():
    trace = spoilt("input")
    text = json.dumps(report(Source("spoilt", (trace,), None), list(checks(trace))), allow_nan=False)
    assert json.loads(text)["checks"]


def test_a_model_that_gives_numbers_to_rows_without_a_key_is_not_said_to_give_nan():
    """nn.TransformerEncoderLayer in train mode: an item wholly padded has zeros from SDPA, and every gradient is finite."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).train()
    padding = torch.tensor([[False] * 5, [True] * 5])
    with record(layer) as recording:
        layer(torch.randn(2, 5, 8), src_key_padding_mask=padding)
    told = {check.name: check for check in checks(recording.traces[0])}
    assert told["gradients_finite"].verdict != FAIL
    assert "every gradient does" not in told["no_key"].words
    assert "the model gives numbers in their place" in told["no_key"].words
