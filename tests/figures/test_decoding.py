"""Pictures of decoding: what is where in them, that nothing is cut or told by colour alone, and what they say in words."""

import numpy as np
import pytest

from mha_viz import Settings, View, synthetic
from mha_viz.analysis.decoding import beside, lengths
from mha_viz.figures.decoding import cache, describe_cache
from mha_viz.figures.graph import describe_graph, graph
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.theme import THEMES


def found(groups=None, prompt=1, **settings):
    trace = synthetic(Settings(causal=True, **settings))
    return beside(trace.layer, trace.batch, num_kv_heads=groups, prompt=prompt)


def drawn(one, token, item=0, **look):
    return cache(one, lengths(one.decoding, item), token, item, **look)


def heatmaps(figure):
    return {trace.name: np.array(trace.z) for trace in figure.data if trace.type == "heatmap"}


def texts(figure):
    return " ".join(note.text for note in figure.layout.annotations)


def test_queries_are_new_alone_and_keys_and_values_are_kept():
    maps = heatmaps(drawn(found(groups=2, prompt=3), 7))
    assert {name: z.shape for name, z in maps.items()} == {"q": (8, 20), "k": (2, 20), "v": (2, 20), "weights": (8, 20)}
    assert np.isfinite(maps["q"]).nonzero()[1].tolist() == [7] * 8
    for name in ("k", "v", "weights"):
        assert np.isfinite(maps[name][:, :8]).all() and np.isnan(maps[name][:, 8:]).all()
    maps = heatmaps(drawn(found(prompt=3), 2))
    assert np.isfinite(maps["q"]).all(axis=0).nonzero()[0].tolist() == [0, 1, 2], "the prompt is new as a whole"


@pytest.mark.slow
@pytest.mark.parametrize("width", [340, 704, 1104, 1600])
@pytest.mark.parametrize("theme", THEMES)
def test_every_panel_and_word_lies_within_the_picture(width, theme):
    for settings in (
        {"words": "the cat sat on the mat", "padding": (2,)},
        {"num_heads": 32, "seq_len": 130},
        {"num_heads": 1, "seq_len": 2, "padding": ()},
    ):
        figure = drawn(found(**settings), 1, theme=theme, width=width).to_plotly_json()
        layout = figure["layout"]
        assert layout["width"] == width
        for name, axis in layout.items():
            if name[:5] in ("xaxis", "yaxis"):
                assert 0 <= axis["domain"][0] < axis["domain"][1] <= 1
        assert all(0 <= note["x"] <= 1 and 0 <= note["y"] <= 1 for note in layout["annotations"])
        assert all(note["font"]["size"] >= 13 for note in layout["annotations"])


@pytest.mark.parametrize("width", [340, 1104])
def test_what_stands_around_the_panels_can_be_left_out(width):
    one = found(words="the cat sat", padding=())
    whole = drawn(one, 1, width=width)
    for name, gone in (("title", "K cache"), ("labels", "head 0"), ("labels", "cat")):
        assert gone in texts(whole) and gone not in texts(drawn(one, 1, width=width, parts=Parts(**{name: False})))
    bare = drawn(one, 1, width=width, parts=Parts(*[False] * 5))
    assert not texts(bare) and not any(
        trace.mode == "text" or trace.showlegend for trace in bare.data if trace.type == "scatter"
    )
    assert not (bare.layout.coloraxis.showscale or bare.layout.coloraxis2.showscale)
    assert bare.layout.xaxis.domain[0] * width == 4 and bare.layout.height < whole.layout.height
    for name, z in heatmaps(whole).items():
        np.testing.assert_array_equal(heatmaps(bare)[name], z)
    assert drawn(one, 1, width=width, parts=ALL) == whole


def test_colours_mean_the_same_at_every_step():
    one = found()
    ends = {(f.layout.coloraxis.cmax, f.layout.coloraxis2.cmax) for f in (drawn(one, token) for token in (0, 5, 19))}
    assert len(ends) == 1
    weight, length = ends.pop()
    assert 0.3 < weight < 1, "the lone key of the first row does not set the scale"
    assert length == pytest.approx(max(values.max() for values in lengths(one.decoding)))
    fixed = drawn(one, 5, view=View(limits=(0.0, 0.2)))
    assert fixed.layout.coloraxis.cmax == 0.2


def test_masked_keys_are_hatched_and_a_row_without_keys_is_undefined():
    one = found(padding=(4,), padding_side="left")
    legend = [trace.name for trace in drawn(one, 9).data if trace.showlegend]
    assert legend == ["masked: may not be read"]
    legend = [trace.name for trace in drawn(one, 2).data if trace.showlegend]
    assert legend == ["undefined: no key left"]
    assert "undefined: it has no key left" in describe_cache(one, 2)
    assert [trace.name for trace in drawn(one, 9, item=1).data if trace.showlegend] == []


def test_what_a_cell_without_a_number_is():
    panels = {panel["name"]: panel for panel in drawn(found(groups=2), 7).layout.meta["panels"]}
    assert panels["query vector"]["blanks"][3] == "not kept: no later step asks for it"
    assert {panel["blanks"][8] for panel in panels.values()} == {"not there yet"}
    assert panels["key vector"]["rows"] == ["KV head 0", "KV head 1"]


def test_titles_count_what_is_cached_and_what_is_new():
    said = texts(drawn(found(groups=2, prompt=5), 4, width=1104))
    assert "2 KV heads: 0 cached, 5 new" in said and "of the last of the prompt" in said
    assert "2 KV heads: 7 cached, 1 new" in texts(drawn(found(groups=2), 7))


def test_the_alternative_says_what_is_new():
    said = describe_cache(found(words="the cat sat", padding=()), 1)
    assert "token 1 “cat” is new" in said and "1 token was in the cache, 2 now, of 3" in said


def test_lines_are_named_dashed_and_marked():
    figure = graph(
        [1, 2, 4],
        {"one": [1e-8, 0.0, 1e-7], "other": [1.0, np.nan, 10.0]},
        "token",
        "difference",
        mark=2,
        limit=(1e-6, "level"),
        log=True,
    )
    one, other = figure.data
    assert (one.line.dash, other.line.dash) == ("solid", "dash") and other.y[1] is None
    low, high = figure.layout.yaxis.range
    assert 10**low <= 1e-8 and 10**high >= 10
    assert one.y[1] == pytest.approx(10**low), "0 stands at the bottom of a logarithmic scale"
    assert [note.text for note in figure.layout.annotations] == ["one", "other", "level"]
    assert {shape.x0 for shape in figure.layout.shapes} == {0, 2}
    assert describe_graph([1, 4], {"one": [1.0, 2.0]}, "token") == "Over token 1 to 4: one: from 1 to 2."
