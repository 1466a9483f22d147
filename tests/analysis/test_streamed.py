"""Statistics that are added up while rows go by are those of the whole maps."""

import numpy as np
import pytest
from hypothesis import given, settings

from mha_viz.analysis.statistics import statistic
from mha_viz.analysis.streamed import STREAMED, Apart, Streamed
from mha_viz.core import long
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.mask import Mask
from mha_viz.core.tokens import Tokens
from tests.core.test_long import calls


def agree(trace, item=0):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mha_viz.core.rows.ROWS", 7)
        streamed = Streamed(trace, item)
        for _ in long.pooled(trace, item=item, read=streamed.read):
            pass
    assert list(streamed.values) == [*STREAMED, "contribution"]
    for name, values in streamed.values.items():
        np.testing.assert_allclose(values, statistic(trace, item, name), atol=1e-5, err_msg=name)
    return True


@settings(derandomize=True, deadline=None, max_examples=40)
@given(calls())
def test_as_of_whole_maps_whatever_the_mask(call):
    assert agree(trace_of_call(call), item=1)


def test_as_of_whole_maps_where_tokens_repeat_and_are_padded():
    L, rng = 40, np.random.default_rng(0)
    padding = np.arange(L)[None] < 6
    tokens = Tokens.of(1, L, L, [[str(i % 9) for i in range(L)]], query_padding=padding)
    q, k = (rng.normal(size=(1, 2, L, 4)).astype(np.float32) * 2 for _ in range(2))
    assert agree(trace_of_call(Call(q, k, mask=Mask(L, L, causal=True, padded=padding), tokens=tokens)))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(calls())
def test_the_difference_from_the_average_is_that_of_the_whole(call):
    trace = trace_of_call(call)
    apart = Apart(trace, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mha_viz.core.rows.ROWS", 7)
        list(long.averaging(trace, item=1, read=apart.read))
    np.testing.assert_allclose(apart.values, statistic(trace, 1, "difference"), atol=2e-5)


def test_rows_of_which_none_sees_a_key_say_nothing():
    """Twenty queries after five keys, causal: the first fifteen come before them all."""
    q, k = (np.random.default_rng(0).normal(size=(1, 2, length, 4)).astype(np.float32) for length in (20, 5))
    assert agree(trace_of_call(Call(q, k, mask=Mask(20, 5, causal=True))))
