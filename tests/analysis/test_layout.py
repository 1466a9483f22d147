"""The wrong layout: shapes, PyTorch's own words, the silent wrong answer, and leaks that a second way of computing confirms."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from mha_viz import Batch, Layer, Settings, attend, synthetic
from mha_viz.analysis.layout import FEW, pytorch_error, wrong_layout

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def demonstration(**chosen):
    trace = synthetic(Settings(**chosen))
    return wrong_layout(trace.layer, trace.batch), trace


def test_shapes_give_it_away_where_items_and_tokens_differ_in_number():
    wrong, _ = demonstration(padding=())
    assert (wrong.given, wrong.error, wrong.masked, wrong.silent) == ((3, 20, 128), None, True, False)
    assert wrong.output == wrong.right_output == (3, 20, 128)
    assert (wrong.weights, wrong.right_weights) == ((20, 3, 3), (3, 20, 20))


def test_pytorchs_error_at_a_mask_is_quoted_and_the_rest_is_without_masks():
    wrong, _ = demonstration()
    assert wrong.error == "AssertionError: Expected key_padded_mask.shape[0] to be 20, but got 3"
    assert not wrong.masked and wrong.weights == (20, 3, 3) and wrong.largest_error > 0
    causal, _ = demonstration(padding=(), causal=True)
    assert causal.error.startswith("RuntimeError: The shape of the 2D attn_mask is torch.Size([20, 20]), but should be (3, 3).")


@pytest.mark.parametrize("masks", [{"padding": ()}, {"padding": (2, 2, 2, 2), "seed": 12}, {"padding": (), "causal": True}])
def test_as_many_tokens_as_items_is_silently_wrong(masks):
    """The core says how wrong: the same batch with its first two axes swapped, and the masks as they are."""
    wrong, trace = demonstration(batch_size=4, seq_len=4, **masks)
    assert wrong.error is None and wrong.silent and wrong.weights == wrong.right_weights
    batch = trace.batch
    swapped = Batch(batch.query.swapaxes(0, 1), key_padding_mask=batch.key_padding_mask, causal=batch.causal)
    output = attend(trace.layer, swapped).output.swapaxes(0, 1)
    real = ~trace.query_padding
    assert wrong.largest_error == pytest.approx(np.abs(output - trace.output)[real].max(), rel=1e-5)
    assert wrong.largest_output == pytest.approx(np.abs(trace.output[real]).max(), rel=1e-5)


def test_every_item_leaks_into_every_other_and_in_the_right_layout_into_none():
    wrong, _ = demonstration(batch_size=4, seq_len=4, padding=())
    assert (wrong.leaks > 0.01).all()
    np.testing.assert_array_equal(wrong.right_leaks > 0, np.eye(4, dtype=bool))


def test_a_causal_mask_lets_items_leak_into_later_items_only():
    """The mask keeps what it takes for time: item j moves the items from j on."""
    wrong, _ = demonstration(batch_size=4, seq_len=4, padding=(), causal=True)
    np.testing.assert_array_equal(wrong.leaks > 0, np.triu(np.ones((4, 4), bool)))


def test_leaks_are_measured_on_a_few_items_and_tokens():
    wrong, _ = demonstration(batch_size=FEW + 2, seq_len=FEW + 2, padding=(1,))
    assert wrong.leaks.shape == wrong.right_leaks.shape == (FEW, FEW)


def test_the_known_example():
    """N 2, L 5: adding 1 to item 1 moves item 0 by as much as a module of PyTorch's own says."""
    layer, query = Layer.random(4, 2), normal(2, 5, 4)
    module = nn.MultiheadAttention(4, 2)
    module.load_state_dict({name: torch.tensor(array) for name, array in layer.weights.items()})
    x = torch.tensor(query)
    moved = x.clone()
    moved[1] += 1
    before, after = (module(t, t, t)[0].detach().numpy() for t in (x, moved))
    wrong = wrong_layout(layer, Batch(query))
    assert wrong.leaks[1, 0] == pytest.approx(np.abs(after - before)[0].max(), rel=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"bias": False},
        {"add_bias_kv": True, "add_zero_attn": True},
        {"kdim": 8, "vdim": 10, "source_len": 4},
        {"training": True},
    ],
)
def test_every_kind_of_layer_can_be_asked(options):
    wrong, trace = demonstration(batch_size=4, seq_len=4, padding=(), **options)
    evaluated = attend(trace.layer, trace.batch)
    assert wrong.largest_output == pytest.approx(np.abs(evaluated.output).max(), rel=1e-5)
    assert wrong.right_weights == evaluated.mean_weights.shape and wrong.silent
    assert (wrong.leaks > 0).all() and not (wrong.right_leaks > 0)[~np.eye(4, dtype=bool)].any()


def test_weights_kept_apart_are_packed_as_pytorch_would():
    packed = Layer.random(4, 2)
    state = dict(packed.weights)
    parts = np.split(state.pop("in_proj_weight"), 3)
    apart = Layer.from_state_dict(state | {f"{n}_proj_weight": w for n, w in zip("qkv", parts, strict=True)}, 2)
    batch = Batch(normal(2, 3, 4))
    assert wrong_layout(apart, batch).largest_error == wrong_layout(packed, batch).largest_error


def test_cross_attention_of_another_length_fails_by_itself():
    wrong, _ = demonstration(source_len=5, padding=())
    assert wrong.error.startswith("RuntimeError: ") and not wrong.masked
    assert wrong.output is wrong.weights is wrong.largest_error is wrong.leaks is None
    assert wrong.right_weights == (3, 20, 5)


@pytest.mark.parametrize("heads", [None, 2])
def test_a_mask_beside_a_rule_counts_in_both_layouts(heads):
    """More items than leaks are measured in: masks of each head are cut to the items that are left."""
    n, layer = FEW + 2, Layer.random(4, 2)
    mask = RNG.random((n, n) if heads is None else (n * heads, n, n)) < 0.3
    batch = Batch(normal(n, n, 4), attn_mask=mask & ~np.eye(n, dtype=bool), causal=True)
    wrong = wrong_layout(layer, batch)
    right = attend(layer, batch).output
    assert wrong.largest_output == pytest.approx(np.abs(right).max(), rel=1e-5)
    swapped = Batch(batch.query.swapaxes(0, 1), attn_mask=batch.attn_mask, causal=True)
    error = np.abs(attend(layer, swapped).output.swapaxes(0, 1) - right).max()
    assert wrong.largest_error == pytest.approx(error, rel=1e-5)
    assert not np.tril(wrong.leaks, -1).any()


def test_masks_of_two_kinds_raise_no_warning():
    batch = Batch(normal(3, 3, 4), key_padding_mask=np.eye(3, dtype=bool), attn_mask=np.full((6, 3, 3), 0.5), causal=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrong = wrong_layout(Layer.random(4, 2), batch)
    assert wrong.silent
    right = attend(Layer.random(4, 2), batch)
    assert wrong.largest_output == pytest.approx(np.nanmax(np.abs(right.output[~right.query_padding])), rel=1e-5)


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    demonstration()
    pytorch_error(128, 8)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("embed_dim", "num_heads", "words"),
    [
        (128, 8, None),
        (10**5, 8, None),  # 120 GB, were it allocated
        (130, 8, "AssertionError: embed_dim must be divisible by num_heads"),
        (0, 1, "ValueError: embed_dim and num_heads must be greater than 0, got embed_dim=0 and num_heads=1 instead"),
        (4, -2, "ValueError: embed_dim and num_heads must be greater than 0, got embed_dim=4 and num_heads=-2 instead"),
        (
            4.0,
            2,
            "TypeError: empty(): argument 'size' (position 1) must be tuple of ints, but found element of type float at pos 0",
        ),
        (
            4,
            2.0,
            "TypeError: view(): argument 'size' failed to unpack the object at pos 2 with error "
            '"type must be tuple of ints,but got float"',
        ),
    ],
)
def test_pytorchs_own_words(embed_dim, num_heads, words):
    assert pytorch_error(embed_dim, num_heads) == words


def test_pytorchs_words_hold_no_trace_of_its_own_calls():
    assert "frame #" not in pytorch_error(10**30, 2)
