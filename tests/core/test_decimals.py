"""Numbers that are equal to a reader read the same."""

import numpy as np
import pytest

from mha_viz import View
from mha_viz.core.decimals import fill, in_decimals, prose
from mha_viz.figures.heads import heads
from mha_viz.studies.lesson_numbers import opposite_heads


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
@pytest.mark.parametrize("value", [0.125, 0.5, 0.015, 0.05, 0.25, 1 / 3])
def test_a_rounding_error_changes_no_digit(value, digits):
    around = np.float32(value) + np.arange(-4, 5) * 1e-8
    assert len({in_decimals(float(number), digits) for number in around}) == 1


def test_a_sign_is_written():
    assert (in_decimals(0.25, 2, "+"), in_decimals(-0.25, 2, "+")) == ("+0.25", "−0.25")


@pytest.mark.parametrize(("error", "said"), [(0.0, ", bit for bit"), (2e-8, " to within 2e−08"), (0.25, " to within 0.2")])
def test_what_does_not_differ_is_said_to_be_identical(error, said):
    assert fill("identical{off:within}.", off=error) == f"identical{said}."


def test_a_text_stays_as_it_is():
    assert fill("{:>4}|{:.1f}|{name}", "a-b", -0.5, name="c-d") == " a-b|−0.5|c-d"


def test_an_exact_zero_has_no_exponent():
    assert (prose(0.0, ".1e"), prose(-0.0, ".1e"), prose(0.0, ".2f")) == ("0", "0", "0.00")


@pytest.mark.parametrize("width", [390, 560, 880, 1104])
def test_an_average_that_is_the_same_everywhere_prints_one_number(width):
    figure = heads(opposite_heads(), View(), width=width)
    printed = [set(one.text) for one in figure.select_traces({"type": "scatter", "mode": "text"}) if len(one.text) == 64]
    assert {"0.125"} in printed or {"0.12"} in printed, printed
