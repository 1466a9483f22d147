"""Decoding beside the full pass: how far apart, what the causal hint would do, how much work."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from mha_viz import Batch, Layer, Settings, Trained, Wrong, attend, synthetic, trained
from mha_viz.analysis.decoding import (
    LONGEST,
    TOLERANCE,
    beside,
    decodable,
    difference,
    growth,
    hint_difference,
    lengths,
    why_not_decoded,
    works,
)
from mha_viz.analysis.known import PROJECTED
from mha_viz.core.decode import decode, share_kv
from tests.analysis.kinds import of_kind


def waves(*shape, a=0.37):
    return (torch.arange(math.prod(shape), dtype=torch.float64) * a).sin().reshape(shape)


def known_layer():
    """E 4, H 2 with weights from a formula: errors of the causal hint are known for it."""
    module = nn.MultiheadAttention(4, 2, dtype=torch.float64)
    with torch.no_grad():
        for i, (_, p) in enumerate(module.named_parameters()):
            numbers = torch.arange(p.numel(), dtype=torch.float64) * (0.7 + 0.1 * i) + i
            p.copy_((numbers.cos() * 0.5).reshape(p.shape))
    return Layer.from_state_dict(module.state_dict(), 2)


def pair(dtype="float32", **settings):
    trace = synthetic(Settings(causal=True, **settings), dtype=dtype)
    return decode(trace.layer, trace.batch, dtype=dtype), trace


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_decoding_agrees_in_every_dtype(dtype):
    found = difference(*pair(dtype))
    assert found.agrees and found.tolerance == TOLERANCE[dtype] and len(found.steps) == 20


def test_large_scores_are_rounded_more_and_allowed_it():
    decoding, trace = pair()
    batch = replace(trace.batch, query=4 * trace.batch.query)
    full = attend(trace.layer, batch)
    found = difference(decode(trace.layer, batch), full)
    assert found.agrees
    assert found.tolerance == pytest.approx(np.abs(full.scores).max() * 2**-23)
    assert difference(decoding, trace, item=1).largest == pytest.approx(np.abs(trace.output[1]).max())


def test_another_answer_does_not_agree():
    decoding, trace = pair()
    shared = share_kv(trace.layer, 1)
    found = difference(decode(shared, trace.batch, num_kv_heads=1), trace)
    assert not found.agrees and found.worst > 0.01
    wrong = trace.output.copy()
    wrong[2, 7, 3] += 1e-5
    found = difference(decoding, attend_with(trace, wrong))
    assert not found.agrees and np.argmax(found.steps) == 7
    assert difference(decoding, attend_with(trace, wrong), item=0).agrees


def attend_with(trace, output):
    class Other:
        pass

    other = Other()
    other.output, other.scores = output, trace.scores
    return other


def test_what_is_undefined_in_both_agrees_and_in_one_does_not():
    decoding, trace = pair(padding=(3,), padding_side="left")
    found = difference(decoding, trace, item=0)
    assert np.isnan(found.steps[:3]).all() and np.isfinite(found.steps[3:]).all() and found.agrees
    filled = np.nan_to_num(trace.output)
    found = difference(decoding, attend_with(trace, filled), item=0)
    assert np.isinf(found.steps[:3]).all() and not found.agrees
    gone = trace.output.copy()
    gone[0, 5] = np.nan
    found = difference(decoding, attend_with(trace, gone), item=0)
    assert np.isinf(found.steps[5]) and not found.agrees
    nothing = difference(*pair(padding=(20,)), item=0)
    assert np.isnan(nothing.steps).all() and nothing.worst == 0


def test_the_causal_hint_is_right_for_the_first_token_alone():
    layer, batch = known_layer(), Batch(waves(1, 5, 4), causal=True)
    decoding = decode(layer, batch, dtype="float64")
    largest = np.abs(decoding.output).max()
    np.testing.assert_allclose(hint_difference(decoding) * largest, [0, 0.1507, 0.0474, 0.1238, 0.0520], atol=5e-5)


def test_the_hint_shows_each_query_the_first_key():
    decoding, trace = pair(padding=())
    off, layer = hint_difference(decoding, item=2), trace.layer
    first = trace.v[2, :, 0].reshape(-1) @ layer.weights["out_proj.weight"].T + layer.weights["out_proj.bias"]  # [E]
    largest = np.abs(trace.output[2]).max()
    right = [np.abs(first - trace.output[2, t]).max() / largest for t in range(20)]
    np.testing.assert_allclose(off, right, rtol=0, atol=1e-5)
    assert off[0] < 1e-6 < 0.1 < off[1:].min()


def test_a_prompt_of_several_tokens_is_no_case_for_the_hint():
    trace = synthetic(Settings(causal=True))
    off = hint_difference(decode(trace.layer, trace.batch, prompt=4))
    assert np.isnan(off[0]) and len(off) == 17 and np.isfinite(off[1:]).all()


def test_works_of_each_step():
    """E 128, H 8, D 16: a token's projections are 4 · 128², each column costs it 2 · 128."""
    trace = synthetic(Settings(causal=True, add_zero_attn=True))
    cached, again = works(decode(trace.layer, trace.batch, prompt=3))
    assert cached[0] == again[0] == 3 * 3 * (4 * 128**2 + 4 * 2 * 128)
    assert cached[1] == 3 * (4 * 128**2 + 5 * 2 * 128) and again[1] == 4 * cached[1]
    assert again[-1] == 20 * cached[-1]
    grouped, _ = works(decode(share_kv(trace.layer, 2), trace.batch, num_kv_heads=2))
    assert grouped[0] == 3 * (2 * 128**2 + 2 * 128 * 32 + 2 * 2 * 128)


def test_beside_each_other_in_training():
    trace = synthetic(Settings(causal=True, dropout=0.5))
    found = beside(trace.layer, trace.batch, num_kv_heads=2, training=True, seed=3)
    assert not found.difference.agrees and found.alike.agrees
    assert beside(trace.layer, trace.batch).alike is None
    assert beside(trace.layer, trace.batch, training=True, seed=3).full.dropped.any()
    everything = replace(trace.layer, dropout=1.0)
    assert beside(everything, trace.batch, training=True).alike.agrees


def test_the_step_that_read_a_token():
    trace = synthetic(Settings(causal=True))
    found = beside(trace.layer, trace.batch, prompt=5)
    for token, number in ((0, 0), (4, 0), (5, 1), (19, 15)):
        assert found.step_of(token) == number
        assert found.decoding.steps[number].start <= token < found.decoding.steps[number].stop


def test_lengths_of_vectors():
    trace = synthetic(Settings(causal=True))
    q, k, v = lengths(decode(trace.layer, trace.batch, prompt=4), item=1)
    for ours, vectors in ((q, trace.q), (k, trace.k), (v, trace.v)):
        np.testing.assert_allclose(ours, np.sqrt((vectors[1].astype(float) ** 2).sum(axis=-1)), rtol=1e-5)


def test_growth_is_a_line_through_nothing():
    tokens, grown = growth(16, (8, 2), 1000, dtype="float16", batch_size=3, layers=4)
    assert tokens[0] == 0 and tokens[-1] == 1000
    np.testing.assert_array_equal(grown[8], tokens * 2 * 4 * 3 * 8 * 16 * 2)
    np.testing.assert_array_equal(grown[2] * 4, grown[8])


def test_what_can_be_decoded():
    assert decodable(Settings()) == Settings(causal=True)
    assert decodable(Settings(kdim=128)) == Settings(kdim=128, causal=True)
    for settings, argument in (
        (Settings(source_len=5), "source_len"),
        (Settings(kdim=64), "kdim"),
        (Settings(vdim=64), "vdim"),
        (Settings(words="a b", source_words="c"), "source_words"),
    ):
        with pytest.raises(Wrong) as wrong:
            decodable(settings)
        assert wrong.value.argument == argument and wrong.value.nearest == ({argument: None},)
    with pytest.raises(Wrong) as wrong:
        decodable(Settings(seq_len=513))
    assert wrong.value.nearest == ({"seq_len": 512},)
    with pytest.raises(Wrong) as wrong:
        decodable(Settings(words="a " * 600, padding=()))
    assert wrong.value.nearest == ()


def test_why_a_models_tokens_are_not_decoded():
    def why(name):
        return why_not_decoded(trained(Trained(name)).recording.traces[0])

    assert why("induction") is None
    assert "not causal" in why("look-both-ways-2")
    long = synthetic(Settings(embed_dim=4, num_heads=2, batch_size=1, seq_len=LONGEST + 1, padding=(), causal=True))
    assert f"reads {LONGEST + 1} tokens" in why_not_decoded(long)
    assert "sequence of their own" in why_not_decoded(synthetic(Settings(source_len=4, causal=True)))
    assert why_not_decoded(of_kind("call", long)) == PROJECTED
