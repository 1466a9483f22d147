"""Right values, written down once: cases made with PyTorch in float64, and a tiny one worked out by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer

DATA = Path(__file__).parents[1] / "data"
CASES = json.loads((DATA / "attention_cases.json").read_text(encoding="utf-8"))["cases"]
TINY = json.loads((DATA / "tiny_by_hand.json").read_text(encoding="utf-8"))
WITHIN = {"float64": 1e-12, "float32": 1e-6}

by_engine = pytest.mark.parametrize("engine", ["torch", "numpy"])
by_dtype = pytest.mark.parametrize("dtype", WITHIN)
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])


def floats(nested, null=np.nan):
    """A nested list of numbers as float64, with None as ``null``."""
    array = np.array(nested, object)
    return np.where(array == None, null, array).astype(float)  # noqa: E711 (elementwise)


def layer_of(case, array=np.array):
    weights = {name: array(value) for name, value in case["state_dict"].items()}
    return Layer.from_state_dict(weights, case["num_heads"], add_zero_attn=case["add_zero_attn"])


def batch_of(case, array=np.array):
    names = ("query",) if case["self_attention"] else ("query", "key", "value")
    given = {name: array(case[name]) for name in names}
    mask, padding = case["attn_mask"], case["key_padding_mask"]
    if mask is not None:
        mask = mask if isinstance(mask[0][0], bool) else floats(mask, -np.inf).tolist()
    masks = {"attn_mask": mask, "key_padding_mask": padding}
    return Batch(**given, **{name: array(mask) for name, mask in masks.items() if mask is not None})


def close(ours, right, dtype):
    """Equal within the tolerance of ``dtype``, with NaN exactly where ``right`` has NaN."""
    np.testing.assert_allclose(ours, right, rtol=0, atol=WITHIN[dtype])
    return True


@by_engine
@by_dtype
@by_case
def test_case(case, dtype, engine):
    trace = attend(layer_of(case), batch_of(case), engine=engine, dtype=dtype)
    assert close(trace.weights, floats(case["weights"]), dtype)
    assert close(trace.output, floats(case["output"]), dtype)
    assert close(trace.mean_weights, floats(case["weights"]).mean(axis=1), dtype)
    assert np.argwhere(trace.undefined).tolist() == case["fully_masked_rows"]
    assert trace.output.dtype == trace.weights.dtype == dtype


def tensor(value):
    return torch.tensor(value, dtype=torch.bool if np.array(value).dtype == bool else torch.float64)


@pytest.mark.parametrize("array", [list, tensor], ids=["nested lists", "tensors"])
@by_case
def test_case_as_lists_and_tensors(case, array):
    """Whatever holds the numbers, they are the same numbers, to the last bit."""
    trace = attend(layer_of(case, array), batch_of(case, array), dtype="float64")
    right = attend(layer_of(case), batch_of(case), dtype="float64")
    assert np.array_equal(trace.weights, right.weights, equal_nan=True)
    assert np.array_equal(trace.output, right.output, equal_nan=True)


def tiny():
    X, Wq, Wk, Wv, Wo = (np.array(TINY[name]) for name in ("X", "Wq", "Wk", "Wv", "Wo"))
    biases = np.concatenate([TINY[name] for name in ("bq", "bk", "bv")])
    weights = {"in_proj_weight": np.vstack([Wq, Wk, Wv]), "in_proj_bias": biases}
    layer = Layer.from_state_dict(weights | {"out_proj.weight": Wo, "out_proj.bias": np.array(TINY["bo"])}, TINY["num_heads"])
    return layer, X


@by_engine
@by_dtype
@pytest.mark.parametrize("name", TINY["cases"])
def test_tiny_every_intermediate(name, dtype, engine):
    """All steps between input and output, in numbers that a person can check with a pencil."""
    case = TINY["cases"][name]
    layer, X = tiny()
    trace = attend(layer, Batch(X, attn_mask=case["attn_mask"], key_padding_mask=case["key_padding_mask"]), engine, dtype)
    joined = {
        name: array.transpose(0, 2, 1, 3).reshape(X.shape) for name, array in (("Q", trace.q), ("K", trace.k), ("V", trace.v))
    }
    for name, ours in joined.items():  # [N, H, L, D] → [N, L, E], as the file has them
        assert close(ours, np.array(case[name]), dtype)
    masked = np.where(trace.mask, np.nan, trace.scores)
    assert close(masked, floats(case["scores"]), dtype)  # the file has null where a mask hides the score
    assert close(trace.probabilities, np.array(case["A"]), dtype)
    assert close(trace.weights, np.array(case["A"]), dtype)
    assert close(trace.mean_weights, np.array(case["A_avg"]), dtype)
    assert close(trace.head_outputs, np.array(case["ctx"]), dtype)
    assert close(trace.concat, np.array(case["concat"]), dtype)
    assert close(trace.output, np.array(case["out"]), dtype)
    assert not trace.undefined.any()


@by_engine
def test_causal_as_a_rule_equals_the_mask(engine):
    """``causal=True`` gives what the same triangle gives as attn_mask."""
    layer, X = tiny()
    by_rule = attend(layer, Batch(X, causal=True), engine, "float64")
    assert close(by_rule.output, np.array(TINY["cases"]["causal"]["out"]), "float64")
    assert by_rule.mask[0, 0].tolist() == TINY["cases"]["causal"]["attn_mask"]
