"""Settings and View: checked on the way in, and spelled in an address and in JSON without loss."""

from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mha_viz.core.rules import Wrong
from mha_viz.settings import Display, Settings, View, from_address, from_json, read_mask, to_address, to_json
from mha_viz.settings.rules import (
    Ruled,
    anything,
    choice,
    choices_of,
    holds_texts,
    is_optional,
    optional,
    probability,
    ruled,
    type_of,
)
from mha_viz.settings.spelling import display_from_address

WORDS = "the cat sat\nhello"


@pytest.mark.parametrize(
    ("values", "argument", "fragment", "nearest"),
    [
        ({"embed_dim": 130}, "num_heads", "130 = 8 × 16 + 2", {"num_heads": 10}),
        ({"num_heads": 7}, "num_heads", "128 = 7 × 18 + 2", {"embed_dim": 126}),
        ({"num_heads": 200}, "num_heads", "128 = 200 × 0 + 128", {"num_heads": 128}),
        ({"embed_dim": 0}, "embed_dim", "whole number from 1", {"embed_dim": 8}),
        ({"embed_dim": 128.0}, "embed_dim", "whole number", {"embed_dim": 128}),
        ({"embed_dim": None}, "embed_dim", "whole number", {"embed_dim": 8}),
        ({"num_heads": True}, "num_heads", "whole number", {"num_heads": 1}),
        ({"num_heads": -2}, "num_heads", "whole number from 1", {"num_heads": 1}),
        ({"batch_size": 0}, "batch_size", "whole number from 1", {"batch_size": 1}),
        ({"seq_len": 0, "padding": ()}, "seq_len", "whole number from 1", {"seq_len": 1}),
        ({"seq_len": 10**9}, "seq_len", "from 1 to 100000", {"seq_len": 100000}),
        ({"seq_len": 2}, "padding", "3 tokens of item 0, which has 2", {"padding": (1,)}),
        ({"padding": (0, 21)}, "padding", "21 tokens of item 1, which has 20", {"seq_len": 22}),
        ({"padding": (0, -1)}, "padding", "0 or more", {"padding": (0, 0)}),
        ({"padding": (1, "x")}, "padding", "'x' is not", {"padding": (1, 0)}),
        ({"padding": 3}, "padding", "one per batch item", {"padding": ()}),
        ({"padding": (1, 1, 1, 1)}, "padding", "names 4 batch items, and there are 3", {"batch_size": 4}),
        ({"padding_side": "top"}, "padding_side", "right, left", {"padding_side": "left"}),
        ({"causal": "yes"}, "causal", "true or false", {"causal": True}),
        ({"window": 0}, "window", "whole number from 1", {"window": 1}),
        ({"dropout": 1.5}, "dropout", "from 0 to 1", {"dropout": 1.0}),
        ({"dropout": float("nan")}, "dropout", "from 0 to 1", {"dropout": 0.0}),
        ({"seed": -1}, "seed", "whole number from 0", {"seed": 0}),
        ({"kdim": 0}, "kdim", "whole number from 1", {"kdim": 1}),
        ({"words": " \n "}, "words", "at least one word", {"words": None}),
        ({"source_padding": (1,)}, "source_padding", "there is none", {"source_padding": ()}),
        (
            {"words": WORDS, "padding": (), "source_words": "a"},
            "source_words",
            "one line per batch item: 2",
            {"source_words": "a\na"},
        ),
        ({"attn_mask": "010"}, "attn_mask", "1 lines of 3 entries; L × S is 20 × 20", {"attn_mask": None}),
        ({"attn_mask": "01/0"}, "attn_mask", "line 0 has 2, line 1 has 1", {"attn_mask": None}),
        ({"attn_mask": "a b"}, "attn_mask", "could not convert string to float", {"attn_mask": None}),
        ({"attn_mask": "nan 0.5"}, "attn_mask", "NaN and +inf make whole rows NaN", {"attn_mask": None}),
        ({"attn_mask": ""}, "attn_mask", "a line per query", {"attn_mask": None}),
        ({"case": "small"}, "case", "random, tiny", {"case": "random"}),
        ({"case": "tiny"}, "embed_dim", "worked by hand for embed_dim = 4", {"case": "random"}),
        ({"source_len": 5, "source_padding": (6,)}, "source_padding", "6 tokens of item 0, which has 5", {"source_len": 7}),
    ],
)
def test_a_wrong_value_is_named_with_its_rule_and_the_nearest_right_one(values, argument, fragment, nearest):
    with pytest.raises(Wrong) as caught:
        Settings(**values)
    assert caught.value.argument == argument
    assert fragment in str(caught.value)
    if nearest is None:
        assert caught.value.nearest == ()
    else:
        assert nearest in caught.value.nearest
        Settings(**values | nearest)  # what is offered is right


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        ({"item": -1}, "item"),
        ({"order": "size"}, "order"),
        ({"weighting": "values"}, "weighting"),
        ({"head": 1.5}, "head"),
        ({"cell": (1,)}, "cell"),
        ({"cell": (None, None)}, "cell"),
        ({"heads": ()}, "heads"),
        ({"layer": -1}, "layer"),
        ({"layer": None}, "layer"),
        ({"what_if": "2=zero"}, "what_if"),
        ({"what_if": None}, "what_if"),
    ],
)
def test_a_wrong_view_is_named(values, argument):
    with pytest.raises(Wrong) as caught:
        View(**values)
    assert caught.value.argument == argument


def test_equal_changes_of_a_layer_are_one_view():
    assert View(what_if=" 1:3=zero   1:0=mean ") == View(what_if="1:0=mean 1:3=zero")
    assert View(what_if="0:temperature=1") == View(), "which changes nothing"
    assert to_address(**asdict(View(layer=2, what_if="2:0=mean"))) == {"layer": "2", "what_if": "2:0=mean"}


def test_trailing_zeros_of_padding_say_nothing():
    assert Settings(padding=(3, 0, 0)) == Settings() == Settings(padding=[3])


def test_words_set_the_sizes():
    settings = Settings(words=WORDS, padding=(2, 1))
    assert (settings.N, settings.L, settings.S) == (2, 5, 5)  # three words and two pads


def test_a_typed_mask_has_one_spelling():
    typed = Settings(seq_len=3, padding=(), attn_mask="0 1 1\n0,0,1\n 000 ")
    assert typed.attn_mask == "011/001/000"
    np.testing.assert_array_equal(read_mask(typed.attn_mask), np.triu(np.ones((3, 3), bool), 1))
    added = Settings(seq_len=2, padding=(), attn_mask="0.5 -inf; 1. −2")
    assert added.attn_mask == "0.5,-inf/1.0,-2"
    np.testing.assert_array_equal(read_mask(added.attn_mask), np.float32([[0.5, -np.inf], [1, -2]]))


def test_ones_with_a_point_are_added_and_ones_without_hide():
    assert read_mask("0 1").dtype == bool
    assert read_mask("0. 1.").dtype == np.float32


def test_a_source_of_its_own_sets_the_keys():
    assert Settings(source_len=6).S == 6
    assert not Settings().cross
    assert Settings(kdim=5).cross, "a key of another width cannot be the query"
    assert not Settings(kdim=128, vdim=128).cross
    assert Settings(words=WORDS, padding=(), source_words="a b c d\ne", source_padding=(0, 1)).S == 4


plausible = st.builds(
    Settings,
    embed_dim=st.sampled_from([8, 24, 120]),
    num_heads=st.sampled_from([1, 2, 4, 8]),
    batch_size=st.integers(2, 4),
    seq_len=st.integers(4, 30),
    padding=st.lists(st.integers(0, 4), max_size=2).map(tuple),
    causal=st.booleans(),
    padding_side=st.sampled_from(["left", "right"]),
    window=st.none() | st.integers(1, 9),
    batch_first=st.booleans(),
    training=st.booleans(),
    dropout=st.floats(0, 1),
    seed=st.integers(0, 2**53 - 1),
    kdim=st.none() | st.integers(1, 9),
    source_len=st.none() | st.integers(1, 9),
    words=st.none() | st.just("a b\nc d € <s>"),
    positions=st.booleans(),
)
views = st.builds(
    View,
    layer=st.integers(0, 40),
    what_if=st.sampled_from(["", "1:2=zero 1:keys=3,4", "0:temperature=0.5"]),
    item=st.integers(0, 9),
    heads=st.none() | st.just((2, 0)),
    order=st.sampled_from(["difference", "index"]),
    weighting=st.sampled_from(["weights", "norms"]),
    limits=st.none() | st.just((0.125, 0.5)),
    scale=st.sampled_from(["linear", "log"]),
    pinned=st.none() | st.just("seed=8&causal=1"),
    head=st.none() | st.integers(0, 9),
    cell=st.none() | st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9)) | st.just((None, 9)),
)


@given(plausible, views)
@hypothesis_settings(derandomize=True, max_examples=60, deadline=None)
def test_an_address_says_settings_and_view_without_loss(settings, view):
    found, seen, notes = from_address(to_address(**asdict(settings), **asdict(view)), Settings, View)
    assert (Settings(**found), View(**seen), notes) == (settings, view, [])


OTHERS = {
    "head": 3,
    "step": "softmax",
    "language": "numpy",
    "together": True,
    "token": 2,
    "prompt": 2,
    "kv_heads": 2,
    "cache_dtype": "float64",
    "cache_layers": 2,
    "cache_length": 64,
    "pitfall": "wrong-scale",
    "symptom": "NaN",
    "opened": True,
    "divisors": True,
    "verbatim": True,
}


def test_an_address_says_a_display_without_loss():
    display = Display().changed(**OTHERS)
    assert {name: display.values[name] for name in OTHERS} == OTHERS and display.view == View(head=3)
    address = to_address(**display.values)
    assert address.keys() == OTHERS.keys() and display_from_address(address) == (display, [])


@pytest.mark.parametrize("limits", [(0.0, 0.12345678), (1 / 3, 2 / 3), (1e-9, 0.5)])
def test_limits_of_many_digits_are_the_same_in_an_address(limits):
    spelled = to_address(**vars(View(limits=limits)))
    assert from_address(spelled, View)[0] == {"limits": limits}


def test_two_fields_of_one_name_are_no_address():
    with pytest.raises(TypeError, match="View and View have a field layer each"):
        from_address({}, View, View)


def test_a_display_points_into_the_weights_or_says_what_does_not():
    assert Display().changed(token=4, head=1).misfits(1, 2, 5, 5) == []
    head, token = Display().changed(token=5, head=2).misfits(1, 2, 5, 5)
    assert (head.nearest, token.nearest) == (({"head": 1},), ({"token": 4},))


def test_thousands_of_heads_that_there_are_not_are_told_once():
    (wrong,) = Display().changed(heads=range(5000)).misfits(1, 8, 5, 5)
    assert wrong.rule == "points to 8 and 4991 more, and there are 8, from 0 to 7."


@given(plausible)
@hypothesis_settings(derandomize=True, max_examples=60, deadline=None)
def test_json_says_settings_without_loss(settings):
    assert from_json(to_json(settings)) == settings


def test_the_address_is_empty_at_the_defaults_and_names_only_what_differs():
    assert to_address(**asdict(Settings()), **asdict(View())) == {}
    assert to_address(**asdict(replace(Settings(), padding=(3, 1), causal=True))) == {"padding": "3,1", "causal": "1"}


def test_a_bad_value_in_the_address_falls_back_alone():
    query = {"embed_dim": "64", "seed": "x", "causal": "maybe", "item": "-2", "head": "3", "hedas": "1"}
    settings, view, notes = from_address(query, Settings, View)
    assert (settings, view) == ({"embed_dim": 64}, {"head": 3})
    assert [note.argument for note in notes] == ["seed", "causal", "item", "hedas"]
    assert "heads" in str(notes[-1]), "the name that was likely meant is said"


@pytest.mark.parametrize("text", ["{", "[1]", '{"embed_dims": 3}', '{"seed": "x"}'])
def test_json_that_is_no_settings_is_refused(text):
    with pytest.raises(Wrong):
        from_json(text)


def test_of_a_long_address_the_longest_texts_are_left_out():
    words, mask = "w " * 20_000, "0" * 30_000
    settings, view, notes = from_address({"seed": "8", "words": words, "attn_mask": mask, "head": "2"}, Settings, View)
    assert (settings, view) == ({"seed": 8, "attn_mask": "0" * 30_000}, {"head": 2})
    assert [note.argument for note in notes] == ["words"] and "too long" in notes[0].rule
    settings, notes = from_address({"seed": "8", "x" * 70_000: "1"}, Settings)
    assert settings == {"seed": 8} and len(notes) == 1 and len(str(notes[0])) < 300


def test_many_unknown_names_are_counted(monkeypatch):
    """To find what was meant by a name takes a millisecond."""
    looked_up = []
    monkeypatch.setattr(
        "mha_viz.settings.spelling.unknown", lambda name, *_: looked_up.append(name) or Wrong(name, "", "is no setting.")
    )
    _, notes = from_address({f"x{i}": "1" for i in range(3000)}, Settings)
    assert len(looked_up) == 8 and "2992 more names are no settings" in notes[-1].rule
    assert "is no setting." in str(from_address({"y" * 20_000: "1"}, Settings)[1][0])


def test_a_mask_too_large_to_type_is_not_written_to_be_offered():
    """Of 10¹⁰ entries an address would end the server."""
    with pytest.raises(Wrong) as caught:
        Settings(attn_mask="0", seq_len=100_000, padding=())
    assert caught.value.nearest == ({"attn_mask": None},)


@pytest.mark.parametrize(("embed_dim", "num_heads", "right"), [(12.8, 8, 16), (0, 8, 8), (100_001, 7, 99_995), (-5, 3, 3)])
def test_an_embed_dim_is_offered_that_the_heads_divide(embed_dim, num_heads, right):
    with pytest.raises(Wrong) as caught:
        Settings(embed_dim=embed_dim, num_heads=num_heads)
    assert caught.value.nearest == ({"embed_dim": right},)
    assert Settings(embed_dim=right, num_heads=num_heads).embed_dim == right


@pytest.mark.parametrize("name", ["order", "cache_dtype", "language", "padding_side"])
def test_what_an_address_says_of_a_choice_stays_text(name):
    """Whatever its choices are called: that of “float32” is no number."""
    *_, notes = display_from_address({name: "16"}, Settings)
    (wrong,) = notes
    assert (wrong.argument, wrong.value) == (name, "16")


def test_a_field_says_what_it_holds_also_where_annotations_are_texts():
    @dataclass(frozen=True)
    class Late(Ruled):
        few: "Literal['a', 'b'] | None" = ruled(None, optional(choice("a", "b")))
        part: "float" = ruled(0.5, probability)
        names: "tuple[str, ...]" = ruled((), anything)
        counted: "tuple[int, ...] | None" = ruled(None, anything)

    assert [type_of(Late, name) for name in ("few", "part", "names", "counted")] == [str, float, tuple, tuple]
    assert [is_optional(Late, name) for name in ("few", "part", "names", "counted")] == [True, False, False, True]
    assert [holds_texts(Late, name) for name in ("few", "part", "names", "counted")] == [False, False, True, False]
    assert choices_of(Late, "few") == ("a", "b") and choices_of(Late, "part") is None
