"""Tokens say what rows and columns stand for."""

import numpy as np
import pytest

from mha_viz.core.rules import Wrong
from mha_viz.core.tokens import Tokens, texts

WORDS = (("the", "cat", "sat"), ("a", "b", "c"))


def test_numbers_where_no_texts_are_given():
    tokens = Tokens.of(2, 3, 3)
    assert tokens.queries == tokens.keys == (("0", "1", "2"),) * 2
    assert tokens.positions.tolist() == [0, 1, 2] and not tokens.query_padding.any()


@pytest.mark.parametrize("given", [{"keys": WORDS}, {"queries": WORDS}, {"queries": WORDS, "keys": WORDS}])
def test_one_sequence_names_both_sides(given):
    tokens = Tokens.of(2, 3, 3, **given)
    assert tokens.queries == tokens.keys == WORDS


def test_fewer_queries_stand_at_the_last_keys():
    tokens = Tokens.of(2, 2, 3, keys=WORDS)
    assert tokens.queries == (("cat", "sat"), ("b", "c")) and tokens.positions.tolist() == [1, 2]


def test_two_sequences_name_their_own_side():
    tokens = Tokens.of(2, 3, 3, queries=WORDS, one_sequence=False)
    assert tokens.queries == WORDS and tokens.keys == (("0", "1", "2"),) * 2 and tokens.positions is None


def test_padding_of_queries_is_kept_as_a_copy():
    padding = np.zeros((2, 3), bool)
    tokens = Tokens.of(2, 3, 3, query_padding=padding)
    padding[:] = True
    assert not tokens.query_padding.any()
    with pytest.raises(ValueError):
        tokens.query_padding[0, 0] = True


@pytest.mark.parametrize("padding", [np.zeros((3, 2), bool), np.zeros((2, 3)), np.zeros(3, bool)])
def test_padding_that_does_not_fit_is_refused(padding):
    with pytest.raises(Wrong, match=r"bool \[N, L\] = \(2, 3\)"):
        Tokens.of(2, 3, 3, query_padding=padding)


@pytest.mark.parametrize("given", ["the cat", ["the cat", "a b c"], [["the", "cat"], ["a", "b", "c"]], [["the", "cat", "sat"]]])
def test_texts_that_do_not_fit_are_refused(given):
    with pytest.raises(Wrong, match="key_tokens"):
        texts("key_tokens", given, 2, 3)


def test_texts_may_be_of_any_kind_that_has_one():
    assert texts("key_tokens", np.arange(4).reshape(2, 2), 2, 2) == (("0", "1"), ("2", "3"))
