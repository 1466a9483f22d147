"""Tokens as texts: visible, harmless, short where there is no room, and never cut in the middle of a letter."""

import numpy as np
import pytest

from mha_viz.figures.labels import Names, escape, shorten, visible
from mha_viz.figures.theme import THEMES
from mha_viz.figures.widths import width_of


@pytest.mark.parametrize(
    ("token", "seen"),
    [
        ("cat", "cat"),
        ("the cat", "the cat"),
        ("", "∅"),
        ("a\u00a0b", "a␣b"),
        (" ", "␣"),
        ("  \n", "␣␣⏎"),
        (" the", "␣the"),
        ("the ", "the␣"),
        ("a\nb", "a⏎b"),
        ("a\tb", "a⇥b"),
        ("\x00", "␀"),
        ("\x7f", "␡"),
        ("\x85", "‹U+0085›"),
        ("x\u202ey", "x‹U+202E›y"),
        ("\u200b", "‹U+200B›"),
        ("\ufeff", "‹U+FEFF›"),
        ("\ud800", "‹U+D800›"),
        ("👩‍👧", "👩‍👧"),
        ("é", "é"),
        ("日本", "日本"),
        ("שלום", "\u2068שלום\u2069"),
        ("<s>", "<s>"),
        ("$5", "$5"),
    ],
)
def test_visible(token, seen):
    assert visible(token) == seen


@pytest.mark.parametrize("token", ["<s>", "<b>x</b>", "<br>", "&lt;", "$a$", "$5", "<a href='javascript:x'>y</a>", "%{x}"])
def test_escaped_texts_hold_no_tag_entity_or_formula(token):
    import html

    safe = escape(token)
    assert not set("<>$") & set(safe)
    assert html.unescape(safe) == token


def test_two_equal_tokens_stay_two():
    names = Names(("the", "the"), 100, np.array([False, False]))
    assert names.exact == ["0 “the”", "1 “the”"]
    assert names.drawn(1, THEMES["light"]) == ([0, 1], ["the", "the"])


def test_a_number_that_names_its_own_place_is_said_once():
    assert Names(("0", "1", "7"), 100, np.zeros(3, bool)).exact == ["0", "1", "2 “7”"]


def test_hidden_names_step_back_and_every_second_is_left_out():
    theme = THEMES["light"]
    places, texts = Names(("a", "b", "<pad>"), 100, np.array([False, False, True])).drawn(2, theme)
    assert places == [0, 2]
    assert texts == ["a", f"<span style='color:{theme.soft}'>&lt;pad&gt;</span>"]


def test_a_long_word_is_shortened_where_it_is_drawn_and_whole_on_hover():
    word = "Donaudampfschifffahrtsgesellschaftskapitän"
    names = Names((word,), 96, np.array([False]))
    assert names.short[0].endswith("…") and word.startswith(names.short[0][:-1])
    assert word in names.exact[0] and names.texts == [word]
    assert names.widest <= 96


@pytest.mark.parametrize("room", range(15, 120, 7))
@pytest.mark.parametrize("text", ["Donaudampfschifffahrt", "e\u0301" * 20, "👩‍👩‍👧" * 8, "日本語" * 6, "❤️" * 9])
def test_a_shortened_text_fits_and_ends_between_two_letters(text, room):
    short = shorten(text, room, 13)
    assert width_of(short, 13) <= room
    kept = short.removesuffix("…")
    if kept != text:
        assert text.startswith(kept)
        assert text[len(kept)] not in "\u0301\u200d\ufe0f" and not kept.endswith("\u200d")


def test_a_shortened_text_from_right_to_left_stays_isolated():
    short = shorten(visible("שלום" * 20), 60, 13)
    assert short.startswith("\u2068") and short.endswith("\u2069") and short.count("\u2068") == 1


def test_widths_grow_with_size_and_text():
    assert width_of("mm", 13) == 2 * width_of("m", 13) > 2 * width_of("i", 13)
    assert width_of("m", 26) == pytest.approx(2 * width_of("m", 13))
    assert width_of("e\u0301", 13) == width_of("e", 13)
