"""Figures as PNG, SVG and PDF: vectors without a bitmap, of the size that was asked for, the same each time, or an error that helps."""

import asyncio
import re
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from mha_viz.core.rules import Wrong
from mha_viz.export.browser import Browser
from mha_viz.export.figure import Figure
from mha_viz.export.make import made
from mha_viz.figures.heads import spec
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import THEMES
from mha_viz.settings import Settings, View
from mha_viz.sources.synthetic import synthetic

SETTINGS = Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=5, padding=(1,), causal=True)
VIEW = View(head=1, cell=(3, 2), colors="viridis", scale="log")
WIDTH = 800  # px


@pytest.fixture(scope="module")
def browser(chromium_path):
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def trace():
    return synthetic(SETTINGS)


@pytest.fixture(scope="module")
def figure(trace):
    return spec(trace, VIEW, width=WIDTH)


@pytest.fixture(scope="module")
def svg(browser, figure):
    return browser.picture(figure, "svg")


@pytest.fixture(scope="module")
def pdf(browser, figure):
    return browser.picture(figure, "pdf", size=(160, "mm"))


def parts(svg, name, within="*"):
    """The elements of this name in those of this class."""
    return ElementTree.fromstring(svg).findall(f".//*[@class='{within}']/{{*}}{name}" if within != "*" else f".//{{*}}{name}")


def test_an_svg_holds_each_cell_as_a_rectangle_and_no_bitmap(svg):
    assert not parts(svg, "image")
    strip_and_large = 2 + 2
    assert len(parts(svg, "rect", "cells")) == strip_and_large * 5 * 5


def test_cells_stand_where_plotly_has_them_in_the_colours_of_the_scale(svg, figure, trace):
    cells = parts(svg, "rect", "cells")[2 * 25 : 3 * 25]  # the large map of the chosen head
    side = round(figure["layout"]["width"] * np.diff(figure["layout"]["xaxis2"]["domain"])[0]) / 5  # px
    scale = Scale.of([trace.weights[0][:, :4]], VIEW, trace.quantity)
    for (query, key), weight in np.ndenumerate(trace.weights[0, 1]):
        cell = cells[5 * query + key]
        x, y, width, height = (float(cell.get(name)) for name in ("x", "y", "width", "height"))
        assert (x, y, width, height) == (key * side, query * side, side - 1, side - 1)  # with a px between them
        expected = scale.color_at(THEMES["light"].dressed("viridis"), scale.drawn(np.float32(weight)))
        assert [int(cell.get("fill")[i : i + 2], 16) for i in (1, 3, 5)] == pytest.approx(expected, abs=1)


def test_cells_without_a_value_and_cells_off_a_zoomed_axis_are_left_out(browser, trace):
    figure = spec(trace, View(head=1, arrangement="one"), width=WIDTH)
    figure["data"][0]["z"] = np.where(np.arange(25).reshape(5, 5) == 7, np.float32(np.nan), figure["data"][0]["z"])
    assert len(parts(browser.picture(figure, "svg"), "rect", "cells")) == 24
    for axis in ("xaxis2", "yaxis2", "xaxis3", "yaxis3"):
        figure["layout"][axis]["range"] = [0.5, 2.5] if axis[0] == "x" else [2.5, 0.5]
    assert len(parts(browser.picture(figure, "svg"), "rect", "cells")) == 3


def test_cells_without_a_gap_touch(browser, trace):
    row = parts(browser.picture(spec(trace, View(), width=WIDTH), "svg"), "rect", "cells")[:5]  # of the strip
    x, width = np.array([[float(cell.get(name)) for name in ("x", "width")] for cell in row]).T
    assert x[1:] == pytest.approx(x[:-1] + width[:-1])


def test_the_marks_are_visible_whoever_hid_them(browser, figure, svg):
    hidden = {**figure, "data": [trace | {"opacity": 0} if trace.get("meta") == "mark" else trace for trace in figure["data"]]}
    assert browser.picture(hidden, "svg") == svg


def test_the_same_figure_gives_the_same_bytes_in_another_browser(figure, svg, pdf, chromium_path):
    with Browser() as another:
        assert another.picture(figure, "svg") == svg
        assert another.picture(figure, "pdf", size=(160, "mm")) == pdf


def test_what_an_svg_refers_to_is_within_it_and_not_in_another(browser, trace, svg):
    other = browser.picture(spec(trace, View(), width=WIDTH), "svg")
    ids, others = (set(re.findall(rb' id="([^"]*)"', file)) for file in (svg, other))
    asked = {target for target in re.findall(rb"url\(([^)]*)\)", svg) if not target.startswith(b"data:")}
    assert asked <= {b"#" + id for id in ids}
    assert not ids & others


def test_the_font_of_the_page_is_in_the_file_and_no_other(browser, trace, svg):
    assert svg.count(b"@font-face") == 1
    figure = spec(trace, View(), width=WIDTH)
    figure["layout"]["font"]["family"] = "Arial, sans-serif"
    assert b"@font-face" not in browser.picture(figure, "svg")


@pytest.mark.parametrize("scale", [1, 2, 4])
def test_a_png_has_its_px_and_says_how_large_they_are(browser, figure, scale):
    png = browser.picture(figure, "png", scale)
    assert png_size(png) == (WIDTH * scale, figure["layout"]["height"] * scale)
    at = png.index(b"pHYs")
    assert int.from_bytes(png[at + 4 : at + 8], "big") == round(scale * 96 / 0.0254)
    assert int.from_bytes(png[at + 13 : at + 17], "big") == zlib.crc32(png[at : at + 13])


def test_a_size_is_that_of_the_finished_figure(browser, figure):
    height = figure["layout"]["height"] / WIDTH * 160
    root = ElementTree.fromstring(browser.picture(figure, "svg", size=(160, "mm")))
    assert root.get("width") == "160mm" and float(root.get("height").removesuffix("mm")) == pytest.approx(height, abs=0.001)
    assert root.get("viewBox") == f"0 0 {WIDTH} {figure['layout']['height']}"
    assert png_size(browser.picture(figure, "png", 2, (2, "in")))[0] == 2 * 96 * 2


def test_a_pdf_is_one_page_of_its_size_without_a_bitmap(pdf, figure):
    objects = unpacked(pdf)
    assert b"/Subtype /Image" not in objects and b"/PatternType 1" not in objects and b"BI\n" not in objects
    assert objects.count(b"/Type /Page\n") == 1
    (box,) = set(re.findall(rb"/MediaBox \[0 0 (\S+) (\S+)\]", objects))
    points = 160 / 25.4 * 72
    assert [float(side) for side in box] == pytest.approx([points, points * figure["layout"]["height"] / WIDTH], abs=0.5)
    assert b"/FontFile" in objects or b"/Type3" in objects


PRINTED = {
    "maps": {"address": "?embed_dim=8&num_heads=2&seq_len=5"},
    "in another font": {"address": "?embed_dim=8&num_heads=2&seq_len=5", "font": "serif"},
    "what was measured": {"results": "look-both-ways", "view": "quality"},
}


@pytest.mark.parametrize("figure", PRINTED.values(), ids=PRINTED)
def test_the_letters_of_a_pdf_are_truetype_as_publishers_ask(browser, figure):
    objects = unpacked(made(Figure(out="figure.pdf", **figure), browser)[0])
    assert b"/CIDFontType2" in objects and b"/Type3" not in objects


def test_lines_of_a_small_pdf_keep_their_thickness(browser, trace):
    alone = browser.picture(spec(trace, View(arrangement="one"), width=WIDTH), "pdf", size=(60, "mm"))
    assert b"/LW 3\n" in unpacked(alone)  # px, of the frame


def test_a_pdf_has_crossed_hatches_as_lines_too(browser):
    figure = spec(synthetic(replace(SETTINGS, padding_side="left")), View(), width=WIDTH)  # nothing left for the first query
    assert "x" in {pattern["shape"] for trace in figure["data"] if (pattern := trace.get("fillpattern"))}
    assert b"/Subtype /Image" not in unpacked(browser.picture(figure, "pdf"))


def test_it_draws_where_an_event_loop_runs(browser, figure, svg):
    async def notebook():
        return browser.picture(figure, "svg")

    with ThreadPoolExecutor(1) as thread:  # where none runs yet
        assert thread.submit(asyncio.run, notebook()).result() == svg


def test_too_many_cells_for_a_vector_are_refused_with_what_to_do(browser):
    many = synthetic(Settings(embed_dim=4, num_heads=1, batch_size=1, seq_len=210, padding=()))
    figure = spec(many, View(arrangement="one"), width=WIDTH)
    with pytest.raises(Wrong, match=r"holds no 44,100 cells, 40,000 at most: choose fewer heads, .* PNG at 4×"):
        browser.picture(figure, "svg")
    assert browser.picture(figure, "png").startswith(b"\x89PNG")


def test_a_png_that_no_memory_holds_is_refused(browser, figure):
    with pytest.raises(Wrong, match=r"100,000,000 in all: choose a smaller scale or size, or SVG or PDF"):
        browser.picture(figure, "png", 4, (190, "in"))


@pytest.mark.parametrize(
    "wrong", [{"format": "gif"}, {"scale": 0}, {"size": (3, "cm")}, {"size": (0, "mm")}, {"size": (201, "in")}]
)
def test_wrong_wishes_are_refused_before_anything_starts(figure, wrong):
    with Browser() as browser, pytest.raises(Wrong):
        browser.picture(figure, **{"format": "pdf"} | wrong)


def test_without_playwright_it_says_what_to_install_and_what_works(figure, monkeypatch):
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    helps = r"pip install playwright.*apt-get install chromium.*HTML, CSV, NPZ and JSON"
    with Browser() as browser, pytest.raises(Wrong, match=helps):
        browser.picture(figure, "png")


def test_without_chromium_it_says_the_same(figure, monkeypatch, tmp_path):
    pytest.importorskip("playwright")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    with Browser() as browser, pytest.raises(Wrong, match=r"apt-get install chromium, elsewhere playwright install chromium"):
        browser.picture(figure, "pdf")


def png_size(png):
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def unpacked(pdf):
    """The PDF with its streams as they are before they are packed."""
    streams = [pdf[found.end() :] for found in re.finditer(rb"/FlateDecode[^>]*>>\s*stream\r?\n", pdf)]
    return pdf + b"".join(zlib.decompressobj().decompress(stream) for stream in streams)
