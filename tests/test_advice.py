"""What an error advises is right: applied, it breaks no rule in its turn, whatever else was wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from mha_viz import Settings, View
from mha_viz.core.rules import Wrong
from mha_viz.export.figure import Figure
from mha_viz.settings import parsed
from mha_viz.settings.profile import Profile
from mha_viz.sources.pretrained import Pretrained
from mha_viz.sources.synthetic import POOLED, check_size
from mha_viz.sources.trained import Trained
from mha_viz.studies.quality import Trial

KINDS = (Settings, View, Profile, Trained, Pretrained, Trial)
TYPED_WORDS = tuple(
    [
        "a",
        "-1",
        "1.5",
        "1e3",
        "12.8",
        "nan",
        "inf",
        "1e400",
        "100001",
        "--3",
        "1_000",
        "0x10",
        "0",
        "1",
        "2",
        "7",
        "20",
        "30",
        "130",
        "True",
        "tiny",
    ]
)
TYPED_LISTS = tuple(
    [
        "a,b",
        "0,b",
        "3,a,-1",
        "0,0",
        "5,2",
        "2,5",
        "1,2,3",
        ",5",
        "5,",
        ",",
        "-1,3",
        "0.5,0.1",
        "nan,1",
        "16384,3",
        "1,5",
        "19,20",
        "0.5,x",
        "[1]",
    ]
)
TYPED_RULES = ("1:2=zero 9", "0:0=foo", "0:keys=1,x", "1000:0=zero", "0:0=zero 0:0=mean", "01/0", "0\n1")
TYPED_TEXTS = ("", " ", "1 000", "9" * 5000, "the cat sat on it", "a\n\nb")
TYPED = (*TYPED_WORDS, *TYPED_LISTS, *TYPED_RULES, *TYPED_TEXTS)
GIVEN_NUMBERS = (-5, -1, -0.5, 0, 0.5, 1, 2, 3, 7, 12.8, 130, 4096, 100_000, 100_001, 1e3, 10**30, 2**53)
GIVEN_PAIRS = ((), (1,), ("a", "b"), (0, -1), (3, 1.5), (None, None), (5, 2), (0.5, 0.1), [], {})
GIVEN = (*GIVEN_NUMBERS, *GIVEN_PAIRS, float("nan"), float("inf"), None, True, False, "x", "", b"x", object, np.int64(5))


def advice_is_right(kind, values):
    """Whether ``kind`` of these values is made, or refused with advice that makes one."""
    try:
        kind(**values)
    except Wrong as wrong:
        assert wrong.argument in kind.__dataclass_fields__
        for change in wrong.nearest:
            advised = kind(**values | change)
            assert kind is not Settings or keeps_a_key(advised, values)
    return True


def keeps_a_key(settings, given):
    """Whether every item has a key that is no padding, or is as padded as it was ``given``."""
    sides = [("padding", "seq_len", settings.words, settings.L)]
    sides += [("source_padding", "source_len", settings.source_words, settings.S)] * settings.cross
    given = vars(Settings()) | given
    for padding, length, words, count in sides:
        same = given[length] == getattr(settings, length) and isinstance(given[padding], tuple)
        for item, padded in enumerate(getattr(settings, padding)):
            asked = same and given[padding][item : item + 1] == (padded,)
            if words is None and padded >= count and not asked:
                return False
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_advised_for_one_field_is_right(kind):
    for name in kind.__dataclass_fields__:
        assert all(advice_is_right(kind, {name: value}) for value in GIVEN)
        assert all(advice_is_right(kind, {name: parsed(kind, name, text)}) for text in TYPED)


@pytest.mark.parametrize("kind", KINDS)
def test_every_wrong_value_of_one_field_comes_with_a_right_one(kind):
    for name in kind.__dataclass_fields__:
        for value in (*GIVEN, *(parsed(kind, name, text) for text in TYPED)):
            try:
                kind(**{name: value})
            except Wrong as wrong:
                assert wrong.nearest, str(wrong)


@pytest.mark.parametrize("name", ["width", "font_size", "theme", "scale", "heads", "limits"])
def test_every_wrong_look_of_a_figure_comes_with_a_right_one(name):
    for value in (*GIVEN, *TYPED):
        try:
            Figure(**{name: value})
        except Wrong as wrong:
            assert wrong.nearest, str(wrong)
            assert all(Figure(**{name: value} | change) for change in wrong.nearest)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ({"padding": (30,)}, ({"padding": (19,)}, {"seq_len": 31})),
        ({"padding": (20, 30)}, ({"padding": (20, 19)}, {"seq_len": 31})),
        ({"seq_len": 1}, ({"padding": (0,)}, {"seq_len": 4})),
        ({"source_len": 2, "source_padding": (0, 3)}, ({"source_padding": (0, 1)}, {"source_len": 4})),
    ],
)
def test_advice_leaves_a_key_in_every_item_but_in_those_that_somebody_padded_wholly(given, nearest):
    assert Settings(padding=(20,)).padding == (20,), "which may be asked for"
    with pytest.raises(Wrong) as caught:
        Settings(**given)
    assert caught.value.nearest == nearest


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@effort(max_examples=150, deadline=None)
@pytest.mark.slow
def test_what_is_advised_for_several_fields_is_right(kind, data):
    names = data.draw(st.lists(st.sampled_from(list(kind.__dataclass_fields__)), min_size=2, max_size=4, unique=True))
    values = {
        name: data.draw(
            st.one_of(st.sampled_from(GIVEN), st.sampled_from(TYPED).map(lambda text, name=name: parsed(kind, name, text)))
        )
        for name in names
    }
    assert advice_is_right(kind, values)


@pytest.mark.parametrize(
    ("values", "nearest"),
    [
        ({"padding": ("a", "b")}, ({"padding": (0, 0)},)),
        ({"seq_len": 0}, ({"seq_len": 4},)),
        ({"num_heads": 12.8}, ({"num_heads": 8},)),
        ({"embed_dim": 12.8, "seed": -1}, ({"embed_dim": 16, "seed": 0},)),
        ({"case": "small"}, ({"case": "random"},)),
        ({"source_padding": ("a",)}, ({"source_padding": (0,)},)),
    ],
)
def test_what_is_advised(values, nearest):
    with pytest.raises(Wrong) as caught:
        Settings(**values)
    assert caught.value.nearest[:1] == nearest


@pytest.mark.parametrize("available", [2**33, 2**34, 2**36])
@pytest.mark.parametrize("values", [{"seq_len": 100_000}, {"seq_len": 40_000, "source_len": 90_000}])
def test_lengths_that_are_pooled_are_advised_whatever_memory_is_free(available, values, monkeypatch):
    monkeypatch.setattr("mha_viz.core.memory.free", lambda: available)
    settings = Settings(**values, batch_size=1)
    with pytest.raises(Wrong, match="are pooled") as caught:
        check_size(settings)
    assert caught.value.nearest == ({name: POOLED for name, length in values.items() if length > POOLED},)
    assert check_size(Settings(**values | caught.value.nearest[0], batch_size=1)), "it is shown pooled"
    assert POOLED == 32_768


@pytest.mark.parametrize(
    ("mask", "nearest"), [("110/000", ({"attn_mask": None},)), ("100/000", ({"attn_mask": "10/00"}, {"attn_mask": None}))]
)
def test_a_mask_that_would_hide_every_key_once_it_is_cut_is_not_advised(mask, nearest):
    with pytest.raises(Wrong) as caught:
        Settings(seq_len=2, padding=(), attn_mask=mask)
    assert caught.value.nearest == nearest
