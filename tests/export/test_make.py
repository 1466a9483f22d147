"""From what a document asks for to its files, without a browser: every view, every format, and what is wrong is said before a file is."""

import json
import os
import re
import shutil

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.rules import Wrong
from mha_viz.export.figure import Figure
from mha_viz.export.make import drawn, made, shown, spec_of, write
from mha_viz.settings import Settings, View, to_json

SMALL = "?embed_dim=8&num_heads=4&batch_size=2&seq_len=5&padding=1&causal=1"


@pytest.fixture
def recording(tmp_path):
    """A file with two layers."""
    settings = {"embed_dim": 8, "num_heads": 4, "seq_len": 5, "batch_size": 2}
    path = tmp_path / "run.safetensors"
    mv.Recording(tuple(mv.synthetic(Settings(**settings, seed=seed)) for seed in (1, 2))).save(path)
    return str(path)


def tiles(spec):
    """The heads whose maps are drawn, None the average, in their order."""
    return [tile["head"] for tile in spec["layout"]["meta"]["tiles"]]


# What a figure is of


def test_of_settings_an_address_and_a_recording(tmp_path, recording):
    (tmp_path / "settings.json").write_text(
        to_json(Settings(embed_dim=8, num_heads=4, seq_len=5, batch_size=2, padding=(1,), causal=True))
    )
    of_file = shown(Figure(settings=str(tmp_path / "settings.json"), address="?head=2&scale=log&item=1"))
    of_address = shown(Figure(address=f"{SMALL}&head=2&scale=log&item=1"))
    assert of_file.view == of_address.view == View(head=2, scale="log", item=1)
    np.testing.assert_array_equal(of_file.trace.weights, of_address.trace.weights)
    assert np.array_equal(shown(Figure()).trace.weights, mv.synthetic().weights)
    second = shown(Figure(recording=recording, layer=1))
    np.testing.assert_allclose(second.trace.weights, mv.load(recording).traces[1].weights)


def test_what_if_weighting_and_what_is_pinned_are_part_of_an_address():
    what = shown(
        Figure(address=f"{SMALL}&what_if=0:2=zero&weighting=norms&pinned={SMALL[1:].replace('&', '%26').replace('=', '%3D')}")
    )
    assert what.trace.quantity != "weight" and not what.trace.weights[:, 2].any() and what.a.weights[:, 2].any()


def test_a_difference_is_against_an_address_or_a_file(recording):
    of_address = shown(Figure(address=SMALL, view="difference", against=f"{SMALL}&seed=8"))
    assert not np.array_equal(of_address.a.weights, of_address.trace.weights)
    of_file = shown(Figure(recording=recording, view="difference", against=recording, layer=1))
    np.testing.assert_array_equal(of_file.a.weights, of_file.trace.weights)


def test_a_lesson_has_an_address():
    what = shown(Figure(address="lessons?lesson=causal"))
    assert what.a is not None and "Causal" in what.source.name
    with pytest.raises(Wrong, match="lesson = 'nothin'"):
        shown(Figure(address="lessons?lesson=nothin"))


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ({"address": SMALL, "heads": "2,4"}, "points to head 4, and there are 4, from 0 to 3.*Nearest right: heads = '2'"),
        ({"address": f"{SMALL}&item=2"}, "item = 2"),
        ({"address": f"{SMALL}&cell=9,9"}, "cell = .*points to 9"),
        ({"address": SMALL, "layer": 1}, "there is 1, layer 0"),
        ({"address": SMALL, "view": "difference"}, "something to compare with"),
        ({"address": SMALL, "view": "curves"}, "for a shipped model"),
        ({"address": "?source=trained&model=look-both-ways-2", "view": "decode"}, "not causal"),
        ({"address": "?seed"}, "must spell settings"),
        ({"recording": "gone.safetensors"}, "no such file|No such file|cannot be read"),
        ({"address": SMALL, "view": "softmax", "bar": False}, "has no bar"),
    ],
)
def test_what_is_not_there_is_named(figure, said):
    with pytest.raises(Wrong, match=said):
        spec_of(Figure(**figure))


def test_maps_alone_have_no_norms_and_no_terms(tmp_path):
    mv.Recording((trace_of_maps(np.full((1, 2, 3, 3), 1 / 3, np.float32)),)).save(tmp_path / "maps.safetensors")
    for asked, said in (({"address": "?weighting=norms"}, "cannot be shown"), ({"view": "terms"}, "needs q and k")):
        with pytest.raises(Wrong, match=said):
            spec_of(Figure(recording=str(tmp_path / "maps.safetensors"), **asked))


# Views


@pytest.mark.parametrize(
    ("view", "heads", "right"),
    [
        ("heads", None, {0, 1, 2, 3, None}),
        ("heads", "1,3,mean", {1, 3, None}),
        ("heads", "1,3", {1, 3}),
        ("heads", "mean", {None}),
        ("head", "2", {2}),
        ("average", None, {None}),
        ("pair", "3", {3, None}),
    ],
)
def test_the_heads_that_were_asked_for_are_shown_and_no_others(view, heads, right):
    found = tiles(spec_of(Figure(address=SMALL, view=view, heads=heads)))
    assert set(found) == right and len(found) == len(right)


def test_figures_of_one_document_have_one_scale():
    ends = [
        spec_of(Figure(address=f"{SMALL}&seed={seed}", view="head", limits="0,0.5"))["layout"]["coloraxis"] for seed in (1, 2)
    ]
    assert [(axis["cmin"], axis["cmax"]) for axis in ends] == [(0, 0.5)] * 2


@pytest.mark.skipif(shutil.which("fc-match") is None, reason="fontconfig is not installed")
def test_a_picture_is_laid_out_for_the_font_that_it_is_drawn_in():
    what = shown(Figure(address=SMALL))
    usual, mono = (drawn(Figure(font=font), what)[0]["layout"] for font in (None, "monospace"))
    assert (
        mono["font"]["family"] == "monospace" and mono["xaxis2"]["domain"][0] > usual["xaxis2"]["domain"][0]
    )  # names of rows are wider


# Sequences too long for whole maps


def whole_map(name):
    pytest.fail(f"{name} was made whole")


@pytest.fixture
def long(monkeypatch):
    """As if maps of 40 tokens were too long to be whole: none of them is ever made."""
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**14)
    monkeypatch.setattr("mha_viz.core.engine.compute_call", lambda *_: dict.fromkeys(mv.Trace.fields(), whole_map))
    return "?embed_dim=8&num_heads=4&batch_size=1&seq_len=40&padding=&causal=1"


@pytest.mark.parametrize(
    ("view", "heads", "count"),
    [
        ("page", None, 6),
        ("pair", None, 2),
        ("heads", "1,3", 2),
        ("heads", "1,mean", 2),
        ("average", None, 1),
        ("head", "2", 1),
        ("window", None, 1),
        ("lines", None, 0),
    ],
)
def test_a_long_sequence_is_pooled_or_cut(long, view, heads, count):
    figure = Figure(address=f"{long}&rows=30,38&columns=20,30", view=view, heads=heads)
    spec, alt = drawn(figure, shown(figure))
    maps = [trace for trace in spec["data"] if trace["type"] == "heatmap"]
    assert len(maps) == count and (view == "lines" or "exact: queries 30–37, keys 20–29" in alt)
    assert all(one["z"].shape == (8, 10) for one in maps)


def test_every_layer_of_a_long_recording_is_drawn_in_small(monkeypatch, tmp_path):
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**14)
    rng = np.random.default_rng(0)
    calls = [Call(*(rng.normal(size=(1, 2, size, 4)).astype(np.float32) for _ in range(3))) for size in (300, 5, 300)]
    traces = tuple(trace_of_call(call, later=True) for call in calls)
    mv.Recording(traces).save(tmp_path / "long.safetensors")
    spec = spec_of(Figure(recording=str(tmp_path / "long.safetensors"), view="layers", address="?layer=2&rows=3,9"))
    names = [trace["name"] for trace in spec["data"] if trace["type"] == "heatmap"]
    assert names == [f"layer {layer} head {head}" for layer in (0, 2) for head in (0, 1)]
    assert "pooled, max of 5 × 5: queries 0–299" in str(spec["layout"]["annotations"])


def test_a_head_alone_is_all_that_is_computed(long, monkeypatch):
    from mha_viz.analysis import long_maps

    asked, pooling = [], long_maps.pooling
    monkeypatch.setattr(long_maps, "pooling", lambda trace, heads, **how: asked.append(heads) or pooling(trace, heads, **how))
    monkeypatch.setattr(long_maps, "averaging", None)
    spec_of(Figure(address=f"{long}&head=3", view="head"))
    spec_of(Figure(address=long, view="heads", heads="1,2"))
    assert asked == [[3], [1, 2]]


def test_a_window_is_around_the_chosen_cell(long):
    spec = spec_of(Figure(address=f"{long}&cell=35,9&rows=30,40&head=0", view="window"))
    assert spec["layout"]["meta"]["chosen"] == {"head": 0, "query": 5, "key": 9}  # all 40 keys are within 128


@pytest.mark.parametrize("span", ["rows", "columns"])
def test_a_window_is_exact_or_refused(span, monkeypatch):
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**14)
    address = "?embed_dim=8&num_heads=2&batch_size=1&seq_len=300&padding="
    with pytest.raises(Wrong, match=f"{span} = '0,300': are 300, .* Nearest right: {span} = '0,256'"):
        spec_of(Figure(address=f"{address}&{span}=0,300", view="window"))
    assert spec_of(Figure(address=f"{address}&{span}=0,256", view="window"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"view": "steps"}, "would need the whole maps"),
        ({"heads": "4"}, "points to head 4"),
        ({}, "rows = .*points to 40, and there are 40"),
    ],
)
def test_what_a_long_sequence_does_not_have_is_named(long, asked, said):
    with pytest.raises(Wrong, match=said):
        spec_of(Figure(address=long if asked else f"{long}&rows=40,50", **asked))


def test_parts_of_a_long_sequence_can_be_left_out(long):
    bare, whole = (spec_of(Figure(address=long, view="pair", title=title))["layout"] for title in (False, True))
    assert bare["height"] < whole["height"]


def test_a_number_of_a_long_sequence_is_opened_from_its_row(monkeypatch):
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**14)
    address = "?embed_dim=8&num_heads=4&batch_size=1&seq_len=40&padding=&causal=1&cell=35,9&head=2&rows=30,38"
    for view in ("terms", "softmax", "cell"):
        figure = Figure(address=address, view=view)
        assert "query 35" in drawn(figure, shown(figure))[1]


def test_numbers_of_a_long_sequence_are_those_in_sight_or_what_they_are_made_of(long, tmp_path):
    with pytest.raises(Wrong, match="every weight of 40 × 40"):
        list(write([Figure(out=str(tmp_path / "a.npz"), address=long)]))
    list(write([Figure(out=str(tmp_path / "a.safetensors"), address=long)]))
    assert mv.load(tmp_path / "a.safetensors").traces[0].shape == (1, 4, 40, 40)
    list(write([Figure(out=str(tmp_path / "a.csv"), address=f"{long}&rows=30,32&columns=7,9", heads="1")]))
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert [line.split(",")[1:4] for line in lines[1:]] == [
        ["1", "30", "7"],
        ["1", "30", "8"],
        ["1", "31", "7"],
        ["1", "31", "8"],
    ]


def test_statistics_of_a_long_sequence_are_read_from_all_rows(monkeypatch, tmp_path):
    address = "?embed_dim=8&num_heads=4&batch_size=1&seq_len=40&padding=&causal=1"
    list(write([Figure(out=str(tmp_path / "whole.csv"), address=address, view="layers")]))
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**14)
    list(write([Figure(out=str(tmp_path / "long.csv"), address=f"{address}&rows=3,9", view="layers")]))
    whole, long = (
        [line.split(",")[3:] for line in (tmp_path / name).read_text().splitlines()] for name in ("whole.csv", "long.csv")
    )
    assert whole[0] == long[0]
    for a, b in zip(whole[1:], long[1:], strict=True):
        assert [float(one or 9) for one in b] == pytest.approx([float(one or 9) for one in a], abs=1e-5)


def test_a_comparison_of_long_sequences_says_how_they_are_pooled(long):
    figure = Figure(address=f"{long}&pinned=seed%3D9%26{long[1:].replace('&', '%26').replace('=', '%3D')}", view="difference")
    spec, alt = drawn(figure, shown(figure))
    assert "exact: queries 0–39" in str(spec["layout"]["annotations"]) and "A" in alt


# Files


@pytest.mark.parametrize("ending", ["html", "json", "csv", "npz", "safetensors", "md", "py"])
def test_the_same_figure_is_the_same_file(tmp_path, ending):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    asked = [Figure(out=f"{name}/figure.{ending}", address=SMALL, view="pair") for name in ("a", "b")]
    assert [figure for figure, _ in write(asked, tmp_path)] == asked
    one, two = ((tmp_path / name / f"figure.{ending}").read_bytes() for name in ("a", "b"))
    assert one == two and len(one) > 100
    assert sorted(os.listdir(tmp_path / "a")) == [f"figure.{ending}"]


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_a_saved_trace_opens_again_with_its_settings(tmp_path, ending):
    address = f"{SMALL}&training=1&dropout=0.3"
    list(write([Figure(out=str(tmp_path / f"a.{ending}"), address=address)]))
    (again,) = mv.load(tmp_path / f"a.{ending}").traces
    before = shown(Figure(address=address))
    np.testing.assert_array_equal(again.weights, before.trace.weights)
    np.testing.assert_allclose(again.output, before.trace.output, atol=1e-6)
    assert mv.load(tmp_path / f"a.{ending}").address == address


def test_html_needs_no_network_and_holds_exact_weights(tmp_path):
    list(write([Figure(out=str(tmp_path / "a.html"), address=SMALL)]))
    text = (tmp_path / "a.html").read_text()
    assert "weight %{z:.6f}" in text and "<figcaption>" in text and "aria-label='" in text
    outside = text.replace("https://plotly.com", "").split("<figure>")[0]
    assert "src=" not in outside and "href=" not in outside


@pytest.mark.parametrize(
    ("size", "wide", "enlarged"),
    [
        ({}, "1104px", 1),
        ({"width": (160, "mm")}, "604.724px", 0.762),
        ({"width": (400, "px"), "font_size": (7, "px")}, "400px", 0.5),
    ],
)
def test_html_is_as_wide_as_asked_with_its_text_as_large(size, wide, enlarged):
    page = made(Figure(out="a.html", address=SMALL, **size), None)[0].decode()
    assert f"style='width: {wide}; " in page
    assert float(re.search(r"transform: scale\((.*?)\)", page)[1]) == pytest.approx(enlarged, abs=0.001)


def test_markdown_shows_the_image_and_its_caption(tmp_path):
    list(write([Figure(out=str(tmp_path / "a.md"), address=f"{SMALL}&words=a_b%0A<c>", view="pair")]))
    image, _, caption, *_ = (tmp_path / "a.md").read_text().split("\n")
    assert image.startswith("![") and image.endswith("](a.svg)")
    assert r"\[N, H, L, S\] = \[2, 4" in caption and "torch" in caption


def test_a_csv_holds_the_heads_that_were_asked_for(tmp_path):
    list(
        write([Figure(out="a.csv", address=SMALL, heads="2,mean"), Figure(out="b.csv", address=SMALL, view="layers")], tmp_path)
    )
    assert {line.split(",")[1] for line in (tmp_path / "a.csv").read_text().splitlines()[1:]} == {"2", "average"}
    assert (tmp_path / "b.csv").read_text().startswith("layer,name,head,")


def test_json_is_plotlys(tmp_path):
    list(write([Figure(out=str(tmp_path / "a.json"), address=SMALL)]))
    assert json.loads((tmp_path / "a.json").read_text()).keys() == {"data", "layout"}


def test_a_path_that_cannot_be_written_is_named_before_anything_is_made(tmp_path):
    good = Figure(out=str(tmp_path / "a.json"), address=SMALL)
    (tmp_path / "folder.json").mkdir()
    for out, said in (("gone/a.json", "make .*gone first"), ("folder.json", "cannot be written: another folder")):
        with pytest.raises(Wrong, match=said):
            list(write([good, Figure(out=str(tmp_path / out), address=SMALL)]))
        assert os.listdir(tmp_path) == ["folder.json"]


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    def full(self, data):
        with open(self, "wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(Wrong, match="No space left"):
        list(write([Figure(out=str(tmp_path / "a.json"), address=SMALL)]))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"out": "a.svg"}, r"saved as png.*Nearest right: out = 'a\.png'"),
        ({"out": "a.png", "settings": "s.json"}, "give that, and no"),
    ],
)
def test_the_page_itself_is_a_png_of_an_address(tmp_path, monkeypatch, asked, said):
    (tmp_path / "s.json").write_text(to_json(Settings(embed_dim=8, num_heads=2)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Wrong, match=said):
        made(Figure(view="screen", **asked), None)
