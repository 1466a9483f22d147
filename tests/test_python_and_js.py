"""What Python and the browser decide alike: both are held to the same cases, the browser's half by js/tests/as_in_python.test.js."""

import json
from pathlib import Path

import numpy as np
import pytest
import streamlit as st

from mha_viz.components import measured_width
from mha_viz.core.decimals import in_decimals, prose
from mha_viz.core.pool import Pool
from mha_viz.core.typed_number import read_number
from mha_viz.export.browser import UNITS
from mha_viz.figures.geometry import nice_step
from mha_viz.figures.labels import numbered
from mha_viz.figures.theme import THEMES
from mha_viz.figures.tiles import marks

CASES = json.loads(Path(__file__).parent.joinpath("data", "python_and_js.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES["numbers"], ids=lambda case: str(case["value"]))
def test_numbers_are_written_alike(case):
    value = case["value"]
    assert prose(value, ".6f") == case["six"]
    assert in_decimals(value, 3) == case["three"]
    assert in_decimals(value, 3, "+" if value > 0 else "") == case["change"]


@pytest.mark.parametrize(("least", "step"), CASES["steps"])
def test_as_many_tokens_are_named(least, step):
    assert nice_step(least) == step


@pytest.mark.parametrize(("i", "text", "name"), CASES["tokens"])
def test_tokens_have_the_same_names(i, text, name):
    assert numbered(i, text) == name


@pytest.mark.parametrize("case", CASES["blocks"], ids=lambda case: f"{case['cells']} in {case['blocks']}")
def test_cells_lie_in_the_same_blocks(case):
    cells = np.arange(case["cells"], dtype=float)[None]
    assert Pool(1, case["cells"], 1, case["blocks"]).largest(cells).tolist() == [case["last"]]


@pytest.mark.parametrize("case", CASES["outlines"], ids=lambda case: case["about"])
def test_the_chosen_cell_has_the_same_outline(case):
    side, count, cell = case["side"], case["count"], case["cell"]
    outlines = marks((cell, 0), np.zeros((1, 2)), (count, count), (side, side), ("x", "y"), THEMES["light"])
    for outline in outlines:
        ends = np.array([np.nanmin(outline["x"]), np.nanmax(outline["x"])])
        assert (ends + 0.5) * side == pytest.approx(case["px"]), "positions count from the centre of cell 0"


@pytest.mark.parametrize("case", [case for case in CASES["stepped"] if case["to"]], ids=lambda case: case["text"])
def test_a_number_that_was_stepped_is_read(case):
    read = read_number(case["to"])
    assert read == case["read"] and type(read) is type(case["read"])


@pytest.mark.parametrize("text", [case["text"] for case in CASES["stepped"]])
def test_what_is_stepped_is_a_number(text):
    assert not isinstance(read_number(text), str)


def test_an_inch_has_as_much_of_each_unit():
    assert CASES["units"] == UNITS


@pytest.mark.parametrize(("px", "width"), CASES["widths"])
def test_a_picture_is_as_wide(px, width, monkeypatch):
    monkeypatch.setattr(st, "session_state", {"picture": {"width": int(px)}})
    assert measured_width("picture") == width
