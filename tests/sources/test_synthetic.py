"""The synthetic source: the tutorial's numbers at the defaults, and words whose embeddings depend on nothing else."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from mha_viz.core.rules import Wrong
from mha_viz.settings import Settings
from mha_viz.settings.settings import TINY
from mha_viz.sources.synthetic import PAD, positional_encoding, synthetic, word_vector

HAND = Path(__file__).parents[1] / "data" / "tiny_by_hand.json"


def tutorial(training):
    """The tutorial's program, as it stands there, in train mode or with ``.eval()`` (the slow path, since gradients are on)."""
    torch.manual_seed(7)
    attention = nn.MultiheadAttention(embed_dim=128, num_heads=8, dropout=0.1, batch_first=True).train(training)
    tokens = torch.randn(3, 20, 128)
    padding_mask = torch.zeros(3, 20, dtype=torch.bool)
    padding_mask[0, -3:] = True
    output, weights = attention(tokens, tokens, tokens, key_padding_mask=padding_mask, need_weights=True)
    return output.detach().numpy(), weights.detach().numpy()


@pytest.mark.parametrize("training", [False, True])
def test_the_defaults_are_the_tutorials_program_bit_for_bit(training):
    output, weights = tutorial(training)
    trace = synthetic(Settings(training=training))
    np.testing.assert_array_equal(trace.output, output)
    np.testing.assert_array_equal(trace.mean_weights, weights)


def test_sessions_at_once_get_the_same_numbers():
    """The global generator would race: each call draws from one of its own."""
    settings = [Settings(seed=seed, training=True) for seed in (1, 2)] * 60
    torch.manual_seed(0)
    alone = [synthetic(s).weights for s in settings[:2]]
    with ThreadPoolExecutor(8) as pool:
        for i, weights in enumerate(pool.map(lambda s: synthetic(s).weights, settings)):
            np.testing.assert_array_equal(weights, alone[i % 2])


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    synthetic(Settings(training=True, bias=False))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    "options", [{"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"batch_first": False}, {"causal": True}]
)
def test_options_do_not_change_the_tokens(options):
    np.testing.assert_array_equal(synthetic(Settings(**options)).batch.query, synthetic().batch.query)


def test_equal_words_get_equal_embeddings_and_positions_part_them():
    settings = Settings(words="the cat and the dog\nthe end", padding=())
    batch = synthetic(settings).batch
    np.testing.assert_array_equal(batch.query[0, 0], batch.query[0, 3])
    np.testing.assert_array_equal(batch.query[0, 0], batch.query[1, 0])
    assert not np.array_equal(batch.query[0, 0], batch.query[0, 1])
    assert not np.array_equal(*synthetic(replace(settings, positions=True)).batch.query[0, [0, 3]])
    np.testing.assert_array_equal(synthetic(replace(settings, seed=8)).batch.query, batch.query)


def test_a_words_vector_is_the_same_in_every_process():
    np.testing.assert_array_equal(word_vector("cat", 2), np.float32([0.7474960088729858, 0.3805377185344696]))
    np.testing.assert_array_equal(word_vector("cat", 8)[:2], word_vector("cat", 2))


@pytest.mark.parametrize(("side", "labels"), [("right", ("c", PAD, PAD)), ("left", (PAD, PAD, "c"))])
def test_shorter_texts_are_padded_on_the_chosen_side(side, labels):
    trace = synthetic(Settings(words="a b\nc", padding=(1,), padding_side=side))
    assert trace.query_tokens[1] == labels
    np.testing.assert_array_equal(trace.query_padding[1], [label == PAD for label in labels])
    np.testing.assert_array_equal(trace.mask[1, 0, 0], trace.query_padding[1])


def test_the_positional_encoding_is_vaswanis():
    encoding = positional_encoding(50, 6)
    assert encoding[49, 2] == pytest.approx(np.sin(49 / 10000 ** (2 / 6)), abs=1e-6)
    assert encoding[49, 3] == pytest.approx(np.cos(49 / 10000 ** (2 / 6)), abs=1e-6)
    assert positional_encoding(4, 5).shape == (4, 5), "an odd width ends in a sine"


def test_a_source_of_other_widths():
    trace = synthetic(Settings(kdim=5, vdim=7, source_len=6, source_padding=(0, 2), add_bias_kv=True, add_zero_attn=True))
    assert trace.weights.shape == (3, 8, 20, 8)
    assert trace.key_tokens[1] == ("0", "1", "2", "3", "4", "5", "bias_k", "zero")
    assert trace.query_padding[0].sum() == 3, "padding pads the queries"
    assert trace.mask[1, 0, 0].tolist() == [False] * 4 + [True] * 2 + [False] * 2
    assert not trace.mask[0].any(), "and in cross-attention no keys"


@pytest.mark.parametrize(
    ("settings", "argument"), [(Settings(seq_len=100_000), "seq_len"), (Settings(embed_dim=98_304), "embed_dim")]
)
def test_what_does_not_fit_into_memory_is_refused_with_what_would(settings, argument):
    with pytest.raises(Wrong) as caught:
        synthetic(settings)
    assert caught.value.argument == argument
    assert "iB" in str(caught.value)
    assert caught.value.nearest


@pytest.mark.parametrize(
    ("name", "masks"),
    [
        ("nomask", {}),
        ("causal", {"causal": True}),
        ("causal", {"attn_mask": "011/001/000"}),
        ("kpm_last", {"padding": (1,)}),
        ("causal_kpm_last", {"causal": True, "padding": (1,)}),
    ],
)
def test_the_tiny_case_gives_the_numbers_worked_by_hand(name, masks):
    case = json.loads(HAND.read_text())["cases"][name]
    trace = synthetic(Settings(case="tiny", **TINY | masks), dtype="float64")
    np.testing.assert_allclose(trace.q, heads_apart(case["Q"]), atol=1e-12)
    np.testing.assert_allclose(trace.weights, case["A"], atol=1e-12)
    np.testing.assert_allclose(trace.output, case["out"], atol=1e-12)


def heads_apart(array):
    return np.array(array).reshape(1, 3, 2, 2).swapaxes(1, 2)  # [N, L, H·D] → [N, H, L, D]


def test_maps_too_long_to_be_whole_are_there_to_be_pooled(monkeypatch):
    """The layer is known all the same, and what fits into memory can still be read whole."""
    from mha_viz.core.long import pooled
    from mha_viz.core.memory import too_long

    settings = Settings(seq_len=60, batch_size=1, padding=(), causal=True)
    whole = synthetic(settings)
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**10)
    trace = synthetic(settings)
    assert too_long(trace) and not too_long(whole) and trace.layer is not None
    assert trace.shape == whole.shape == (1, 8, 60, 60)
    np.testing.assert_allclose(next(pooled(trace, shape=(60, 60))).largest, whole.weights[0, 0], atol=1e-6)
    assert np.array_equal(trace.weights, whole.weights)
    with pytest.raises(Wrong, match="draws dropout for every weight") as wrong:
        synthetic(replace(settings, training=True))
    assert wrong.value.nearest == ({"training": False}, {"dropout": 0.0})
    assert too_long(synthetic(replace(settings, training=True, dropout=0.0)))
