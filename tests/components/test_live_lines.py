"""Lines in the live picture, in a real browser: tokens and lines can be pointed at, clicked and walked by keys."""

from pathlib import Path

import pytest

from tests.components.visit import go

PAGE = Path(__file__).with_name("lines_page.py")
TOKEN = """(plot, [panel, side, i]) => {
    const { x, y, pitch } = plot.layout.meta.panels[panel][side], box = plot.getBoundingClientRect();
    return [box.left + x + (side === "query" ? -20 : 20), box.top + y + i * pitch];
}"""
LINE = """(plot, [panel, query, key, part]) => {
    const { query: q, key: k } = plot.layout.meta.panels[panel], box = plot.getBoundingClientRect();
    const [y0, y1] = [q.y + query * q.pitch, k.y + key * k.pitch];
    return [box.left + q.x + part * (k.x - q.x), box.top + y0 + part * (y1 - y0)];
}"""
LINES = "(plot, panel) => plot._fullData.filter((t) => t.meta === 'lines')[panel].customdata.map((line) => [...line])"


@pytest.fixture(scope="module")
def window(chromium):
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context.new_page()


@pytest.fixture
def live(window, serve):
    """``live(**case)`` visits the page with a case and waits for its picture."""
    errors = []

    def note(error):
        errors.append(str(error))

    window.on("pageerror", note)

    def visit(**case):
        go(window, serve(PAGE), case)
        return window

    yield visit
    window.remove_listener("pageerror", note)
    assert not errors


def plot(page):
    return page.locator(".mha-maps")


def wait_until_chosen(page, words):
    page.get_by_text(f"chosen: {words}", exact=True).wait_for(timeout=10_000)


def painted(page):
    """How many px of the canvas over the picture are not empty."""
    return page.locator(".mha-marks").evaluate(
        "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((a, i) => i % 4 === 3 && a > 0).length"
    )


def test_a_click_on_a_token_chooses_it_alone(live):
    page = live()
    page.mouse.click(*plot(page).evaluate(TOKEN, [1, "query", 4]))
    wait_until_chosen(page, "head None query 4 key None")
    page.wait_for_function("document.querySelector('.mha-maps').layout.meta.chosen.query === 4")
    page.mouse.click(*plot(page).evaluate(TOKEN, [0, "key", 2]))
    wait_until_chosen(page, "head None query None key 2")
    page.wait_for_function("document.querySelector('.mha-maps').layout.meta.chosen.key === 2")
    plot(page).focus()
    page.keyboard.press("Escape")
    wait_until_chosen(page, "let go")
    page.wait_for_function("document.querySelector('.mha-maps').layout.meta.chosen.key === null")


def test_a_click_on_a_line_chooses_its_cell(live):
    page = live()
    head = plot(page).evaluate("plot => plot.layout.meta.panels[0].head")
    page.mouse.click(*plot(page).evaluate(LINE, [0, 5, 0, 0.9]))
    wait_until_chosen(page, f"head {head} query 5 key 0")


def test_the_tip_names_the_token_and_its_strongest_lines_and_the_lines_are_lifted(live):
    page = live()
    assert painted(page) == 0
    page.mouse.move(*plot(page).evaluate(TOKEN, [0, "query", 3]))
    tip = page.locator(".mha-tip")
    tip.wait_for()
    name = f"head {plot(page).evaluate('plot => plot.layout.meta.panels[0].head')}"
    strongest = sorted((line for line in plot(page).evaluate(LINES, 0) if line[0] == 3), key=lambda line: -line[2])[:3]
    reads = [f"reads key {key:.0f} “w<{key:.0f}>”: {weight:.6f}" for _, key, weight, _ in strongest]
    assert tip.inner_text().split("\n") == [name, "query 3 “w<3>”", *reads]
    assert painted(page) > 1000
    page.mouse.move(5, 5)
    tip.wait_for(state="hidden")
    assert painted(page) == 0


def test_the_tip_names_a_line_exactly(live):
    page = live()
    weight = next(line[2] for line in plot(page).evaluate(LINES, 1) if line[:2] == [4, 1])
    page.mouse.move(*plot(page).evaluate(LINE, [1, 4, 1, 0.12]))
    lines = ["average of 4 heads", "query 4 “w<4>”", "key 1 “w<1>”", f"weight {weight:.6f}"]
    page.wait_for_function("lines => document.querySelector('.mha-tip').innerText === lines", arg="\n".join(lines))


def test_keys_walk_from_token_to_token_and_from_head_to_head(live):
    page = live(arrangement="all")
    page.get_by_role("application", name="Attention as lines from 6 queries on the left to 6 keys on the right").focus()
    page.keyboard.press("ArrowDown")
    wait_until_chosen(page, "head None query 1 key None")
    page.keyboard.press("ArrowRight")
    wait_until_chosen(page, "head None query None key 1")
    assert "is read by query" in page.locator(".mha-unseen[role=status]").text_content()
    page.wait_for_function("document.querySelector('.mha-maps').layout.meta.chosen.key === 1")
    heads = [panel["head"] for panel in plot(page).evaluate("plot => plot.layout.meta.panels")]
    chosen = plot(page).evaluate("plot => plot.layout.meta.chosen.head")
    page.keyboard.press("PageDown")
    wait_until_chosen(page, f"head {heads[(heads.index(chosen) + 1) % 4]} query None key 1")


def test_maps_take_the_place_of_lines_and_lines_that_of_maps(live):
    page = live()
    element = plot(page).element_handle()
    page.mouse.click(*plot(page).evaluate(TOKEN, [0, "key", 2]))
    wait_until_chosen(page, "head None query None key 2")
    page.get_by_text("maps", exact=True).click()
    page.wait_for_function("document.querySelector('.mha-maps').layout.meta.tiles")
    assert plot(page).evaluate("plot => plot.layout.meta.chosen.key") == 2
    page.get_by_text("maps", exact=True).click()
    page.wait_for_function("document.querySelector('.mha-maps').layout.meta.panels")
    assert element.evaluate("plot => plot.isConnected")
    page.mouse.click(*plot(page).evaluate(TOKEN, [0, "query", 5]))
    wait_until_chosen(page, "head None query 5 key None")
