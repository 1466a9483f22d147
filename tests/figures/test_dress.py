"""A figure in other clothes: no ground but what its cells need, one font, and the figure it came from untouched."""

import re

import pytest

from mha_viz import Settings, View, synthetic
from mha_viz.figures import heads, lines
from mha_viz.figures.dress import CLEAR, dressed
from mha_viz.figures.serial import to_json

UNDEFINED = synthetic(Settings(embed_dim=16, num_heads=2, batch_size=1, seq_len=6, padding=(6,), causal=True))
FIGURES = {"maps": heads.spec(UNDEFINED, View(arrangement="one")), "lines": lines.spec(UNDEFINED, View())}
each = pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)


@each
def test_a_transparent_figure_has_no_ground(figure):
    layout = dressed(figure, transparent=True)["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == CLEAR


def test_cells_hatches_and_the_words_on_them_stay_readable_on_any_ground():
    figure = dressed(FIGURES["maps"], transparent=True)
    assert figure["data"] == FIGURES["maps"]["data"]
    (hatched,) = [trace for trace in figure["data"] if "fillpattern" in trace]
    assert hatched["fillpattern"]["bgcolor"] == "#ffffff"
    (word,) = [words for words in figure["layout"]["annotations"] if words["text"] == "undefined"]
    assert word["bgcolor"] == "#ffffff"


def test_words_beside_cells_lose_their_ground():
    beside = {"text": "0.3", "xref": "paper", "yref": "paper", "bgcolor": "#ffffff"}
    figure = {"data": [], "layout": {"annotations": [beside]}}
    assert dressed(figure, transparent=True)["layout"]["annotations"] == [beside | {"bgcolor": CLEAR}]
    assert beside["bgcolor"] == "#ffffff"


@each
def test_a_font_is_that_of_every_word(figure):
    text = to_json(dressed(figure, font="Times"))
    assert set(re.findall('"family":"([^"]*)"', text)) == {"Times"}
    assert text == to_json(figure).replace(to_json(figure["layout"]["font"]["family"])[1:-1], "Times")


@each
def test_what_comes_in_stays_as_it_is(figure):
    before = to_json(figure)
    dressed(figure, transparent=True, font="Times")
    assert to_json(figure) == before == to_json(dressed(figure))
