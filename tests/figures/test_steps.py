"""The tensors of a step as pictures: every cell is the Walk's number, and every name stands where there is room for it."""

import re
from html import unescape

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz import Settings, synthetic
from mha_viz.analysis.walkthrough import walk
from mha_viz.figures.parts import Parts
from mha_viz.figures.steps import COLUMNS, ROWS, describe, marked, picture, shape_words, written
from mha_viz.figures.theme import THEMES
from mha_viz.figures.widths import width_of
from mha_viz.settings.settings import TINY

SMALL = {"embed_dim": 12, "num_heads": 3, "batch_size": 2, "seq_len": 5, "padding": (2,)}
CASES = {
    "defaults": {},
    "small": SMALL,
    "undefined": SMALL | {"padding": (5,)},
    "words": SMALL | {"words": "the cat sat on the <mat>\n$x$ &amp; unbelievably_long_word_in_a_text", "padding": ()},
    "tiny": TINY | {"case": "tiny"},
    "wide": {"embed_dim": 600, "num_heads": 2, "seq_len": 300, "padding": ()},
    "many heads": {"num_heads": 64, "training": True},
}


def steps_of(case, head=1, key=1, query=2):
    walked = walk(synthetic(Settings(**CASES[case])), 0, head, query, key, 1)
    return [(name, walked.tensors[name]) for name in walked.steps[:-1]]


def heatmaps(figure):
    return [trace for trace in figure.data if trace.type == "heatmap"]


def printed(figure):
    return [trace for trace in figure.data if trace.type == "scatter" and trace.mode == "text"]


def boxes(figure):
    """(left, top, right, bottom) of every text, in px."""
    layout = figure.layout.to_plotly_json()  # a figure's own properties take long to read
    for note in layout.get("annotations", ()):
        text = unescape(re.sub(r"<[^>]*>", "", note["text"]))
        size = width_of(text, note["font"]["size"]), note["font"]["size"]
        across, down = size[::-1] if note.get("textangle") == -90 else size
        left = note["x"] * layout["width"] - {"left": 0, "center": across / 2, "right": across}[note["xanchor"]]
        top = (1 - note["y"]) * layout["height"] - down / 2
        yield text, left, top, left + across, top + down


@pytest.mark.parametrize("case", ["small", "undefined", "many heads"])
@pytest.mark.parametrize("head", [None, 1])
def test_every_cell_is_the_number(case, head):
    """What is hidden or undefined has no colour, and is hatched."""
    for name, tensors in steps_of(case, head):
        figure = picture(tensors, summed=name == "project")
        assert isinstance(figure, go.Figure) and figure.layout.width == 1104
        for one, drawn in zip(tensors, heatmaps(figure), strict=True):
            rows = slice(0, ROWS) if one.row is None else slice(max(0, min(one.row - 16, len(one.values) - ROWS)), None)
            wanted = np.where(np.isfinite(one.values), one.values, np.nan)
            if one.hidden is not None:
                wanted = np.where(one.hidden, np.nan, wanted)
            np.testing.assert_array_equal(drawn.z, np.float32(wanted[rows][:ROWS]))
            assert np.isfinite(drawn.zmax)
            assert drawn.zmax >= np.nan_to_num(np.abs(drawn.z)).max() * 0.999999
            assert drawn.zmin == (0 if one.kind == "weight" else -drawn.zmax)
        hatched = {trace.legendgroup for trace in figure.data if trace.type == "scatter" and trace.fill == "toself"}
        assert ("masked" in hatched) == any(one.hidden is not None and one.hidden.any() for one in tensors)


def test_zero_looks_like_paper_except_in_print_and_signs_are_two_colours():
    for name, theme in THEMES.items():
        colors = picture(steps_of("small")[0][1], name).data[0].colorscale
        assert colors[len(colors) // 2][1] == (theme.more[0] if name == "print" else theme.paper)
        assert (colors[0][1], colors[-1][1]) == (theme.less[-1], theme.more[-1])


@pytest.mark.slow
@pytest.mark.parametrize(("case", "head"), [("defaults", None), ("words", 1), ("wide", 1), ("many heads", None)])
@pytest.mark.parametrize("width", [320, 1104])
def test_no_word_covers_another_or_leaves_the_picture(case, head, width):
    for name, tensors in steps_of(case, head):
        figure = picture(tensors, width=width, summed=name == "project")
        texts, *edges = zip(*boxes(figure), strict=True)
        left, top, right, bottom = map(np.array, edges)
        outside = (left < -1) | (right > width + 1) | (top < -1) | (bottom > figure.layout.height + 1)
        assert not outside.any(), (name, [texts[i] for i in np.flatnonzero(outside)])
        before = (right[:, None] <= left + 1) | (bottom[:, None] <= top + 1)  # [one, other]: left of it, or above
        covering = [(texts[i], texts[j]) for i, j in np.argwhere(~(before | before.T)) if i < j]
        assert not covering, (name, covering)


def test_values_are_printed_where_they_fit():
    name, tensors = steps_of("tiny", 0, query=0)[5]  # scores of 3 keys
    assert name == "scale"
    texts = [text for trace in printed(picture(tensors)) for text in trace.text]
    assert texts == ["2.000", "3.000", "3.000", "1.414", "2.121", "2.121"]
    assert not printed(picture(steps_of("defaults")[0][1])), "128 numbers in a row have no room"


@pytest.mark.parametrize("width", [320, 1104])
def test_what_stands_around_the_cells_can_be_left_out(width):
    for name, tensors in steps_of("small"):
        draw = lambda **parts: picture(tensors, width=width, summed=name == "project", parts=Parts(**parts))  # noqa: B023, E731
        words = lambda figure: " ".join(text for text, *_ in boxes(figure))  # noqa: E731
        whole, bare = draw(), draw(title=False, labels=False, values=False)
        assert words(whole) and not words(bare) and not printed(bare) and not printed(draw(values=False))
        assert tensors[0].words not in words(draw(title=False)) and re.sub("[_^]", "", tensors[0].symbol) in words(
            draw(labels=False)
        )
        assert bare.layout.height < min(draw(title=False).layout.height, draw(labels=False).layout.height) < whole.layout.height
        for one, other in zip(heatmaps(whole), heatmaps(bare), strict=True):
            np.testing.assert_array_equal(one.z, other.z)


def test_the_sum_is_on_one_scale_and_says_so_in_signs():
    tensors = dict(steps_of("small"))["project"]
    figure = picture(tensors, summed=True)
    said = [re.sub(r"<[^>]*>", "", note.text) for note in figure.layout.annotations]
    assert [text for text in said if text.startswith(("head", "+", "=")) and "what" not in text] == [
        "head 0",
        "+ head 2",
        "+ bias",
        "+ head 1",
        "= output",
    ]
    assert len({drawn.zmax for drawn in heatmaps(figure)}) == 1


def test_of_what_is_too_large_the_surroundings_of_what_is_followed_are_drawn_and_it_says_so():
    for name, tensors in steps_of("wide", head=None, key=290):
        figure = picture(tensors)
        for drawn in heatmaps(figure):
            assert drawn.z.shape[0] <= ROWS and drawn.z.shape[1] <= COLUMNS
        said = " ".join(note.text for note in figure.layout.annotations)
        if name == "keys":
            assert "keys 268–299 of 300 drawn" in said and "dimensions 0–255 of 600 drawn" in said
            assert "key 290<br>dimension 3, head 0" in heatmaps(figure)[-1].hovertext[290 - 268][3]


@pytest.mark.parametrize("head", [None, 1])
def test_the_picture_is_told_in_words(head):
    for _, tensors in steps_of("defaults", head):
        told = describe(tensors)
        for one in tensors:
            assert one.symbol in told and written(one.values[one.row or 0, one.column or 0]) in told


def test_shapes_and_numbers_in_words():
    assert shape_words(steps_of("defaults")[2][1][-1]) == "[N 3, H 8, L 20, D 16]"
    told = {0.29364: "0.2936", -12.3456: "−12.3456", 1.04e-11: "1.04e−11", -np.inf: "−∞", 0.0: "0.0000", 123456.0: "1.235e+05"}
    for value, words in told.items():
        assert written(value) == words
    assert written(np.nan) == "NaN" and written(np.nan, undefined=True) == "undefined"


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ("W^Q", "W<sup>Q</sup>"),
        ("head_h W^O_h", "head<sub>h</sub> W<sup>O</sup><sub>h</sub>"),
        ("head_0 … head_7", "head<sub>0</sub> … head<sub>7</sub>"),
        ("q · k", "q · k"),
    ],
)
def test_a_symbol_has_its_marks_raised_and_lowered(symbol, shown):
    assert marked(symbol) == shown
