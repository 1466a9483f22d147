"""The checks of a recorded call, of which q, k and v are known: they pass on what is right, and fail on what they are there to find."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mha_viz
from mha_viz import synthetic
from mha_viz.analysis.causes import findings
from mha_viz.analysis.validation import QUESTIONS, Subject, checks, gradients
from mha_viz.core.attend import call_of, trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.mask import Mask
from mha_viz.core.reference import softmax
from tests.analysis.validation.test_breaking import CAUSAL, LEFT, PLAIN, RIGHT, WINDOW, altered

NEEDS_THE_LAYER = {"input_shape", "layouts", "item_alone", "fast_path", "deterministic"}


def call(settings, **change):
    """The Call of these Settings, with some of its arrays changed: ``q=lambda q: …``."""
    found = call_of(synthetic(settings))
    return replace(found, **{name: do(np.array(getattr(found, name))) for name, do in change.items()})


def subject(settings, **change):
    return Subject(trace_of_call(call(settings, **change)))


def reruns(settings, broken):
    return Subject(trace_of_call(call(settings)), rerun=broken)


def unmasked(found):
    return trace_of_call(replace(found, mask=Mask(found.mask.num_queries, found.mask.num_keys)))


def not_causal(found):
    return trace_of_call(replace(found, mask=replace(found.mask, causal=False)))


def mixed_items(found):
    return trace_of_call(replace(found, v=found.v + found.v.mean(axis=0)))


def with_places(found):
    """Adds to each key what only its place says."""
    return trace_of_call(replace(found, k=found.k + np.arange(found.k.shape[2], dtype=np.float32)[:, None]))


def set_head(value, head=0):
    def change(array):
        array[:, head] = value
        return array

    return change


def same_everywhere(array):
    array[:] = 0
    return array


def tensor(settings, name, change):
    trace = trace_of_call(call(settings))
    return Subject(altered(trace, {name: change(trace)}))


BROKEN = {
    "input_values": lambda: subject(PLAIN, k=set_head(np.nan)),
    "input_range": lambda: subject(PLAIN, q=set_head(1e30)),
    "order": lambda: reruns(PLAIN, with_places),
    "row_sums": lambda: tensor(PLAIN, "probabilities", lambda t: softmax(t.scores.swapaxes(2, 3)).swapaxes(2, 3)),
    "no_key": lambda: subject(LEFT),
    "padding_content": lambda: reruns(PLAIN, unmasked),
    "padding_length": lambda: reruns(PLAIN, unmasked),
    "mask_content": lambda: reruns(WINDOW, unmasked),
    "causality": lambda: reruns(CAUSAL, not_causal),
    "numpy": lambda: tensor(PLAIN, "head_outputs", lambda t: t.head_outputs * 1.001),
    "items": lambda: reruns(PLAIN, mixed_items),
    "no_weights": lambda: tensor(PLAIN, "head_outputs", lambda t: t.head_outputs * 1.001),
    "decoding": lambda: reruns(PLAIN, not_causal),
    "gradients_finite": lambda: subject(LEFT),
    "gradients_heads": lambda: subject(PLAIN, q=set_head(0), k=set_head(0), v=set_head(0)),
    "uniform": lambda: subject(PLAIN, q=same_everywhere),
    "one_head": lambda: subject(PLAIN, q=same_everywhere),
}


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name not in {*NEEDS_THE_LAYER, "dropout_off"}])
def test_passes_on_what_is_right(name):
    found = QUESTIONS[name].ask(subject(RIGHT.get(name, PLAIN)))
    assert found.verdict == "pass", found


@pytest.mark.parametrize("name", sorted(NEEDS_THE_LAYER))
def test_what_needs_the_layer_says_so(name):
    found = QUESTIONS[name].ask(subject(PLAIN))
    assert found.verdict == "cannot run" and "only what came out" in found.words


@pytest.mark.parametrize("name", BROKEN)
def test_fails_on_what_it_is_there_to_find(name):
    found = QUESTIONS[name].ask(BROKEN[name]())
    assert found.verdict == "fail", found


def test_dropout_that_was_kept_with_a_call_is_found():
    """A recording of a layer in train mode holds its draw; without one nothing is known of dropout."""
    assert "not known" in QUESTIONS["dropout_off"].ask(subject(PLAIN)).words
    found = call(PLAIN)
    keep = np.full((3, 2, 5, 5), 4 / 3, np.float32)
    keep[..., 0] = 0
    found = QUESTIONS["dropout_off"].ask(Subject(trace_of_call(found, keep_scale=keep)))
    assert found.verdict == "fail" and found.figure == pytest.approx(0.2)


def test_gradcheck_finds_a_wrong_derivative(monkeypatch):
    right = gradients.mixed
    monkeypatch.setattr(gradients, "mixed", lambda q, *rest: right(q, *rest) + 0.1 * (q - q.detach()).sum())
    assert QUESTIONS["gradcheck"].ask(subject(PLAIN)).verdict == "fail"


def test_gradients_that_reach_padding_are_found(monkeypatch):
    monkeypatch.setattr(Subject, "added", lambda s: np.zeros(s.mask.shape))
    assert QUESTIONS["gradients_padding"].ask(subject(PLAIN)).verdict == "fail"


def test_grouped_heads_and_unknown_values():
    """Two query heads read one key and value head; where the values are unknown, the weights are checked all the same."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, heads, 5, 4)).astype(np.float32) for heads in (4, 2, 2))
    mask = Mask(5, 5, causal=True)
    whole = Subject(trace_of_call(Call(q, k, v, mask)))
    found = {name: question.ask(whole).verdict for name, question in QUESTIONS.items()}
    assert "fail" not in found.values()
    for name in (
        "numpy",
        "no_weights",
        "decoding",
        "causality",
        "items",
        "order",
        "gradcheck",
        "gradients_heads",
        "uniform",
        "one_head",
    ):
        assert found[name] == "pass", name
    weights_alone = Subject(trace_of_call(Call(q, k, None, mask)))
    for name in ("numpy", "causality", "items", "order"):
        assert QUESTIONS[name].ask(weights_alone).verdict == "pass", name
    for name in ("decoding", "no_weights", "gradients_finite", "uniform"):
        assert QUESTIONS[name].ask(weights_alone).words == "The values are not known here."


def test_the_generator_that_everybody_shares_is_left_alone():
    torch.manual_seed(3)
    right = torch.rand(4)
    torch.manual_seed(3)
    QUESTIONS["gradcheck"].ask(subject(PLAIN))
    assert torch.equal(torch.rand(4), right)


def masked_in_one_head(without_key):
    """A recorded call of 3 heads, of which head 1 may see nothing."""
    dense = np.zeros((1, 3, 5, 5), bool)
    dense[:, 1] = True
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 3, 5, 4)).astype(np.float32)
    out = np.random.default_rng(1).normal(size=(12, 12)).astype(np.float32)
    return trace_of_call(Call(q, k, v, Mask(5, 5, dense=dense), out_weight=out, without_key=without_key))


@pytest.mark.parametrize("without_key", ("zero", "nan"))
def test_rows_without_keys_are_compared_where_the_model_gave_them_numbers(without_key):
    trace = masked_in_one_head(without_key)
    names = ("no_weights", "numpy", "mask_weight", "mask_content")
    without, numpy, weight, content = (QUESTIONS[name].ask(Subject(trace)) for name in names)
    assert without.verdict == numpy.verdict == "pass" and ("left out" in without.words) == (without_key == "nan")
    assert "none left" in weight.words and "in every head" in content.words


def test_another_number_in_a_row_without_keys_is_found():
    trace = masked_in_one_head("zero")
    outputs = trace.head_outputs.copy()
    outputs[:, 1] = 0.5
    assert QUESTIONS["no_weights"].ask(Subject(altered(trace, {"head_outputs": outputs}))).verdict == "fail"


def test_gradients_of_rows_that_the_model_gave_zero_are_finite():
    assert [QUESTIONS["gradients_finite"].ask(Subject(masked_in_one_head(way))).verdict for way in ("zero", "nan")] == [
        "pass",
        "fail",
    ]


@pytest.mark.parametrize("everywhere", (False, True))
def test_rows_that_a_number_fills_are_permuted_and_padded_as_they_came_out(everywhere):
    class Model(nn.Module):
        def forward(self, q, k, v, mask):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, length, 4, generator=generator) for length in (3, 5, 5))
    mask = torch.zeros(3, 5)
    mask[slice(None) if everywhere else 0] = torch.finfo(torch.float32).min
    with mha_viz.record(model := Model()) as recording:
        model(q, k, v, mask)
    (trace,) = recording.traces
    assert np.allclose(trace.weights[0, :, 0], 0.2)
    verdicts = {check.name: check.verdict for check in checks(trace)}
    assert verdicts["order"] == verdicts["padding_length"] == "pass"
    assert {verdicts[name] for name in ("padding_weight", "padding_content", "gradients_padding")} == {"cannot run"}


class Filled(nn.Module):
    """Attention whose float mask adds ``number`` to all keys of item 0, which is padding as a whole, and to the last two of item 1."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, q, k, v):
        mask = torch.zeros(2, 1, 1, 6, dtype=q.dtype)
        mask[0], mask[1, ..., 4:] = self.number, self.number
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float32, torch.float64))
@pytest.mark.parametrize("number", ("the least", -1e4))
def test_digits_that_a_large_number_takes_are_not_asked_for(dtype, number):
    q, k, v = torch.randn(3, 2, 2, 6, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
    with mha_viz.record(model := Filled(torch.finfo(dtype).min if number == "the least" else number)) as recording:
        model(q, k, v)
    (trace,) = recording.traces
    assert {check.name for check in checks(trace) if check.verdict == "fail"} == set()
    found = QUESTIONS["numpy"].ask(Subject(trace))
    off = altered(trace, {"head_outputs": trace.head_outputs + np.float32(1e-4) * (np.arange(2) == 1).reshape(2, 1, 1, 1)})
    assert QUESTIONS["numpy"].ask(Subject(off)).verdict == "fail", "item 1 keeps the tolerance that it had"
    assert found.tolerance < 1


@pytest.mark.parametrize("dtype", ("float32", "float16", "bfloat16"))
@pytest.mark.parametrize("number", (-1e4, -65504.0))
def test_so_in_a_layer(dtype, number):
    mask = np.zeros((6, 6), np.float32)
    mask[2], mask[:, 4:] = number, number
    x = np.random.default_rng(0).normal(size=(2, 6, 8)).astype(np.float32)
    trace = mha_viz.attend(
        mha_viz.Layer.random(embed_dim=8, num_heads=2, seed=7), mha_viz.Batch(x, attn_mask=mask), dtype=dtype
    )
    assert {check.name for check in checks(trace) if check.verdict == "fail"} == set()


@pytest.mark.parametrize(("number", "said"), ((np.inf, "1 number of the input is infinite: query holds 1 ∞"), (np.nan, None)))
def test_an_infinite_number_leaves_no_room(number, said):
    x = np.random.default_rng(0).normal(size=(2, 6, 8)).astype(np.float32)
    x[0, 1, 0] = number
    layer = mha_viz.Layer.random(embed_dim=8, num_heads=2, seed=7)
    found = QUESTIONS["input_range"].ask(Subject(mha_viz.attend(layer, mha_viz.Batch(x))))
    assert found.verdict == ("fail" if said else "pass") and (not said or said in found.words)
    every = {
        name: QUESTIONS[name].ask(Subject(mha_viz.attend(layer, mha_viz.Batch(np.full_like(x, number))))) for name in QUESTIONS
    }
    assert every["input_range"].verdict == ("fail" if said else "cannot run")
    assert every["items"].verdict == every["item_alone"].verdict == "cannot run", "nothing was compared"


def test_rows_of_maps_that_hold_no_number_have_an_unknown_cause():
    maps = np.full((1, 2, 4, 4), 0.25, np.float32)
    maps[0, 1, 2] = np.nan
    trace = trace_of_maps(maps)
    found = QUESTIONS["no_key"].ask(Subject(trace))
    assert found.verdict == "fail"
    assert found.words == "1 row of real queries: the maps hold no number (NaN), and why they do not say, in batch item 0."
    (finding,) = findings(trace)
    assert finding.sentence == "Item 0, head 1, query 2: the maps hold no numbers there (NaN): undefined."
