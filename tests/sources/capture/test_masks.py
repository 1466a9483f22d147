"""Masks of tensors come back as the rules that made them, and hide what they hid."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.core.mask import Mask
from mha_viz.sources.capture.masks import Memory, keys_seen, restricted, row_without_key, split, symbolic, together


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.booleans(),
    st.none() | st.integers(1, 6),
    st.none() | st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=2, max_size=2),
)
def test_rules_hide_what_the_matrix_hid_and_take_no_matrix(L, S, causal, window, padded):
    padded = None if padded is None else np.array(padded)[:, :S]
    made = Mask(L, S, causal=causal, window=window, padded=padded)
    hidden = made.hidden()
    found = symbolic(L, S, torch.from_numpy(hidden))
    assert np.array_equal(np.broadcast_to(found.hidden(), hidden.shape), hidden)
    if padded is None or not padded.any():
        assert found.dense is None


def test_a_causal_mask_of_a_batch_takes_no_matrix():
    hidden = torch.ones(4, 2, 6, 6).triu(1).bool()
    found = symbolic(6, 6, hidden)
    assert (found.causal, found.window, found.padded, found.dense) == (True, None, None, None)


@pytest.mark.parametrize("side", ["left", "right"])
def test_causal_and_padded_come_apart(side):
    padded = np.arange(6) < 2 if side == "left" else np.arange(6) >= 4
    padded = np.stack([padded, np.zeros(6, bool)])
    found = symbolic(6, 6, torch.from_numpy(Mask(6, 6, causal=True, padded=padded).hidden()))
    assert found.causal and found.window is None and np.array_equal(found.padded, padded)


def test_a_mask_without_a_rule_stays_a_matrix_kept_once():
    pattern = torch.rand(5, 5, generator=torch.Generator().manual_seed(0)) > 0.5
    found = symbolic(5, 5, pattern.expand(3, 2, 5, 5))
    assert found.dense.shape == (1, 1, 5, 5) and np.array_equal(found.dense[0, 0], pattern)


def test_the_least_number_and_its_double_hide():
    least = torch.finfo(torch.float16).min
    hidden, bias = split(torch.tensor([0.0, 1.5, least, -torch.inf], dtype=torch.float16))
    assert hidden.tolist() == [False, False, True, True] and bias.tolist() == [0, 1.5, 0, 0]
    assert split(torch.tensor([0.0, -1e9]))[0].tolist() == [False, False]  # a number like any other: it may be all that is left


def test_masks_of_one_call_hide_together():
    padded, pattern = np.array([[True, False, False, False]]), np.eye(4, dtype=bool)[None, None]
    masks = [Mask(4, 4, causal=True, window=3), Mask(4, 4, window=2), Mask(4, 4, padded=padded), Mask(4, 4, dense=pattern)]
    whole = together(masks, torch.float32)
    assert np.array_equal(whole.hidden(), masks[0].hidden() | masks[1].hidden() | masks[2].hidden() | masks[3].hidden())
    one, other = Mask(4, 4, bias=np.ones((1, 1, 4, 4))), Mask(4, 4, bias=np.ones((1, 2, 1, 4)))
    assert np.array_equal(together([one, other], torch.float32).added(), np.full((1, 2, 4, 4), 2.0))


@pytest.mark.parametrize("causal", [False, True])
def test_fewer_queries_keep_the_keys_that_they_may_see(causal):
    padded = np.array([[False] * 7, [True] * 2 + [False] * 5, [False] * 7])
    dense = np.random.default_rng(0).random((3, 2, 5, 7)) > 0.8
    mask = Mask(5, 7, extra=1, causal=causal, padded=padded, dense=dense)
    fewer = restricted(mask, [2, 1], 3)
    S = keys_seen(mask, 3)
    assert S - (5 if causal else 7) == 0
    assert np.array_equal(fewer.hidden()[..., :S], mask.hidden()[[2, 1], :, :3, :S])
    assert mask.hidden()[:, :, :3, S:-1].all() and not fewer.hidden()[..., -1].any()


@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 1),
    st.booleans(),
    st.none() | st.integers(1, 4),
    st.none() | st.lists(st.booleans(), min_size=5, max_size=5),
    st.booleans(),
)
def test_a_row_without_a_key_is_told_from_the_rules(L, S, extra, causal, window, padded, pattern):
    padded = None if padded is None else np.array([padded[:S]])
    dense = np.tri(L, S, -1, dtype=bool)[None, None] if pattern else None
    mask = Mask(L, S, extra, causal, window, padded, dense)
    assert row_without_key(mask) == mask.hidden().all(axis=-1).any()


def test_what_was_made_of_a_mask_is_made_again_only_after_a_change():
    memory, mask, made = Memory(), torch.zeros(3), []
    for key in ("a", "a", "b"):
        memory.of(mask, key, lambda key=key: made.append(key))
    mask += 1
    memory.of(mask, "a", lambda: made.append("changed"))
    assert made == ["a", "b", "changed"]
    del mask
    assert len(memory.made) == 0
