"""In whatever font a picture is drawn, its words are measured in that one: none runs over the edge, none is left out for nothing."""

import shutil

import pytest

from mha_viz import Settings, View, synthetic
from mha_viz.analysis.number import open_number
from mha_viz.figures import heads, number, widths
from mha_viz.figures.widths import drawn_in, widened, width_of

fontconfig = pytest.mark.skipif(shutil.which("fc-match") is None, reason="fontconfig is not installed")
CAUSAL = synthetic(Settings(embed_dim=16, num_heads=2, batch_size=1, seq_len=6, causal=True))


@pytest.fixture
def no_fontconfig(monkeypatch):
    widths._em.cache_clear()
    widths._opened.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    yield
    widths._em.cache_clear()
    widths._opened.cache_clear()


def said(spec):
    """The lines of words beside maps and bars that are all in one kind of letters: (text, px of its left edge, px of its right edge)."""
    for words in spec["layout"]["annotations"]:
        lines = words["text"].split("<br>")
        if words["xref"] == "paper" and not any("<" in line for line in lines):
            for line in lines:
                x, px = words["x"] * spec["layout"]["width"], width_of(line, words["font"]["size"])
                left = x - {"left": 0, "center": 0.5, "right": 1}[words["xanchor"]] * px
                yield line, left, left + px


@fontconfig
def test_a_font_of_one_width_has_one_width():
    with drawn_in("monospace"):
        assert width_of("ii.", 10) == pytest.approx(width_of("mW%", 10))
        assert 5 < width_of("i", 10) < 8
    assert width_of("ii.", 10) < width_of("mW%", 10)


@fontconfig
def test_families_are_asked_for_as_css_spells_them():
    with drawn_in("'monospace' , sans-serif"):
        assert width_of("i", 10) == pytest.approx(width_of("m", 10))


@fontconfig
@pytest.mark.parametrize("font", [None, "serif", "sans-serif"])
def test_bold_letters_are_no_narrower(font):
    with drawn_in(font):
        assert width_of("average of 8 heads", 17, bold=True) >= width_of("average of 8 heads", 17)


@pytest.mark.parametrize("font", [None, "serif", "monospace"])
def test_marks_take_nothing_and_ideographs_a_square_in_every_font(font):
    with drawn_in(font):
        assert width_of("e\u0301", 10) == width_of("e", 10)
        assert 10 <= width_of("字", 10) <= 11


def test_a_font_that_cannot_be_looked_up_has_room(no_fontconfig):
    usual = width_of("head 4", 10)
    with drawn_in("Georgia, serif"):
        assert width_of("head 4", 10) == pytest.approx(widths.ROOMY * usual) and widened(100) == pytest.approx(120, abs=1)
    with drawn_in("Arial, Helvetica, sans-serif"):
        assert width_of("head 4", 10) == usual and widened(94) == 94


def test_the_font_is_that_of_one_picture_alone():
    usual = width_of("head 4", 10)
    with pytest.raises(ZeroDivisionError), drawn_in("monospace"):
        1 / 0  # noqa: B018
    assert width_of("head 4", 10) == usual and widened(94) == 94


@fontconfig
@pytest.mark.parametrize("font", ["monospace", "serif"])
@pytest.mark.parametrize("arrangement", ["pair", "all", "one"])
@pytest.mark.parametrize("width", [604, 1104])
def test_no_word_beside_maps_is_cut(font, arrangement, width):
    with drawn_in(font):
        found = list(said(heads.spec(CAUSAL, View(arrangement=arrangement), width=width)))
        assert {"key → is read", "query ↓ asks"} <= {line for line, *_ in found}
        assert not [(line, left, right) for line, left, right in found if left < 0 or right > width]


@fontconfig
def test_no_word_beside_bars_is_cut():
    with drawn_in("monospace"):
        found = list(said(number.terms(CAUSAL, open_number(CAUSAL, 0, 0, 3, 1)).to_dict()))
        assert "dimension" in [line for line, *_ in found]
        assert not [(line, left) for line, left, _ in found if left < 0]
