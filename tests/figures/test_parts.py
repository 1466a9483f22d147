"""What stands around maps and lines can be left out: then nothing of it is drawn, and the maps and lines are the same."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz import Settings, View, synthetic
from mha_viz.figures import compare, heads, lines, overview
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.serial import to_json

WORDS = Settings(words="the cat sat on it\nthe dog", embed_dim=16, num_heads=4, causal=True)
TRACE, OPEN, SHORT = (synthetic(settings) for settings in (WORDS, replace(WORDS, causal=False), replace(WORDS, words="a mat")))
PAIR, EVERY, LOG = View(item=1), View(item=1, arrangement="all"), View(item=1, arrangement="one", scale="log")
PICTURES = {
    "a pair": lambda **more: heads.spec(TRACE, PAIR, **more),
    "all heads": lambda **more: heads.spec(TRACE, EVERY, **more),
    "a head, logarithmic": lambda **more: heads.spec(TRACE, LOG, **more),
    "the average": lambda **more: heads.average(TRACE, PAIR, **more),
    "lines": lambda **more: lines.spec(TRACE, PAIR, **more),
    "lines of all heads": lambda **more: lines.spec(TRACE, EVERY, **more),
    "a difference": lambda **more: compare.difference_spec(OPEN, TRACE, PAIR, **more),
    "two sizes": lambda **more: compare.difference_spec(SHORT, TRACE, PAIR, **more),
    "layers": lambda **more: overview.spec((TRACE, OPEN), PAIR, 1, **more),
}
NONE = Parts(*[False] * 5)
every = pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)
widths = pytest.mark.parametrize("width", [360, 700, 1104])


def words(figure):
    """Every word and number around the cells, as it is drawn."""
    layout = figure["layout"]
    found = [note["text"] for note in layout["annotations"]] if "annotations" in layout else []
    for trace in figure["data"]:
        found += list(trace["text"]) if trace.get("mode") == "text" else []
        found += [trace["name"]] if trace.get("showlegend") else []
    for name, part in ((name, part) for name, part in layout.items() if isinstance(part, dict)):
        found += part["ticktext"] if name[1:5] == "axis" and part.get("showticklabels") else []
        found += [part["colorbar"]["title"]["text"]] if "colorbar" in part else []
    return [re.sub("<[^>]*>", " ", text) for text in found]


def parts_of(figure):
    """Which parts are seen to be there."""
    said = words(figure)
    return Parts(
        title=any(re.search(r"head|layers|average|\d %", text) for text in said),
        labels=any(text.strip() in ("the", "a", "key is read", "layer 0") or "query ↓" in text for text in said),
        bar=any(re.match("weight|change", text) for text in said),
        legend=any(text.startswith(("masked", "padded")) for text in said),
        values=any(re.fullmatch(r"[+−]?\d\.\d{2,3}", text.strip()) for text in said),
    )


@every
@widths
@pytest.mark.slow
def test_exactly_what_is_left_out_is_gone(draw, width):
    for parts in (Parts(*flags) for flags in product([True, False], repeat=5)):
        found = parts_of(draw(width=width, parts=parts))
        assert found.values <= parts.values
        assert replace(found, values=parts.values) == parts


@pytest.mark.parametrize("name", ["a pair", "all heads", "a head, logarithmic", "the average", "a difference"])
def test_values_are_printed_where_cells_have_room(name):
    assert parts_of(PICTURES[name]()) == ALL
    assert not parts_of(PICTURES[name](parts=Parts(values=False))).values


def drawn(figure):
    """Name and numbers of each map, the query, key and weight of each line, and what is hatched."""
    maps = [(trace["name"], trace["z"]) for trace in figure["data"] if "z" in trace]
    lines = [(trace["name"], trace["customdata"][:, :3]) for trace in figure["data"] if trace.get("meta") == "lines"]
    return maps + lines, [trace["name"] for trace in figure["data"] if "fillpattern" in trace]


@every
def test_what_is_drawn_is_the_same(draw):
    (whole, hatched), (bare, still_hatched) = drawn(draw()), drawn(draw(parts=NONE))
    assert whole and hatched == still_hatched
    for (name, numbers), (same, others) in zip(whole, bare, strict=True):
        assert name == same
        np.testing.assert_array_equal(numbers, others)


@every
@widths
def test_plotly_accepts_it(draw, width):
    figure = draw(width=width, parts=NONE)
    assert to_json(figure) and go.Figure(figure).layout.width == width
    assert not words(figure)


@every
def test_everything_is_there_unless_it_is_left_out(draw):
    assert to_json(draw()) == to_json(draw(parts=ALL))
