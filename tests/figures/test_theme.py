"""Colours: even to the eye, readable, and told apart without hue."""

import numpy as np
import pytest

from mha_viz.figures.theme import THEMES, Theme, contrast, luminance, mixed, readable_on, rgb

PRINT = THEMES["print"]
both = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)


def oklab(color):
    """[3] lightness, a, b of #rrggbb (B. Ottosson, 2020)."""
    c = np.array(rgb(color)) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.array(lab) @ np.cbrt(np.array(lms) @ linear)


@both
def test_ink_starts_as_paper(theme):
    assert theme.ink[0] == theme.paper


@both
def test_ink_is_even_to_the_eye_and_in_grey(theme):
    steps = np.diff([oklab(color) for color in theme.ink], axis=0)  # [8, 3]
    lengths = np.linalg.norm(steps, axis=1)
    assert lengths.max() < 1.25 * lengths.min()
    assert np.all(steps[:, 0] < 0) or np.all(steps[:, 0] > 0)  # lightness alone tells the order: any colour vision, any printer


@both
def test_texts_can_be_read(theme):
    for color in (theme.text, theme.soft):
        assert contrast(rgb(color), rgb(theme.paper)) >= 4.5


@both
def test_hatches_stand_out_from_zero_and_from_low_weights(theme):
    for fraction in (0, 0.05, 0.1, 0.125):
        assert contrast(rgb(theme.hatch), theme.ink_at(fraction)) >= 3


@both
def test_the_chosen_tile_stands_out(theme):
    assert contrast(rgb(theme.choice), rgb(theme.paper)) >= 3


@both
def test_numbers_can_be_read_on_every_weight(theme):
    for fraction in np.linspace(0, 1, 101):
        assert contrast(rgb(readable_on(theme.ink_at(fraction))), theme.ink_at(fraction)) >= 4.5


@both
def test_the_double_outline_shows_on_every_weight(theme):
    for fraction in np.linspace(0, 1, 101):
        assert max(contrast(rgb(c), theme.ink_at(fraction)) for c in (theme.paper, theme.text)) >= 3


@both
def test_more_and_less_begin_alike_and_are_even_to_the_eye(theme):
    assert theme.more[0] == theme.less[0]
    for side in (theme.more, theme.less):
        lengths = np.linalg.norm(np.diff([oklab(color) for color in side], axis=0), axis=1)  # [8]
        assert lengths.max() < 1.3 * lengths.min()


@both
def test_numbers_can_be_read_on_every_change(theme):
    for fraction in np.linspace(0, 1, 101):
        for side in (theme.more, theme.less):
            color = mixed(side, fraction)
            assert contrast(rgb(readable_on(color)), color) >= 4.5


@both
def test_what_is_chosen_stands_out_from_the_rest(theme):
    assert contrast(rgb(theme.choice), rgb(theme.line)) >= (4.5 if theme is PRINT else 3)


def test_print_is_grey():
    for colors in (value for value in vars(PRINT).values() if not isinstance(value, float | bool)):
        assert all(len(set(rgb(color))) == 1 for color in ([colors] if isinstance(colors, str) else colors))
    assert (PRINT.paper, PRINT.text) == ("#ffffff", "#000000")


def test_no_change_is_paper_and_both_signs_are_darker():
    for fraction in np.linspace(0.05, 1, 20):
        assert max(luminance(mixed(side, fraction)) for side in (PRINT.more, PRINT.less)) < luminance(rgb(PRINT.paper))
    for theme in THEMES.values():
        assert theme.more[0] == theme.less[0] == theme.paper
    assert contrast(rgb(PRINT.more[-1]), rgb(PRINT.more[0])) >= 3 and contrast(rgb(PRINT.less[-1]), rgb(PRINT.less[0])) >= 3


@pytest.mark.parametrize("side", ["ink", "more", "less"])
def test_printed_hatches_stay_apart_from_every_grey(side):
    """Their lines or the paper between them: a texture, whatever the tone beside it."""
    for fraction in np.linspace(0, 1, 101):
        grey = mixed(getattr(PRINT, side), fraction)
        assert max(contrast(rgb(color), grey) for color in (PRINT.hatch, PRINT.paper)) >= 4.5


def test_printed_bars_that_are_chosen_stand_out():
    assert contrast(rgb(PRINT.choice), rgb(PRINT.rest)) >= 3 and contrast(rgb(PRINT.rest), rgb(PRINT.paper)) >= 2


def test_colours_between_two_steps_are_mixed():
    theme = Theme("#000000", "", "", "", "", "", "", ("#000000", "#646464", "#ffffff"), (), ())
    assert theme.ink_at(0.25) == (50, 50, 50)
    assert theme.ink_at(-1) == (0, 0, 0) and theme.ink_at(2) == (255, 255, 255)
    assert theme.colorscale() == [[0, "#000000"], [0.5, "#646464"], [1, "#ffffff"]]


def test_contrast_of_black_and_white_is_21():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert luminance((255, 255, 255)) == pytest.approx(1)
