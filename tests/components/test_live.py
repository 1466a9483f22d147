"""The live picture in a real browser: it stays in place, keeps its zoom, names what is pointed at and reports what is chosen."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError

PAGE = Path(__file__).with_name("page.py")
AT = """(plot, [tile, query, key]) => {
    const { axes: [x, y], x0, y0 } = plot.layout.meta.tiles[tile], box = plot.getBoundingClientRect();
    const axis = (id) => plot._fullLayout[id[0] + "axis" + id.slice(1)];
    return [box.left + axis(x)._offset + axis(x).l2p(x0 + key), box.top + axis(y)._offset + axis(y).l2p(y0 + query)];
}"""
RANGES = "plot => ['xaxis2', 'yaxis2', 'xaxis3', 'yaxis3', 'xaxis4', 'yaxis5'].map((axis) => plot._fullLayout[axis].range)"

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(chromium):
    """One context, so that the page's scripts are fetched once."""
    with chromium.new_context() as context:
        yield context


@pytest.fixture
def live(browser, serve):
    """``live(**case)`` opens the page with a case and waits for its picture."""
    pages = []

    def visit(width=1280, height=900, **case):
        page = browser.new_page()
        page.set_viewport_size({"width": width, "height": height})
        pages.append(page)
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(f"{serve(PAGE)}/?{'&'.join(f'{name}={value}' for name, value in case.items())}")
        page.wait_for_selector(".mha-maps .main-svg", timeout=60_000)
        page.wait_for_function("document.querySelector('.mha-maps')._fullLayout?.meta")
        return page

    yield visit
    for page in pages:
        page.close()
        assert not page.errors


def maps(page):
    return page.locator(".mha-maps")


def point(page, *cell):
    page.mouse.move(*maps(page).evaluate(AT, cell))


def click(page, *cell):
    page.mouse.click(*maps(page).evaluate(AT, cell))


def wait_until_chosen(page, words):
    page.get_by_text(f"chosen: {words}", exact=True).wait_for(timeout=10_000)


def drag(page, start, end):
    page.mouse.move(*maps(page).evaluate(AT, start))
    page.mouse.down()
    page.mouse.move(*maps(page).evaluate(AT, end), steps=4)
    page.mouse.up()


def reseed(page, seed):
    """Changes the numbers, and waits until they are drawn."""
    first = maps(page).evaluate("plot => plot._fullData[0].z[0][0]")
    page.get_by_label("seed").fill(str(seed))
    page.get_by_label("seed").press("Enter")
    page.wait_for_function("first => document.querySelector('.mha-maps')._fullData[0].z[0][0] !== first", arg=first)


@pytest.mark.parametrize(
    "case", [{"heads": 4, "queries": 5}, {"heads": 18, "queries": 20}, {"heads": 3, "queries": 4, "keys": 9}]
)
def test_the_tip_names_the_cell_under_the_pointer(live, case):
    page = live(**case)
    heads, L, S = case["heads"], case["queries"], case.get("keys", case["queries"])
    names = [f"head {tile['head']}" for tile in maps(page).evaluate("plot => plot.layout.meta.tiles")[:-1]]
    names.append(f"average of {heads} heads")
    for tile in (0, heads - 1, heads, heads + 1):
        for query, key in ((0, 0), (L - 1, S - 1), (L // 2, S // 3)):
            point(page, tile, query, key)
            value = maps(page).evaluate("(plot, [t, q, k]) => plot._fullData[t].z[q][k]", [tile, query, key])
            lines = [names[tile], f"query {query} “q{query}” → key {key} “k<{key}>”", f"weight {value:.6f}"]
            page.wait_for_function("lines => document.querySelector('.mha-tip').innerText === lines", arg="\n".join(lines))


def test_the_tip_says_why_a_cell_holds_no_weight(live):
    page = live(heads=2, queries=5, causal=1, undefined=3)
    for cell, last in (
        ((0, 0, 4), "masked: may not be read"),
        ((2, 3, 1), "undefined: no key left"),
        ((3, 1, 2), "masked: may not be read"),
    ):
        point(page, *cell)
        page.wait_for_function("last => document.querySelector('.mha-tip').innerText.endsWith(last)", arg=last)
    point(page, 0, 4, 0)
    page.wait_for_function("!document.querySelector('.mha-tip').innerText.includes('masked')")
    page.mouse.move(5, 5)
    page.locator(".mha-tip").wait_for(state="hidden")


def test_a_click_chooses_a_cell_in_any_map_masked_ones_as_well(live):
    page = live(heads=3, queries=5, causal=1, undefined=3)
    heads = [tile["head"] for tile in maps(page).evaluate("plot => plot.layout.meta.tiles")]
    click(page, 2, 4, 1)
    wait_until_chosen(page, f"head {heads[2]} query 4 key 1")
    page.wait_for_function("head => document.querySelector('.mha-maps').layout.meta.chosen.head === head", arg=heads[2])
    click(page, 3, 1, 3)  # masked, in the chosen head's map
    wait_until_chosen(page, f"head {heads[2]} query 1 key 3")
    click(page, 4, 3, 0)  # undefined, in the average's
    wait_until_chosen(page, "head None query 3 key 0")


def test_zoom_and_element_survive_an_update_and_a_choice(live):
    page = live(queries=8)
    plot = maps(page).element_handle()
    full = plot.evaluate(RANGES)
    drag(page, (5, 1, 1), (5, 5, 6))
    page.get_by_role("button", name="Reset zoom").wait_for()
    zoomed = plot.evaluate(RANGES)
    assert zoomed[0] == zoomed[2] == zoomed[4] and zoomed[1] == zoomed[3] == zoomed[5]  # both maps and their names
    assert zoomed[0][1] - zoomed[0][0] < 6
    reseed(page, 3)
    click(page, 4, 3, 3)
    page.get_by_text("query 3 key 3").wait_for()
    assert plot.evaluate("plot => plot.isConnected") and plot.evaluate(RANGES) == zoomed
    page.get_by_role("button", name="Reset zoom").click()
    page.wait_for_function("full => document.querySelector('.mha-maps')._fullLayout.xaxis2.range[0] === full", arg=full[0][0])
    assert plot.evaluate(RANGES) == full
    page.get_by_role("button", name="Reset zoom").wait_for(state="hidden")


def test_a_double_click_resets_the_zoom(live):
    page = live(queries=8)
    drag(page, (4, 1, 1), (4, 5, 6))
    page.get_by_role("button", name="Reset zoom").wait_for()
    page.mouse.dblclick(*maps(page).evaluate(AT, (4, 3, 3)))
    page.get_by_role("button", name="Reset zoom").wait_for(state="hidden")


def test_a_zoomed_axis_names_more_tokens(live):
    page = live(queries=64, heads=2)
    named = "plot => plot._fullLayout.yaxis4.tickvals"
    assert maps(page).evaluate(named)[:3] == [0, 5, 10]
    drag(page, (2, 20, 20), (2, 27, 27))
    page.wait_for_function("document.querySelector('.mha-maps')._fullLayout.yaxis4.tickvals[1] === 1")
    assert "q23" in page.locator(".mha-maps .y4tick").all_text_contents()


def test_no_frame_is_blank(live):
    page = live(queries=20)
    page.evaluate("""() => {
        window.blank = 0; window.frames_seen = 0;
        const watch = () => {
            window.frames_seen++;
            if (!document.querySelector(".mha-maps .heatmaplayer image, .mha-maps .hm image")) window.blank++;
            requestAnimationFrame(watch);
        };
        watch();
    }""")
    for seed in (1, 2, 3):
        reseed(page, seed)
    assert page.evaluate("window.frames_seen") > 5 and page.evaluate("window.blank") == 0


def test_it_is_drawn_as_wide_as_there_is_room_and_again_when_that_changes(live):
    page = live()
    for width in (1280, 390, 900):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            "() => { const maps = document.querySelector('.mha-maps'), room = maps.parentElement.clientWidth;"
            " return maps._fullLayout.width === Math.max(320, Math.floor(room / 8) * 8); }"
        )
        assert page.evaluate(
            "document.querySelector('.mha-live').scrollWidth <= document.querySelector('.mha-live').clientWidth"
        )


def test_it_has_a_name_and_answers_keys(live):
    page = live(heads=3, queries=5)
    picture = page.get_by_role("img", name="Attention maps of all 3 heads, 5 queries by 5 keys")
    picture.focus()
    chosen = maps(page).evaluate("plot => plot.layout.meta.chosen")
    order = [tile["head"] for tile in maps(page).evaluate("plot => plot.layout.meta.tiles")[:3]]
    right = chosen["key"] < 4
    page.keyboard.press("ArrowRight" if right else "ArrowLeft")
    moved = chosen["key"] + (1 if right else -1)
    wait_until_chosen(page, f"head {order[0]} query {chosen['query']} key {moved}")
    assert f"key {moved}" in page.locator(".mha-unseen[role=status]").text_content()
    page.keyboard.press("PageDown")
    wait_until_chosen(page, f"head {order[1]} query {chosen['query']} key {moved}")


def test_the_chart_that_brings_plotly_cannot_be_seen(live):
    page = live()
    assert page.locator("[class*=st-key-plotly-for-]").bounding_box() is None
    assert page.get_by_role("img", name="Attention maps").count() == 1
    assert not any(chart.is_visible() for chart in page.locator(".stPlotlyChart").all())


def test_a_finger_taps_a_cell_and_scrolls_the_page_over_the_picture(chromium, serve):
    with chromium.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 700}) as phone:
        page = phone.new_page()
        page.goto(f"{serve(PAGE)}/?heads=3&queries=5")
        page.wait_for_function("document.querySelector('.mha-maps')?._fullLayout?.width < 390", timeout=60_000)
        head = maps(page).evaluate("plot => plot.layout.meta.tiles[1].head")
        page.touchscreen.tap(*maps(page).evaluate(AT, [1, 4, 2]))
        wait_until_chosen(page, f"head {head} query 4 key 2")
        x, y = maps(page).evaluate(AT, [3, 2, 2])  # a cell of the large map
        touch = phone.new_cdp_session(page)
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for up in range(20, 200, 20):
            touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - up}]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop > 50")
        assert page.get_by_text(f"chosen: head {head} query 4 key 2", exact=True).is_visible()


def test_a_held_arrow_key_moves_at_once_and_is_reported_once(live):
    page = live(heads=2, queries=20)
    maps(page).focus()
    start = maps(page).evaluate("plot => plot.layout.meta.chosen")
    step, end = ("ArrowDown", start["query"] + 5) if start["query"] < 10 else ("ArrowUp", start["query"] - 5)
    for _ in range(5):
        page.keyboard.press(step)
    assert f"query {end}" in page.locator(".mha-unseen[role=status]").text_content()
    wait_until_chosen(page, f"head {start['head']} query {end} key {start['key']}")


def test_the_tip_follows_the_numbers_under_a_resting_pointer(live):
    page = live(heads=2, queries=5)
    point(page, 0, 1, 1)
    tip = page.locator(".mha-tip")
    tip.wait_for()
    before = tip.inner_text()
    page.get_by_label("seed").fill("5")
    page.get_by_label("seed").press("Enter")
    page.wait_for_function("before => document.querySelector('.mha-tip').innerText !== before", arg=before)
    head = maps(page).evaluate("plot => plot.layout.meta.tiles[0].head")
    value = maps(page).evaluate("plot => plot._fullData[0].z[1][1]")
    assert tip.inner_text() == f"head {head}\nquery 1 “q1” → key 1 “k<1>”\nweight {value:.6f}"


def test_escape_resets_the_zoom_first_and_then_lets_go_of_the_cell(live):
    page = live(queries=8)
    click(page, 4, 2, 6)
    page.get_by_text("query 2 key 6").wait_for()
    drag(page, (5, 1, 1), (5, 5, 6))
    page.get_by_role("button", name="Reset zoom").wait_for()
    maps(page).focus()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Reset zoom").wait_for(state="hidden")
    assert page.get_by_text("query 2 key 6").is_visible()
    page.keyboard.press("Escape")
    wait_until_chosen(page, "let go")


def test_it_is_saved_by_the_browser_as_it_is_on_screen(live):
    page = live(queries=8)
    width = maps(page).evaluate("plot => plot._fullLayout.width")
    drag(page, (4, 1, 1), (4, 5, 6))
    page.get_by_role("button", name="Reset zoom").wait_for()
    for format, read in (("png", png_size), ("svg", svg_size)):
        with page.expect_download() as download:
            page.get_by_role("button", name=format, exact=True).click()
        assert download.value.suggested_filename == f"maps of a test.{format}"
        content = Path(download.value.path()).read_bytes()
        assert read(content) == width * (2 if format == "png" else 1)
    names = re.findall(r">q(\d)<", content.decode())
    assert set(names) < set("01234567")  # zoomed in
    with pytest.raises(TimeoutError), page.expect_download(timeout=300):
        click(page, 4, 3, 3)  # another update saves nothing


def png_size(content):
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(content[16:20], "big")


def svg_size(content):
    return float(re.search(r'<svg[^>]* width="([\d.]+)"', content.decode())[1])
