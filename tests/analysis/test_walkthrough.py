"""One query followed: every tensor of every step is the Trace's, or made of it by the plain formula."""

import numpy as np
import pytest
from torch import nn, tensor

from mha_viz import Batch, Settings, attend, synthetic
from mha_viz.analysis.walkthrough import dropout_of, head_parts, walk
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.trace import Trace
from mha_viz.settings import STEPS
from mha_viz.settings.settings import TINY
from tests.analysis.kinds import of_kind
from tests.core.pytorch import call, module

SMALL = {"embed_dim": 12, "num_heads": 3, "batch_size": 2, "seq_len": 5, "padding": (2,)}
CASES = {
    "padded": {},
    "dropout": {"training": True, "dropout": 0.5},
    "no bias": {"bias": False},
    "extra keys": {"add_bias_kv": True, "add_zero_attn": True},
    "cross": {"kdim": 5, "vdim": 7, "source_len": 6, "causal": True},
    "added": {"attn_mask": "0.5,0,0,0,-inf/0,0,-1,0,0/0,0,0,0,0/0,0,0,0,0/0,0,2,0,0"},
    "undefined": {"padding": (5,)},
}
near = {"rtol": 1e-5, "atol": 1e-6}


def values(walked, step, symbol):
    return next(one.values for one in walked.tensors[step] if one.symbol == symbol)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES)
def test_one_head_by_the_formula(case):
    """softmax(q kᵀ / √D + mask) v, for one query of one head, in NumPy's plainest words."""
    trace = synthetic(Settings(**SMALL | CASES[case]))
    n, h, i = 0, 2, 3
    walked = walk(trace, n, h, i, 1)
    layer, x = trace.layer, trace.batch.query[n, i]
    own = slice(h * 4, (h + 1) * 4)
    bias = layer.weights.get("in_proj_bias", np.zeros(36, np.float32))[:12]
    q = x @ layer.projections[0][own].T + bias[own]
    np.testing.assert_allclose(values(walked, "query", "q"), q[None], **near)
    K, V = values(walked, "keys", "K"), values(walked, "values", "V")
    np.testing.assert_array_equal(K, trace.k[n, h])
    dots = np.array([sum(a * b for a, b in zip(q, k, strict=True)) for k in K])  # [S]
    np.testing.assert_allclose(values(walked, "dot", "q · k"), dots[None], **near)
    np.testing.assert_allclose(values(walked, "scale", "score"), dots[None] / 2, **near)
    added = 0 if trace.mask_bias is None else trace.mask_bias[n, h, i]
    seen = np.where(trace.mask[n, h, i], -np.inf, dots / 2 + added)
    np.testing.assert_allclose(values(walked, "mask", "score + mask"), seen[None], **near)
    if np.isneginf(seen).all():
        for step in ("softmax", "values", "output"):
            assert np.isnan(walked.tensors[step][-1].values).all()
        return
    raised = np.exp(seen - seen.max())
    np.testing.assert_allclose(values(walked, "softmax", "exp(score − largest)"), raised[None], **near)
    weights = raised / raised.sum()
    np.testing.assert_allclose(values(walked, "softmax", "weights"), weights[None], **near)
    if case == "dropout":
        weights = weights * np.where(trace.dropped[n, h, i], 0, 2)
        np.testing.assert_allclose(values(walked, "dropout", "weights"), [trace.probabilities[n, h, i]], **near)
        np.testing.assert_allclose(walked.tensors["dropout"][-1].values, weights[None], **near)
    np.testing.assert_allclose(values(walked, "values", "weight × v"), weights[:, None] * V, **near)
    np.testing.assert_allclose(values(walked, "values", "head"), [weights @ V], **near)


@pytest.mark.parametrize("case", CASES)
def test_the_output_is_a_sum_over_heads(case):
    """Σ headₕ Wᴼₕ + bias is Concat(…) Wᴼ + bias, and what nn.MultiheadAttention gives for this query."""
    trace = synthetic(Settings(**SMALL | CASES[case]))
    for query in range(5):
        parts = head_parts(trace, 0, query)
        assert len(parts) == 3 + (case != "no bias")
        np.testing.assert_allclose(parts.sum(axis=0), trace.output[0, query], **near)
    weight = trace.layer.weights["out_proj.weight"]
    head_1 = nn.functional.linear(tensor(trace.head_outputs[0, 1, 4]), tensor(weight[:, 4:8])).numpy()
    np.testing.assert_allclose(head_parts(trace, 0, 4)[1], head_1, **near)
    if case in ("padded", "no bias", "extra keys"):
        output, _ = call(module(trace.layer).eval(), trace.batch)
        followed = walk(trace, 0, None, 4, 0)
        np.testing.assert_allclose(values(followed, "output", "output"), output[0, [4]], **near)
        np.testing.assert_allclose(values(followed, "output", "MHA(X)"), output[0], **near)


@pytest.mark.parametrize("case", CASES)
def test_all_heads_are_each_head(case):
    trace = synthetic(Settings(**SMALL | CASES[case]))
    together = walk(trace, 0, None, 2, 1, shown=1)
    for head in range(3):
        alone = walk(trace, 0, head, 2, 1)
        assert alone.steps == together.steps and alone.shown == head
        for step in ("query", "dot", "scale", "mask", "softmax", "values"):
            np.testing.assert_array_equal(together.tensors[step][-1].values[head], alone.tensors[step][-1].values[0])
        block = slice(head * 4, (head + 1) * 4)
        for step, which in (("keys", -1), ("configure", -1)):
            np.testing.assert_array_equal(together.tensors[step][which].values[:, block], alone.tensors[step][which].values)
        start, stop = alone.tensors["concat"][-1].columns
        np.testing.assert_array_equal(alone.tensors["concat"][-1].values[0, start:stop], alone.tensors["values"][-1].values[0])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("head", [None, 1])
def test_every_tensor_has_a_name_for_each_axis_and_the_size_it_says(case, head):
    trace = synthetic(Settings(**SMALL | CASES[case]))
    walked = walk(trace, 1, head, 2, 1)
    assert list(walked.steps) == [name for name in STEPS if name in walked.tensors]
    assert ("dropout" in walked.steps) == (case == "dropout")
    for step in walked.steps:
        for one in walked.tensors[step]:
            assert one.values.ndim == 2 and 0 not in one.values.shape
            for axis, size in zip(one.axes, one.values.shape, strict=True):
                assert (size == 1) if axis is None else axis.names is None or len(axis.names) == size
                if axis is not None and axis.letter in one.shape:
                    assert one.shape[axis.letter] == size
            assert one.hidden is None or one.hidden.shape == one.values.shape
            for place, size in ((one.row, one.values.shape[0]), (one.column, one.values.shape[1])):
                assert place is None or place < size


def test_cross_attention_shows_its_source():
    """Keys are made of another sequence, without the columns that are no tokens."""
    trace = synthetic(Settings(**SMALL | CASES["cross"], add_zero_attn=True))
    assert [one.symbol for one in walk(trace, 1, 0, 2, 6).tensors["input"]] == ["xᵢ", "Y", "X"]
    np.testing.assert_array_equal(values(walk(trace, 1, 0, 2, 6), "input", "Y"), trace.batch.key[1])
    assert [one.symbol for one in walk(synthetic(Settings()), 0, 0, 0, 0).tensors["input"]] == ["xᵢ", "X"]


def test_the_case_by_hand():
    """Query 0 of head 0 scores (2, 3, 3) / √2."""
    walked = walk(synthetic(Settings(**TINY, case="tiny")), 0, 0, 0, 1)
    np.testing.assert_allclose(values(walked, "dot", "q · k"), [[2, 3, 3]])
    np.testing.assert_allclose(values(walked, "scale", "score"), np.array([[2, 3, 3]]) / 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(values(walked, "softmax", "weights"), [[0.198, 0.401, 0.401]], atol=5e-4)


def held(trace, item=0):
    return {check.name: check.holds for check in walk(trace, item, 0, 0, 0).checks}


def test_what_has_to_hold_does():
    assert held(synthetic(Settings())) == {
        "shape": True,
        "input": True,
        "row sums": True,
        "padding and masks": True,
        "output is a sum": True,
    }
    assert held(synthetic(Settings(padding=())))["padding and masks"] is None, "nothing was checked"


def broken(trace, **fields):
    """The Trace of a layer that does something wrong."""
    known = {name: getattr(trace, name) for name in Trace.fields()}
    return Trace(known | fields, tokens=trace.tokens, layer=trace.layer, batch=trace.batch)


def test_each_check_sees_what_it_is_there_for():
    trace = synthetic(Settings(**SMALL))
    assert held(trace) == {name: True for name in held(trace)}
    assert held(broken(trace, probabilities=trace.probabilities * 1.001))["row sums"] is False
    leaking = trace.probabilities + np.where(trace.mask, 1e-9, 0)
    assert held(broken(trace, probabilities=leaking))["padding and masks"] is False
    assert held(broken(trace, output=trace.output + 1e-3))["output is a sum"] is False
    averaged = np.repeat(trace.head_outputs.mean(axis=1, keepdims=True), 3, axis=1)
    assert held(broken(trace, head_outputs=averaged))["output is a sum"] is False
    assert held(broken(trace, output=trace.output[:, :4]))["shape"] is False
    assert held(synthetic(Settings(**SMALL | {"padding": (5,)})))["keys left"] is False


def test_an_input_that_is_not_finite_is_seen():
    trace = synthetic(Settings(**SMALL))
    x = trace.batch.query.copy()
    x[0, 1, 2] = np.inf
    found = attend(trace.layer, Batch(x))
    assert held(found)["input"] is False and held(found, item=1)["input"] is True


# What a Trace does not know


def test_a_recording_is_followed_from_q_on():
    """The same numbers as where the layer is known; what went in, and the projections of it, are left out."""
    trace = synthetic(Settings(**SMALL, causal=True))
    whole = walk(trace, 1, 2, 3, 1)
    recorded = walk(of_kind("call", trace), 1, 2, 3, 1)
    assert [step for step in whole.steps if step not in recorded.steps] == ["input", "configure"] == list(recorded.missing)
    for step in recorded.steps[:-1]:
        ours, theirs = recorded.tensors[step][-1], whole.tensors[step][-1]
        np.testing.assert_allclose(ours.values, theirs.values, **near)
        assert ours.shape == theirs.shape
    assert {check.name: check.holds for check in recorded.checks} == {
        "shape": True,
        "row sums": True,
        "padding and masks": True,
        "output is a sum": True,
    }


def test_of_a_map_only_the_weights_and_their_average_are_followed():
    trace = synthetic(Settings(**SMALL))
    walked = walk(of_kind("maps", trace), 1, 2, 3, 1)
    assert walked.steps == ("softmax", "validate")
    assert set(walked.missing) == set(STEPS) - {"softmax", "dropout", "validate"}
    np.testing.assert_array_equal(values(walked, "softmax", "weights"), trace.probabilities[1, [2], 3])
    np.testing.assert_array_equal(values(walked, "softmax", "average"), trace.mean_weights[1, [3]])
    assert {check.name: check.holds for check in walked.checks} == {"row sums": True, "padding and masks": None}


def test_a_call_without_values_is_followed_up_to_its_weights():
    """And scores that are not divided by √D say by what they are multiplied."""
    trace = synthetic(Settings(**SMALL))
    walked = walk(trace_of_call(Call(trace.q, trace.k, scale=0.3)), 0, None, 1, 0)
    assert walked.steps == ("query", "keys", "dot", "scale", "mask", "softmax", "validate")
    assert walked.tensors["scale"][-1].words == "q · k · 0.3"
    np.testing.assert_allclose(values(walked, "scale", "score"), 0.3 * values(walked, "dot", "q · k"), **near)


def test_half_precision_is_held_to_what_it_can_keep():
    trace = synthetic(Settings(**SMALL))
    q, k, v = (array.astype(np.float16) for array in (trace.q, trace.k, trace.v))
    assert held(trace_of_call(Call(q, k, v)))["row sums"]


def test_the_dropout_of_a_recording_is_told_by_its_draw():
    trace = synthetic(Settings(**SMALL, training=True, dropout=0.25))
    call = Call(trace.q, trace.k, trace.v, trace.rules)
    recorded = trace_of_call(call, keep_scale=trace.keep_scale)
    assert dropout_of(recorded) == pytest.approx(0.25) and dropout_of(trace) == 0.25 and dropout_of(trace_of_call(call)) == 0
    np.testing.assert_allclose(walk(recorded, 0, 1, 2, 0).tensors["dropout"][-1].values, trace.weights[0, [1], 2], **near)
