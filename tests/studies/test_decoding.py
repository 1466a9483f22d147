"""Timing of decoding: both ways give one output; no test here asks how fast."""

import numpy as np
import pytest
import torch

from mha_viz import Layer
from mha_viz.core.decode import Decoder, share_kv
from mha_viz.core.mask import Mask
from mha_viz.studies.decoding import time_decoding, with_cache, without_cache


@pytest.mark.parametrize("groups", [4, 2])
@pytest.mark.parametrize("extra", [False, True])
def test_what_is_timed_is_one_output_made_in_two_ways(groups, extra):
    layer = share_kv(Layer.random(16, 4, seed=2, add_bias_kv=extra, add_zero_attn=extra), groups)
    mask = Mask(9, 9, len(layer.extra_keys), causal=True)
    decoder = Decoder(layer, mask, 1, num_kv_heads=groups)
    x = torch.randn(1, 9, 16, generator=torch.Generator().manual_seed(0))
    added = decoder.added(0, 9)
    one, other = with_cache(decoder, x, added), without_cache(decoder, x, added)
    decoder.forget()
    at_once = decoder.run(x, added)[-1]
    np.testing.assert_allclose(one, at_once, rtol=0, atol=1e-6)
    np.testing.assert_allclose(other, at_once, rtol=0, atol=1e-6)


def test_lengths_are_timed_in_order_until_the_time_is_up():
    layer = Layer.random(16, 4)
    assert [found.length for found in time_decoding(layer, lengths=(2, 4, 8), seconds=60)] == [2, 4, 8]
    assert all(found.cached > 0 and found.again > 0 for found in time_decoding(layer, lengths=(2, 4)))
    assert [found.length for found in time_decoding(layer, lengths=(2, 4, 8), seconds=0)] == [2], "the first is always timed"
