"""Lines between tokens: each is a weight of the Trace, none is where a mask or padding is, and what is left out is said."""

import json
import re
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz import Batch, Layer, Settings, View, attend, synthetic
from mha_viz.analysis import choose
from mha_viz.core.cells import NUMBERS
from mha_viz.figures.drawn_lines import LEGIBLE, MARKS, describe_average, describe_lines
from mha_viz.figures.geometry import Box
from mha_viz.figures.labels import SIZE, Names, visible
from mha_viz.figures.lines import average, lines, spec
from mha_viz.figures.panels import NODE, arrange
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.scale import largest_weight
from mha_viz.figures.serial import to_json
from mha_viz.figures.theme import THEMES
from mha_viz.figures.widths import width_of

SMALL = Settings(embed_dim=16, num_heads=4, batch_size=2, seq_len=6, padding=(2,))
WORDS = Settings(words="the cat sat on the mat because <b>it</b> $5 was\nthe dog", causal=True, embed_dim=16, num_heads=4)


def drawn(figure):
    """Per panel {(query, key): weight}, as the pointer hears it."""
    found = [trace["customdata"] for trace in figure["data"] if trace.get("meta") == "lines"]
    return [{(int(query), int(key)): weight for query, key, weight, _ in lines} for lines in found]


def strokes(figure):
    """Every stroke that is drawn, those of the key included: (x0, y0, x1, y1) → (width, colour)."""
    found = {}
    for trace in figure["data"]:
        if trace["mode"] == "lines" and len(trace["x"]) % 3 == 0:
            for ends in np.stack([trace["x"], trace["y"]], axis=1).reshape(-1, 3, 2)[:, :2]:
                found[tuple(ends.ravel().round(2).tolist())] = trace["line"]["width"], trace["line"]["color"]
    return found


def stroke(figure, panel, query, key):
    """The stroke of one line, where ``meta`` says that it is; None where there is none."""
    sides = figure["layout"]["meta"]["panels"][panel]
    ends = [(s["x"], s["y"] + i * s["pitch"]) for s, i in ((sides["query"], query), (sides["key"], key))]
    return strokes(figure).get(tuple(np.float32(ends).ravel().round(2).tolist()))


def texts(figure):
    return next(trace for trace in figure["data"] if trace["mode"] == "text")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("arrangement", ["pair", "all", "one"])
def test_plotly_accepts_it_and_its_json_is_whole(theme, arrangement):
    figure = lines(synthetic(SMALL), View(arrangement=arrangement, cell=(1, 2)), theme, 360)
    assert isinstance(figure, go.Figure) and figure.layout.width == 360
    assert json.loads(to_json(spec(synthetic(SMALL), View())))["layout"]["meta"]["kind"] == "lines"


@pytest.mark.parametrize("settings", [SMALL, WORDS, Settings(embed_dim=6, num_heads=3, seq_len=4, source_len=9, padding=())])
@pytest.mark.parametrize("arrangement", ["pair", "all", "one"])
def test_each_line_is_a_weight_of_the_trace(settings, arrangement):
    trace, view = synthetic(settings), View(arrangement=arrangement)
    figure, choice = spec(trace, view), choose(trace, view)
    heads = {"pair": [choice.head, None], "all": [*choice.order, None], "one": [choice.head]}[arrangement]
    assert [panel["head"] for panel in figure["layout"]["meta"]["panels"]] == heads
    real = ~trace.query_padding[0]
    for panel, (head, found) in enumerate(zip(heads, drawn(figure), strict=True)):
        weights = trace.mean_weights[0] if head is None else trace.weights[0, head]
        positive = {(q, k): weights[q, k] for q, k in np.argwhere((weights > 0) & real[:, None]).tolist()}
        assert found == positive
        for cell in np.ndindex(weights.shape):
            assert (stroke(figure, panel, *cell) is not None) == (cell in positive)


def test_width_and_colour_follow_the_weight_on_the_scale_of_the_maps():
    trace = synthetic(SMALL)
    figure, choice = spec(trace, View(arrangement="one")), choose(trace, View())
    [found] = drawn(figure)
    by_weight = [stroke(figure, 0, *cell) for cell in sorted(found, key=found.get)]
    widths = [width for width, _ in by_weight]
    assert widths == sorted(widths) and len(set(widths)) > 3 and len(set(by_weight)) == len(set(widths))
    largest = largest_weight(trace.weights[0], trace.query_padding[0])
    fixed = spec(trace, View(arrangement="one", limits=(0, 2 * largest)))
    strongest = max(found, key=found.get)
    assert stroke(fixed, 0, *strongest)[0] < stroke(figure, 0, *strongest)[0]
    assert choice.head == figure["layout"]["meta"]["chosen"]["head"]


@pytest.mark.parametrize("scale", ["linear", "log", "percentile", "row"])
def test_lines_follow_the_scale_of_the_view(scale):
    figure = spec(synthetic(SMALL), View(arrangement="one", scale=scale))
    [found] = drawn(figure)
    widths = {cell: stroke(figure, 0, *cell)[0] for cell in found}
    if scale == "row":
        by_row = [max((weight, cell) for cell, weight in found.items() if cell[0] == query)[1] for query in range(4)]
        assert {widths[cell] for cell in by_row} == {max(widths.values())}, "each query's strongest line is as wide as any"
    else:
        ordered = sorted(found, key=found.get)
        assert all(widths[a] <= widths[b] for a, b in pairwise(ordered)) and widths[ordered[0]] < widths[ordered[-1]]


def test_masked_keys_and_padded_or_undefined_queries_have_marks_and_no_lines():
    padding = np.array([[False, False, True]])
    mask = np.zeros((3, 3), bool)
    mask[1] = True
    batch = Batch(np.ones((1, 3, 4)), key_padding_mask=padding, query_padding_mask=padding, attn_mask=mask)
    trace = attend(Layer.random(4, 2), batch)
    figure = spec(trace, View())
    assert [set(found) for found in drawn(figure)] == [{(0, 0), (0, 1)}] * 2
    legend = {trace["name"]: len(trace["x"]) for trace in figure["data"] if trace["showlegend"]}
    assert legend == {words: 2 for mark, (_, words) in MARKS.items() if mark not in NUMBERS}, "one mark in each of two panels"
    soft = [
        color for color, text in zip(texts(figure)["textfont"]["color"], texts(figure)["text"], strict=True) if text in "12"
    ]
    assert soft.count(THEMES["light"].soft) == 2 * 3, "names of query 1, query 2 and key 2 step back"


def test_without_a_real_query_it_is_still_a_picture():
    trace = synthetic(Settings(embed_dim=4, num_heads=2, batch_size=1, seq_len=3, padding=(3,)))
    figure = spec(trace, View())
    assert drawn(figure) == [{}, {}]
    assert "Undefined query: no key left, no lines: 3." in describe_lines(trace, View())


@pytest.mark.parametrize("arrangement", ["pair", "all"])
def test_the_statement_about_lines_left_out_is_true(arrangement):
    trace = synthetic(Settings())
    figure = spec(trace, View(arrangement=arrangement))
    found = drawn(figure)
    said = next(text for text in texts(figure)["text"] if "left out:" in text)
    least, part = re.fullmatch(r"Lines below (0\.\d+) left out: (\d+) % of the weight", said).groups()
    heads = [panel["head"] for panel in figure["layout"]["meta"]["panels"]]
    weights = np.stack([trace.mean_weights[0] if head is None else trace.weights[0, head] for head in heads])
    weights = weights[:, ~trace.query_padding[0]]
    for panel, cells in zip(weights, found, strict=True):
        assert set(cells) == set(map(tuple, np.argwhere(panel >= float(least)).tolist()))
    left = 1 - weights[weights >= float(least)].sum() / weights.sum()
    assert f"{100 * left:.0f}" == part
    assert sum(map(len, found)) <= 2 * LEGIBLE * len(heads)
    assert said in describe_lines(trace, View(arrangement=arrangement))


def test_equal_weights_stay_together():
    """Attention that is uniform is drawn as that, and not as an empty picture."""
    batch = Batch(np.zeros((1, 10, 4)))
    assert [len(found) for found in drawn(spec(attend(Layer.random(4, 2), batch), View()))] == [100, 100]


def test_a_focused_token_has_all_its_lines_and_the_others_step_back():
    trace = synthetic(Settings())
    figure = spec(trace, View(head=2, cell=(5, 7)))
    found = drawn(figure)[0]
    assert {key for query, key in found if query == 5} == set(np.flatnonzero(trace.weights[0, 2, 5]))
    line = THEMES["light"].line
    assert all((stroke(figure, 0, *cell)[1] == line) == (cell[0] != 5) for cell in found)
    bold = [text for text in texts(figure)["text"] if text in ("<b>5</b>", "<b>7</b>")]
    assert bold == ["<b>5</b>", "<b>7</b>"] * 2
    assert figure["layout"]["meta"]["chosen"] == {"head": 2, "query": 5, "key": 7}
    assert "In focus: query 5." in describe_lines(trace, View(head=2, cell=(5, 7)))
    assert spec(trace, View(cell=(99, 0)))["layout"]["meta"]["chosen"]["query"] is None


def test_a_focused_key_has_all_lines_that_read_it():
    trace = synthetic(Settings())
    figure = spec(trace, View(head=2, cell=(None, 7)))
    found = drawn(figure)[0]
    assert {query for query, key in found if key == 7} == set(np.flatnonzero(~trace.query_padding[0]))
    line = THEMES["light"].line
    assert all((stroke(figure, 0, *cell)[1] == line) == (cell[1] != 7) for cell in found)
    assert "In focus: key 7." in describe_lines(trace, View(cell=(None, 7)))


def test_names_are_escaped_and_exact():
    figure = spec(synthetic(WORDS), View())
    assert "&lt;b&gt;it&lt;/b&gt;" in texts(figure)["text"] and "&#36;5" in texts(figure)["text"]
    hovers = [text for trace in figure["data"] if trace.get("meta") == "lines" for text in trace["text"]]
    assert "query 7 “&lt;b&gt;it&lt;/b&gt;”<br>key 1 “cat”" in hovers
    assert figure["layout"]["meta"]["queries"][7] == "<b>it</b>"
    assert visible("<b>it</b>") in describe_lines(synthetic(WORDS), View(cell=(7, 0)))


LARGE = [(True, 1, 1, 1), (True, 1, 128, 128), (True, 2, 20, 22), (True, 2, 3, 60)]
SMALL_ONES = [(False, 2, 1, 1), (False, 9, 20, 20), (False, 5, 3, 60), (False, 13, 128, 128), (False, 65, 20, 20)]


def name_box(place, side, token):
    """The Box of a token's name in the first panel, as its words are put."""
    (left, right, top), px = place.ends(0), width_of(place.sides[side].short[token], SIZE)
    x = left - NODE - px if side == 0 else right + NODE
    return Box(x, top + (token + 0.5) * place.pitch[side] - SIZE / 2, px, SIZE)


@pytest.mark.parametrize("width", [360, 640, 1104])
@pytest.mark.parametrize(("large", "count", "queries", "keys"), LARGE + SMALL_ONES)
def test_no_names_overlap_and_nothing_leaves_the_picture(width, large, count, queries, keys):
    tokens = [[f"a longer word {i}" for i in range(size)] for size in (queries, keys)]
    hidden = [np.zeros(size, bool) for size in (queries, keys)]
    names_in = lambda room: [Names(side, room, back) for side, back in zip(tokens, hidden, strict=True)]  # noqa: E731
    place = arrange(width, count, large, names_in, True, 6, ["words in the legend"] * 3)
    panels = [place.panel(i) for i in range(count)]
    for i, box in enumerate(panels):
        assert box.x >= 0 and box.right <= (width if width < 640 else place.key.x) and box.bottom <= place.legend.y
        assert all(
            box.right <= other.x or other.right <= box.x or box.bottom <= other.y or other.bottom <= box.y
            for other in panels[:i]
        )
        left, right, _ = place.ends(i)
        assert right - left >= 40, "room for lines"
    for side in (0, 1):
        names = [name_box(place, side, token) for token in place.named(side)]
        assert all(above.bottom <= below.y for above, below in pairwise(names))
        assert all(panels[0].x - 1 <= name.x and name.right <= panels[0].right + 1 for name in names)
    samples = [place.sample(i) for i in range(6)]
    assert all(box.x >= 0 and box.right + 40 <= width and box.bottom <= place.height for box in samples)


def test_heads_have_lines_without_the_average_and_the_average_without_heads():
    trace = synthetic(SMALL)
    view = View(heads=(3, 1), order="index", arrangement="all")
    heads, mean = spec(trace, view, average=None), average(trace, view)
    assert drawn(heads) + drawn(mean) == drawn(spec(trace, view))
    assert [panel["head"] for panel in heads["layout"]["meta"]["panels"]] == [1, 3]
    assert mean["layout"]["meta"]["chosen"]["head"] is None and heads["layout"]["meta"]["chosen"]["head"] == 1
    assert describe_lines(trace, view).startswith(
        "Attention as lines from 6 queries on the left to 6 keys on the right: head 1, head 3, average of"
    )
    assert "keys on the right: head 1, head 3. " in describe_lines(trace, view, average=None)
    assert "keys on the right: average of 4 heads. " in describe_average(trace, view)


@pytest.mark.parametrize("width", [360, 640, 1104])
@pytest.mark.parametrize("parts", [Parts(title=False), Parts(labels=False), Parts(bar=False), Parts(*[False] * 5)])
def test_panels_take_the_room_of_what_is_left_out(width, parts):
    trace = synthetic(WORDS)
    whole, bare = (spec(trace, View(), width=width, parts=parts)["layout"] for parts in (ALL, parts))
    span = lambda layout: layout["meta"]["panels"][0]["key"]["x"] - layout["meta"]["panels"][0]["query"]["x"]  # noqa: E731
    assert span(bare) >= span(whole) and bare["height"] <= whole["height"]
    assert span(bare) > span(whole) or bare["height"] < whole["height"]
