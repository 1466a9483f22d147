"""One number opened: every step agrees with the Trace, and the steps make the weight and the output between them."""

import json
from dataclasses import asdict, fields
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mha_viz import Batch, Layer, Settings, Trace, attend, synthetic
from mha_viz.analysis.number import open_number
from mha_viz.core.intervention import Intervention, changed

TINY = json.loads((Path(__file__).parents[1] / "data" / "tiny_by_hand.json").read_text())
SMALL = {"embed_dim": 12, "num_heads": 3, "batch_size": 2, "seq_len": 4, "padding": (2,)}
CASES = {
    "plain": {"padding": ()},
    "padded": {},
    "undefined": {"padding": (4,)},
    "causal": {"causal": True, "window": 2},
    "dropout": {"training": True, "dropout": 0.5},
    "everything dropped": {"training": True, "dropout": 1.0},
    "no bias": {"bias": False},
    "extra columns": {"add_bias_kv": True, "add_zero_attn": True},
    "cross": {"kdim": 5, "vdim": 7, "source_len": 6},
}
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}


def tiny(attn_mask=None):
    """The layer worked by hand: E 4, H 2, L 3."""
    names = ("q", "k", "v")
    state = {
        "in_proj_weight": np.concatenate([TINY[f"W{n}"] for n in names]),
        "in_proj_bias": np.concatenate([TINY[f"b{n}"] for n in names]),
        "out_proj.weight": np.array(TINY["Wo"]),
        "out_proj.bias": np.array(TINY["bo"]),
    }
    layer = Layer.from_state_dict(state, num_heads=2)
    return attend(layer, Batch(np.array(TINY["X"]), attn_mask=attn_mask), dtype="float64")


def test_the_case_by_hand():
    """Head 0, query 0, key 1: q = (1, 1), k = (3, 0), scores (2, 3, 3) / √2, v = (2, 2), Wᴼ's first two columns."""
    number = open_number(tiny(), 0, 0, 0, 1)
    np.testing.assert_allclose([*number.q, *number.k, *number.products], [1, 1, 3, 0, 3, 0], atol=1e-12)
    assert (number.dot, number.scale) == pytest.approx((3, 2**-0.5))
    np.testing.assert_allclose(number.masked_scores, np.array([2, 3, 3]) / 2**0.5)
    below = np.exp(-(2**-0.5))  # key 0 lies 1 / √2 under the largest
    np.testing.assert_allclose(number.exponentials, [below, 1, 1])
    weight = 1 / (2 + below)
    assert (number.total, number.probability, number.weight) == pytest.approx((2 + below, weight, weight))
    np.testing.assert_allclose(number.weighted_value, [2 * weight, 2 * weight])
    np.testing.assert_allclose(number.contribution, [2 * weight, 2 * weight, 0, 0], atol=1e-12)
    norms = np.array([below * 2**0.5, 8**0.5, 5**0.5])  # key 0 brings (1, 1, 0, 0), key 2 (2, 1, 1, 0)
    norms[2] = np.linalg.norm([2, 1, 2 - 1, 0])
    assert number.share == pytest.approx(norms[1] / norms.sum())
    np.testing.assert_allclose(number.in_all_heads, [weight, 0.5034898434845538])
    assert (number.bias, number.hidden_by, number.dropped, number.keep_scale) == (None, (), None, None)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_every_cell_agrees_with_the_trace(case, dtype):
    trace = synthetic(Settings(**SMALL | CASES[case]), dtype=dtype)
    near = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    N, H, L, S = trace.weights.shape
    for item, head, query, key in product(range(N), range(H), range(L), range(S)):
        cell = item, head, query, key
        number = open_number(trace, *cell)
        assert number.score == trace.scores[cell]
        np.testing.assert_allclose(number.products.sum() * number.scale, number.score, **near)
        np.testing.assert_allclose(number.exponentials / number.total, trace.probabilities[item, head, query], **near)
        assert number.weight == trace.weights[cell] or np.isnan([number.weight, trace.weights[cell]]).all()
        np.testing.assert_allclose(
            number.probability * (1 if number.dropped is None else number.keep_scale), number.weight, **near
        )
        np.testing.assert_array_equal(number.in_all_heads, trace.weights[item, :, query, key])
        assert bool(number.hidden_by) == trace.mask[cell]
        if number.hidden_by:
            assert number.masked_scores[key] == -np.inf
            assert number.weight == 0 or trace.undefined[item, head, query]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_the_contributions_of_all_keys_and_heads_are_the_output(case, dtype):
    trace = synthetic(Settings(**SMALL | CASES[case]), dtype=dtype)
    _, H, _, S = trace.weights.shape
    opened = [open_number(trace, 0, head, 1, key) for head, key in product(range(H), range(S))]
    total = sum(number.contribution for number in opened) + trace.layer.weights.get("out_proj.bias", 0)
    np.testing.assert_allclose(total, trace.output[0, 1], rtol=TOLERANCE[dtype], atol=3 * TOLERANCE[dtype])
    weighted = sum(number.weighted_value for number in opened[:S])
    np.testing.assert_allclose(weighted, trace.head_outputs[0, 0, 1], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    assert opened[0].norm == pytest.approx(np.linalg.norm(opened[0].contribution), nan_ok=True)
    if case not in ("undefined", "everything dropped"):
        assert sum(number.share for number in opened[:S]) == pytest.approx(1)


def test_a_masked_cell_names_every_rule_that_hides_it():
    query = np.ones((2, 4, 4))
    mask = np.zeros((4, 4), bool)
    mask[0, 3] = True
    batch = Batch(query, key_padding_mask=np.array([[0, 0, 0, 1], [0] * 4], bool), attn_mask=mask, causal=True, window=3)
    trace = attend(Layer.random(4, 2, add_bias_kv=True), batch)
    assert open_number(trace, 0, 1, 0, 3).hidden_by == ("causal", "window", "key padding", "attn_mask")
    assert open_number(trace, 1, 0, 0, 3).hidden_by == ("causal", "window", "attn_mask")
    assert open_number(trace, 1, 0, 1, 3).hidden_by == ("causal",)
    assert open_number(trace, 0, 0, 3, 3).hidden_by == ("key padding",)
    assert open_number(trace, 0, 0, 3, 2).hidden_by == ()
    assert open_number(trace, 0, 0, 0, 4).hidden_by == (), "the column of bias_k is always seen"


def test_a_mask_of_one_head_hides_in_that_head():
    mask = np.zeros((4, 2, 2), bool)  # items 0 and 1, two heads each
    mask[3, 0, 1] = True
    trace = attend(Layer.random(4, 2), Batch(np.ones((2, 2, 4)), attn_mask=mask))
    assert [open_number(trace, n, h, 0, 1).hidden_by for n, h in product((0, 1), (0, 1))] == [(), (), (), ("attn_mask",)]


def test_float_masks_are_added_and_hide_by_minus_infinity_or_by_their_sum():
    added = np.zeros((3, 3))
    added[0] = -np.inf, -40_000, 2
    trace = attend(
        Layer.random(4, 2), Batch(np.ones((1, 3, 4)), attn_mask=added, key_padding_mask=[[0, -40_000.0, 0]]), dtype="float16"
    )
    numbers = [open_number(trace, 0, 0, 0, key) for key in range(3)]
    assert [number.bias for number in numbers] == [0, 0, 2]
    assert [number.hidden_by for number in numbers] == [("attn_mask",), ("key padding", "attn_mask"), ()]
    assert open_number(trace, 0, 0, 1, 1).bias == -40_000
    assert numbers[2].masked_scores[2] == numbers[2].score + 2


def test_an_undefined_row_stays_nan_and_says_what_hides_it():
    number = open_number(synthetic(Settings(**SMALL | {"padding": (4,)})), 0, 0, 0, 0)
    assert number.hidden_by == ("key padding",)
    assert number.largest == -np.inf
    assert np.isnan(
        [*number.exponentials, number.total, number.probability, number.weight, *number.contribution, number.share]
    ).all()


def test_a_dropped_weight_brings_nothing():
    trace = synthetic(Settings(training=True, dropout=0.25))
    item, head, query, key = np.argwhere(trace.dropped)[0]
    number = open_number(trace, item, head, query, key)
    assert (number.dropped, number.keep_scale, number.weight, number.norm, number.share) == (True, 0, 0, 0, 0)
    assert number.probability > 0
    kept = open_number(trace, *np.argwhere(~trace.dropped)[0])
    assert (kept.dropped, kept.keep_scale) == (False, pytest.approx(4 / 3))


def test_what_the_source_does_not_know_is_none():
    trace = tiny()
    known = {name: getattr(trace, name) for name in ("probabilities", "weights")}
    number = asdict(open_number(Trace(known), 0, 0, 0, 1))
    assert {name for name, value in number.items() if value is not None} == {
        "item",
        "head",
        "query",
        "key",
        "hidden_by",
        "probability",
        "weight",
        "in_all_heads",
    }
    assert number["probability"] == trace.probabilities[0, 0, 0, 1]
    masked = Trace(known | {"mask": np.ones((1, 2, 3, 3), bool)})
    assert open_number(masked, 0, 0, 0, 1).hidden_by == ("mask",)
    without_layer = Trace({name: getattr(trace, name) for name in Trace.fields()})
    number = open_number(without_layer, 0, 1, 2, 0)
    assert number.contribution is None and number.weighted_value is not None and number.total is not None


def test_numbers_are_plain():
    """Python's own floats and bools: they print as they are."""
    number = open_number(synthetic(Settings(training=True)), 0, 0, 0, 0)
    for field in fields(number):
        value = getattr(number, field.name)
        assert value is None or type(value) in (int, float, bool, tuple, np.ndarray), field.name


def test_a_head_that_is_off():
    """The probability is what its scores say, the weight what was put there; what a mean brings is made by no cell."""
    before = synthetic(Settings())
    for way, weight in (("zero", 0), ("uniform", 1 / 17)):
        d = open_number(changed(before, Intervention({2: way})), 0, 2, 3, 4)
        assert d.off == way and d.weight == pytest.approx(weight) and d.norm is not None
        assert d.probability == pytest.approx(before.probabilities[0, 2, 3, 4], rel=1e-5)
    d = open_number(changed(before, Intervention({2: "mean"})), 0, 2, 3, 4)
    assert d.off == "mean" and d.contribution is d.norm is d.share is None
    assert open_number(before, 0, 2, 3, 4).off is None


def test_the_scale_in_words():
    before = synthetic(Settings())
    assert open_number(before, 0, 2, 3, 4).scale_told == "1/√16 = 0.250000"
    warmer = changed(before, Intervention(temperature=2.0))
    assert open_number(warmer, 0, 2, 3, 4).scale_told == "0.125000, which is not 1/√16 = 0.250000"
