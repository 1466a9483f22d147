"""In plain Plotly, as in a saved page or a notebook: pointing at a cell names its head, tokens and weight."""

import re
from contextlib import suppress

import pytest
from playwright.sync_api import TimeoutError
from plotly.offline import get_plotlyjs

from mha_viz import Settings, View, synthetic
from mha_viz.figures.compare import difference_spec
from mha_viz.figures.heads import spec
from mha_viz.figures.serial import to_json

WORDS = "<s> the the $5 <b>x</b>"
CASES = {
    "L = 5": Settings(embed_dim=16, num_heads=4, words=WORDS, padding=()),
    "L = 20, padded, causal": Settings(embed_dim=16, num_heads=4, batch_size=1, seq_len=20, padding=(3,), causal=True),
    "L = 7, S = 12": Settings(embed_dim=16, num_heads=4, batch_size=1, seq_len=7, source_len=12, padding=()),
    "rows of tiles": Settings(embed_dim=44, num_heads=22, batch_size=1, seq_len=11, padding=()),
}

AT = """([tile, query, key]) => {
    const plot = document.querySelector("#plot"), { axes: [x, y], x0, y0 } = plot.layout.meta.tiles[tile];
    const axis = (id) => plot._fullLayout[id[0] + "axis" + id.slice(1)], box = plot.getBoundingClientRect();
    return [box.left + axis(x)._offset + axis(x).l2p(x0 + key), box.top + axis(y)._offset + axis(y).l2p(y0 + query)];
}"""
HOVERED = """() => [...document.querySelectorAll("#plot .hoverlayer text")].map((text) =>
    text.querySelector("tspan") ? [...text.querySelectorAll("tspan.line")].map((line) => line.textContent) : [text.textContent]
).flat()"""


@pytest.fixture(scope="module")
def plotly(chromium):
    """``plotly(figure)`` draws a figure's dict and returns the page."""
    page = chromium.new_page(viewport={"width": 1200, "height": 900})
    page.set_content("<body style='margin: 0'><div id=plot></div>")
    page.add_script_tag(content=get_plotlyjs())

    def draw(figure):
        page.mouse.move(1190, 890)
        page.evaluate(f"() => Plotly.newPlot('plot', {to_json(figure)})")
        return page

    yield draw
    page.close()


def sampled(figure):
    """Cells of the first, a middle and the last tile of the strip, and of both large maps: corners, and one in between."""
    meta = figure["layout"]["meta"]
    L, S, tiles = len(meta["queries"]), len(meta["keys"]), len(meta["tiles"])
    for tile in sorted({0, (tiles - 2) // 2, tiles - 3, tiles - 2, tiles - 1}):
        for query, key in {(0, 0), (L - 1, S - 1), (L - 1, 0), (L // 2, S // 3)}:
            yield tile, query, key


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_hover_names_the_right_cell(plotly, settings):
    figure = spec(synthetic(settings), View(head=1))
    page, meta = plotly(figure), figure["layout"]["meta"]
    for tile, query, key in sampled(figure):
        page.mouse.move(*page.evaluate(AT, [tile, query, key]), steps=2)
        weight = figure["data"][tile]["z"][query, key]
        named = [(kind, i, meta[names][i]) for kind, names, i in (("query", "queries", query), ("key", "keys", key))]
        lines = [f"{kind} {i}" if text == str(i) else f"{kind} {i} “{text}”" for kind, i, text in named]
        head = meta["tiles"][tile]["head"]
        name = f"head {head}" if head is not None else f"average of {settings.num_heads} heads"
        expected = [name, *lines, f"weight {weight:.6f}"]
        with suppress(TimeoutError):  # hover follows a moment later
            page.wait_for_function(f"(lines) => ({HOVERED})().join() === lines", arg=",".join(expected), timeout=3000)
        assert page.evaluate(HOVERED) == expected, (tile, query, key)


def hovers(page, at, lines):
    """Points at a cell and waits for what hovering says."""
    page.mouse.move(1190, 890)
    page.mouse.move(*page.evaluate(AT, at), steps=2)
    with suppress(TimeoutError):
        page.wait_for_function(f"(lines) => ({HOVERED})().join() === lines", arg=",".join(lines), timeout=3000)
    assert page.evaluate(HOVERED) == lines


@pytest.mark.parametrize(("scale", "arrangement"), [("row", "pair"), ("log", "all"), ("percentile", "one")])
def test_hover_says_the_exact_weight_on_every_scale_and_in_every_arrangement(plotly, scale, arrangement):
    trace = synthetic(CASES["L = 7, S = 12"])
    page = plotly(spec(trace, View(scale=scale, arrangement=arrangement, head=1, order="index")))
    tile = {"pair": 4, "all": 1, "one": 0}[arrangement]
    hovers(page, [tile, 5, 9], ["head 1", "query 5", "key 9", f"weight {trace.weights[0, 1, 5, 9]:.6f}"])


def test_hover_over_a_pooled_tile_says_its_block_and_the_largest_weight_there(plotly):
    trace = synthetic(Settings(embed_dim=24, num_heads=12, batch_size=1, seq_len=128, padding=()))
    page = plotly(spec(trace, View(order="index")))
    page.mouse.move(*page.evaluate(AT, [2, 40.5, 90.5]), steps=2)
    page.wait_for_function(f"() => ({HOVERED})()[1]?.startsWith('queries')")
    name, *said = page.evaluate(HOVERED)
    (top, bottom), (left, right) = ([int(n) for n in re.findall(r"\d+", line)] for line in said[:2])
    assert name == "head 2" and abs(top - 40) <= 2 and abs(left - 90) <= 2  # a block is little more than a pixel
    assert (bottom - top, right - left) == (1, 1)
    assert said[2] == f"largest weight {trace.weights[0, 2, top : bottom + 1, left : right + 1].max():.6f}"
    hovers(page, [12, 41, 91], ["head 0", "query 41", "key 91", f"weight {trace.weights[0, 0, 41, 91]:.6f}"])


def test_hover_over_a_difference_says_the_change(plotly):
    a, b = (synthetic(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=5, padding=(), causal=c)) for c in (False, True))
    page = plotly(difference_spec(a, b, View(head=1)))
    change = b.weights[0, 1, 1, 0] - a.weights[0, 1, 1, 0]
    hovers(page, [4, 1, 0], ["B − A", "query 1", "key 0", f"change +{change:.6f}"])
    hovers(page, [2, 1, 0], ["A: head 1", "query 1", "key 0", f"weight {a.weights[0, 1, 1, 0]:.6f}"])


def test_a_logarithmic_scale_has_a_bar_of_its_own(plotly):
    page = plotly(spec(synthetic(CASES["L = 7, S = 12"]), View(scale="log")))
    assert page.locator("#plot .colorbar").count() == 1
    assert "weight, logarithmic" in page.locator("#plot .colorbar").text_content()


def test_hostile_tokens_are_texts(plotly):
    words = "<img/src=x/onerror=document.title='hit'> $\\frac{1}{2}$ <b>x</b> &lt; %{x}"
    page = plotly(spec(synthetic(Settings(embed_dim=8, num_heads=2, words=words, padding=())), View()))
    drawn = page.locator("#plot .xaxislayer-above text, #plot .overaxes-above text").all_text_contents()
    assert "<b>x</b>" in drawn and "&lt;" in drawn and "%{x}" in drawn
    assert page.locator("#plot img").count() == 0 and page.title() != "hit"
