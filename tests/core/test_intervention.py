"""What-ifs on one call, against the same thing done by hand in PyTorch."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from mha_viz.core.attend import attend, trace_of_call
from mha_viz.core.batch import Batch
from mha_viz.core.call import Call
from mha_viz.core.intervention import WAYS, Intervention, changed
from mha_viz.core.layer import Layer
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace
from mha_viz.recording import Recording, load

N, H, L, D = 2, 3, 5, 4
E = H * D
PADDED = np.array([[False] * 5, [False, False, False, True, True]])


def made(**options):
    query = np.random.default_rng(3).standard_normal((N, L, E))
    causal = options.pop("causal", False)
    return attend(Layer.random(E, H, seed=1, **options), Batch(query, key_padding_mask=PADDED, causal=causal), dtype="float64")


def by_hand(trace, off=(), hidden=(), temperature=1.0):
    """(weights, head outputs, output) with the formulas written out; heads in ``off`` map to a function of (weights, v) → both."""
    q, k, v = (torch.tensor(array) for array in (trace.q, trace.k, trace.v))
    mask = torch.tensor(trace.mask) | torch.tensor([key in hidden for key in range(k.shape[2])])
    scores = q @ k.mT / D**0.5 / temperature
    weights = F.softmax(scores.masked_fill(mask, -torch.inf), dim=-1)
    outputs = weights @ v
    for head, replace in dict(off).items():
        weights[:, head], outputs[:, head] = replace(weights[:, head], v[:, head], mask[:, head])
    weight, bias = (torch.tensor(array, dtype=torch.float64) for array in trace.out_proj)
    return weights, outputs, F.linear(outputs.transpose(1, 2).flatten(2), weight, bias)


def zero(weights, v, mask):
    return 0 * weights, 0 * (weights @ v)


def uniform(weights, v, mask):
    alike = (~mask).double() / (~mask).sum(-1, keepdim=True)
    return alike, alike @ v


def mean(weights, v, mask):
    real = ~torch.tensor(PADDED)
    outputs = weights @ v
    return weights[real].mean(0).expand_as(weights), outputs[real].mean(0).expand_as(outputs)


def agree(trace, weights, outputs, output):
    np.testing.assert_allclose(trace.weights, weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace.mean_weights, weights.mean(1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace.head_outputs, outputs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace.concat, outputs.transpose(1, 2).flatten(2), rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace.output, output, rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("way", [zero, mean, uniform])
def test_a_head_put_off(way, causal):
    before = made(causal=causal)
    after = changed(before, Intervention(off={1: way.__name__}))
    agree(after, *by_hand(before, {1: way}))
    assert np.array_equal(after.weights[:, [0, 2]], before.weights[:, [0, 2]])
    assert not np.allclose(after.weights[:, 1], before.weights[:, 1])


def test_probabilities_follow_except_where_nothing_arrives():
    """A head at "zero" has chosen all the same; the two others choose as they are shown."""
    before = made()
    after = changed(before, Intervention(off={0: "zero", 1: "mean", 2: "uniform"}))
    assert np.array_equal(after.probabilities[:, 0], before.probabilities[:, 0])
    assert np.array_equal(after.probabilities[:, 1:], after.weights[:, 1:])


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_temperature(temperature):
    before = made()
    after = changed(before, Intervention(temperature=temperature))
    agree(after, *by_hand(before, temperature=temperature))
    np.testing.assert_allclose(after.scores, before.scores / temperature, rtol=0, atol=1e-12)
    assert after.scale == pytest.approx(D**-0.5 / temperature)


def test_the_ends_of_temperature_are_all_or_nothing():
    before = made()
    seen = ~before.mask
    np.testing.assert_allclose(changed(before, Intervention(temperature=1e-3)).weights.max(axis=-1), 1, atol=1e-6)
    flat = changed(before, Intervention(temperature=1e3)).weights
    np.testing.assert_allclose(flat, seen / seen.sum(axis=-1, keepdims=True), atol=1e-3)


def test_hidden_keys():
    before = made()
    after = changed(before, Intervention(hidden_keys=(0, 2)))
    agree(after, *by_hand(before, hidden=(0, 2)))
    assert after.mask[..., [0, 2]].all() and not after.weights[..., [0, 2]].any()
    assert after.rules.padded[:, [0, 2]].all() and not before.mask[0].any()


def test_all_of_it_at_once():
    """Keys and temperature first, then the heads: "uniform" spreads over the keys that are left."""
    before = made(add_bias_kv=True, add_zero_attn=True)
    after = changed(before, Intervention({0: "zero", 1: "uniform", 2: "mean"}, (1,), 2.0))
    agree(after, *by_hand(before, {0: zero, 1: uniform, 2: mean}, (1,), 2.0))


def test_nothing_changed_is_the_same_trace_and_the_old_one_stays():
    before = made()
    assert changed(before, Intervention()) is before
    kept = before.weights.copy()
    after = changed(before, Intervention({0: "zero"}, (1,), 2.0))
    assert np.array_equal(before.weights, kept)
    with pytest.raises(ValueError, match="read-only"):
        after.weights[:] = 0


@pytest.mark.parametrize("way", WAYS)
def test_a_row_without_a_key_stays_undefined(way):
    """Hiding the first key of a causal call leaves query 0 nothing: NaN is kept, also in a head that is off."""
    after = changed(made(causal=True), Intervention({0: way}, (0,)))
    assert after.undefined[:, :, 0].all() and not after.undefined[:, :, 1:].any()
    assert np.isnan(after.weights[:, :, 0]).all() and not np.isnan(after.weights[:, :, 1:]).any()
    assert np.isnan(after.output[:, 0]).all() and not np.isnan(after.output[:, 1:]).any()


def test_a_recorded_call_with_grouped_heads_and_no_values():
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((1, heads, 4, D)).astype(np.float32) for heads in (4, 2))
    before = trace_of_call(Call(q, k, name="decoder.0"))
    after = changed(before, Intervention({3: "uniform"}, (1,), 2.0))
    assert after.name == "decoder.0" and not after.has("head_outputs") and not after.has("output")
    np.testing.assert_allclose(after.weights[0, 3], np.tile([1 / 3, 0, 1 / 3, 1 / 3], (4, 1)), rtol=1e-6)


def test_maps_alone_can_have_heads_off():
    maps = trace_of_maps(np.full((1, 2, 3, 3), 1 / 3, np.float32))
    after = changed(maps, Intervention(off={1: "zero"}))
    assert not after.weights[0, 1].any() and after.mean_weights[0, 0, 0] == pytest.approx(1 / 6)
    assert [name for name in Trace.fields() if after.has(name)] == [name for name in Trace.fields() if maps.has(name)]


@pytest.mark.parametrize("asked", [{"hidden_keys": (0,)}, {"temperature": 2.0}])
def test_what_maps_alone_cannot_answer(asked):
    maps = trace_of_maps(np.full((1, 2, 3, 3), 1 / 3, np.float32))
    with pytest.raises(Wrong, match="needs q and k") as caught:
        changed(maps, Intervention(**asked))
    assert changed(maps, Intervention(**caught.value.nearest[0])) is maps


def test_dropout_has_to_be_off():
    layer = Layer.random(E, H, dropout=0.5)
    batch = Batch(np.ones((1, 3, E), np.float32))
    with pytest.raises(Wrong, match="dropout"):
        changed(attend(layer, batch, training=True, generator=torch.Generator()), Intervention(off={0: "zero"}))
    changed(attend(layer, batch), Intervention(off={0: "zero"}))


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ({"off": {3: "zero"}}, {"off": ((2, "zero"),)}),
        ({"off": {1: "mean", 7: "zero"}}, {"off": ((1, "mean"), (2, "zero"))}),
        ({"off": {2: "mean", 7: "zero"}}, {"off": ((2, "mean"),)}),
        ({"hidden_keys": (0, 5)}, {"hidden_keys": (0,)}),
        ({"hidden_keys": (7, 8)}, {"hidden_keys": ()}),
    ],
)
def test_heads_and_keys_that_there_are_not(wrong, nearest):
    with pytest.raises(Wrong, match="and there are") as caught:
        changed(made(), Intervention(**wrong))
    assert caught.value.nearest == (nearest,)
    changed(made(), Intervention(**nearest))


@pytest.mark.parametrize(
    "wrong",
    [
        {"off": {0: "half"}},
        {"off": {-1: "zero"}},
        {"off": 3},
        {"off": (1, 2)},
        {"off": ((1, "zero"), (1, "mean"))},
        {"hidden_keys": "3"},
        {"hidden_keys": 3},
        {"hidden_keys": (-1,)},
        {"temperature": 0},
        {"temperature": -2},
        {"temperature": 1e9},
        {"temperature": float("nan")},
        {"temperature": "hot"},
        {"temperature": True},
    ],
    ids=str,
)
def test_values_that_are_none(wrong):
    with pytest.raises(Wrong) as caught:
        Intervention(**wrong)
    assert caught.value.argument in wrong


def test_equal_interventions_are_equal():
    """Whatever they were spelled as, so that a cache finds them."""
    assert Intervention({2: "zero", 0: "mean"}, [3, 1, 3], 1) == Intervention(((0, "mean"), (2, "zero")), (1, 3), 1.0)
    assert hash(Intervention({2: "zero"})) == hash(Intervention(((2, "zero"),)))


def test_what_was_changed_is_known_and_not_changed_again():
    """A second change would act on what the first one put there."""
    after = changed(made(), Intervention({1: "zero"}, temperature=2.0))
    assert after.off == ((1, "zero"),) and made().off == ()
    with pytest.raises(Wrong, match="head 1 is off already"):
        changed(after, Intervention(temperature=2.0))


def test_a_recording_keeps_what_was_changed(tmp_path):
    after = changed(made(), Intervention({0: "zero", 1: "mean", 2: "uniform"}, (1,), 2.0))
    Recording((after,)).save(tmp_path / "changed.safetensors")
    (kept,) = load(tmp_path / "changed.safetensors").traces
    assert kept.off == after.off
    np.testing.assert_allclose(kept.weights, after.weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kept.output, after.output, rtol=0, atol=1e-12)


def test_a_recording_of_maps_alone_cannot(tmp_path):
    after = changed(trace_of_maps(made().weights), Intervention({0: "mean"}))
    with pytest.raises(Wrong, match="cannot be kept of maps alone"):
        Recording((after,)).save(tmp_path / "changed.safetensors")
    assert not list(tmp_path.iterdir())
