"""The live picture in a real browser: it stays in place, keeps its zoom, names what is pointed at and reports what is chosen."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError

from mha_viz.core.decimals import prose
from tests.components.visit import go, wait_until_visited

PAGE = Path(__file__).with_name("page.py")
AT = """(plot, [tile, query, key]) => {
    const { axes: [x, y], x0, y0 } = plot.layout.meta.tiles[tile], box = plot.getBoundingClientRect();
    const axis = (id) => plot._fullLayout[id[0] + "axis" + id.slice(1)];
    return [box.left + axis(x)._offset + axis(x).l2p(x0 + key), box.top + axis(y)._offset + axis(y).l2p(y0 + query)];
}"""
RANGES = "plot => ['xaxis2', 'yaxis2', 'xaxis3', 'yaxis3', 'xaxis4', 'yaxis5'].map((axis) => plot._fullLayout[axis].range)"


@pytest.fixture(scope="module")
def browser(chromium):
    """One context, so that the page's scripts are fetched once."""
    with chromium.new_context() as context:
        yield context


@pytest.fixture(scope="module")
def window(browser):
    return browser.new_page()


@pytest.fixture
def live(window, serve):
    """``live(**case)`` visits the page with a case and waits for its picture."""
    errors = []

    def note(error):
        errors.append(str(error))

    window.on("pageerror", note)

    def visit(width=1280, height=900, **case):
        window.set_viewport_size({"width": width, "height": height})
        go(window, serve(PAGE), case)
        return window

    yield visit
    window.remove_listener("pageerror", note)
    assert not errors


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


def test_the_browser_keeps_a_picture_through_many_changes(browser, serve):
    """One that it drops while it is told that this one comes again ends its connection for good: see .streamlit/config.toml."""
    page, frames = browser.new_page(), []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(len(frame))))
    go(page, serve(PAGE), {"queries": 20})
    for seed in range(1, 6):
        reseed(page, seed)
    assert max(frames) > 10_000
    frames.clear()
    reseed(page, 0)
    assert max(frames) < 10_000, "its name alone"
    page.close()


BARS = """plot => [...plot.querySelectorAll(".colorbar")].map((bar) => {
    const box = plot.getBoundingClientRect(), fill = bar.querySelector(".cbfills").getBoundingClientRect();
    return {
        place: [fill.left - box.left, fill.top - box.top, fill.right - box.left, fill.bottom - box.top].map(Math.round),
        texts: [...bar.querySelectorAll(".cbaxis text, .cbtitle text")].map((text) => text.textContent),
    };
})"""


@pytest.mark.parametrize("case", [{"queries": 8}, {"queries": 14, "scale": "log"}, {"queries": 5, "compare": 1}])
def test_the_colour_bar_is_in_the_picture_at_every_width(live, case):
    page = live(height=1400, **case)
    for width in (390, 600, 1280):
        page.set_viewport_size({"width": width, "height": 1400})
        page.wait_for_function(
            "() => { const maps = document.querySelector('.mha-maps'), room = maps.parentElement.clientWidth;"
            " return maps._fullLayout.width === Math.max(320, Math.floor(room / 8) * 8); }"
        )
        high, wide = maps(page).evaluate("plot => [plot._fullLayout.height, plot._fullLayout.width]")
        bars = maps(page).evaluate(BARS)
        assert len(bars) == (2 if "compare" in case else 1)
        for bar in bars:
            left, top, right, bottom = bar["place"]
            assert 0 <= left < right <= wide and 0 <= top < bottom <= high, (width, bar)
            assert max(right - left, bottom - top) >= 100 and len({*bar["texts"]}) == len(bar["texts"]) >= 3, (width, bar)


def test_it_has_a_name_and_answers_keys(live):
    page = live(heads=3, queries=5)
    picture = page.get_by_role("application", name="Attention maps of all 3 heads, 5 queries by 5 keys")
    assert picture.get_attribute("aria-roledescription") == "attention maps"
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
    assert page.get_by_role("application").count() == 1
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


def pressed(page):
    return page.get_by_text(re.compile("^pressed: ")).text_content()


def test_clicks_that_are_quicker_than_the_server_all_arrive_once_and_in_order(live):
    page = live(heads=2, queries=5, busy=300)
    cells = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (0, 4)]
    where = [maps(page).evaluate(AT, [2, *cell]) for cell in cells]
    for x, y in where:
        page.mouse.click(x, y)
    page.wait_for_function("text => document.body.innerText.includes(text)", arg=f"pressed: {cells}")
    wait_until_chosen(page, f"head {maps(page).evaluate('plot => plot.layout.meta.chosen.head')} query 0 key 4")
    click(page, 3, 2, 1)
    page.wait_for_function("text => document.body.innerText.includes(text)", arg=f"pressed: {[*cells, (2, 1)]}")


def test_a_choice_that_is_overtaken_by_another_visit_breaks_nothing(live):
    page = live(heads=2, queries=5)
    maps(page).evaluate("""plot => {
        history.pushState({}, "", "?visit=overtaking&heads=2&queries=5");
        window.dispatchEvent(new PopStateEvent("popstate"));
        for (const key of ["ArrowDown", "ArrowUp", "Enter"]) plot.dispatchEvent(new KeyboardEvent("keydown", { key }));
    }""")
    wait_until_visited(page, "overtaking")
    page.wait_for_timeout(300)  # in which the choice is heard
    assert maps(page).is_visible() and page.locator("[data-testid=stException]").count() == 0


def test_keys_move_and_press_only_where_enter_or_space_is_struck(live):
    page = live(heads=2, queries=5)
    click(page, 2, 2, 2)
    wait_until_chosen(page, f"head {maps(page).evaluate('plot => plot.layout.meta.tiles[2].head')} query 2 key 2")
    maps(page).focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("query 2 key 3").wait_for()
    assert pressed(page) == "pressed: [(2, 2)]"
    page.keyboard.press("Enter")
    page.get_by_text("pressed: [(2, 2), (2, 3)]", exact=True).wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    page.get_by_text("pressed: [(2, 2), (2, 3), (3, 3)]", exact=True).wait_for()


def test_it_turns_dark_with_the_page(live):
    page = live(heads=2, queries=5, theme="system")
    paper = "plot => plot._fullLayout.paper_bgcolor"
    light = maps(page).evaluate(paper)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("light => document.querySelector('.mha-maps')._fullLayout.paper_bgcolor !== light", arg=light)
    page.emulate_media(color_scheme="light")
    page.wait_for_function("light => document.querySelector('.mha-maps')._fullLayout.paper_bgcolor === light", arg=light)


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


def test_another_figure_than_that_on_screen_is_saved_in_its_size(live):
    page = live(queries=8)
    with page.expect_download() as download:
        page.get_by_role("button", name="other", exact=True).click()
    saved = Path(download.value.path()).read_text("utf-8")
    assert re.search(r'<svg[^>]* width="100mm" height="[\d.]+mm"[^>]* viewBox="0 0 800 ', saved)
    assert saved.count('class="cells"') == 1  # one head
    assert maps(page).locator("image").count() == 6  # all, and two large
    assert maps(page).evaluate("plot => plot._fullLayout.width") != 800


def test_what_cannot_be_saved_is_said_below_the_picture(live):
    page = live(queries=8)
    page.get_by_role("button", name="huge", exact=True).click()
    said = page.get_by_text("Not saved: PNG holds no 76,800 × ")
    said.wait_for()
    assert said.bounding_box()["height"] > 10 and "choose a smaller scale or size" in said.inner_text()
    click(page, 4, 2, 6)
    said.wait_for(state="detached")


def test_in_a_saved_file_no_words_of_the_legend_touch(live, browser):
    """The page's own font is in it, for which the words are laid out."""
    page = live(queries=6, causal=1, undefined=3)
    with page.expect_download() as download:
        page.get_by_role("button", name="svg", exact=True).click()
    elsewhere = browser.new_page()
    elsewhere.set_content(Path(download.value.path()).read_text("utf-8"))
    boxes = elsewhere.evaluate("""() => [...document.querySelectorAll(".legend .traces")].map((entry) =>
        [".legendfill path", ".legendtext"].map((part) => {
            const { left, right } = entry.querySelector(part).getBoundingClientRect();
            return [left, right];
        })
    ).flat()""")
    elsewhere.close()
    assert len(boxes) == 4
    assert all(right + 4 <= left for (_, right), (left, _) in pairwise(boxes)), boxes


def png_size(content):
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(content[16:20], "big")


def svg_size(content):
    return float(re.search(r'<svg[^>]* width="([\d.]+)"', content.decode())[1])


LABEL = """(plot, tile) => {
    const { label: [x, y, width, height] } = plot.layout.meta.tiles[tile], canvas = document.querySelector(".mha-marks");
    const ratio = canvas.width / plot.layout.width;
    const { data } = canvas.getContext("2d").getImageData(x * ratio, y * ratio, width * ratio, height * ratio);
    const across = Math.round(width * ratio), tone = (at) => (data[at + 3] ? (data[at] < 80 ? 0 : data[at] < 245 ? 1 : -1) : -1);
    let counts = [0, 0]; // dark and grey px of the longest run in a row: a bar, letters are shorter
    for (let row = 0; row < data.length / 4 / across; row++) {
        let run = [0, 0];
        for (let i = 0; i < across; i++) {
            const of = tone(4 * (row * across + i));
            if (of < 0) run = [0, 0]; else run[of]++;
            const longer = run[0] + run[1] - counts[0] - counts[1];
            if (longer > 0 || (longer === 0 && run[0] > counts[0])) counts = [...run]; // its upper and lower edge are all grey
        }
    }
    return counts;
}"""


def test_each_label_has_its_heads_value_as_a_bar_while_one_points(live):
    page = live(heads=3, queries=5)
    assert maps(page).evaluate(LABEL, 0) == [0, 0]
    point(page, 4, 3, 2)  # in the average's map
    page.locator(".mha-tip").wait_for()
    largest = maps(page).evaluate("plot => plot.layout.meta.largest.weight")
    for tile in range(5):
        dark, grey = maps(page).evaluate(LABEL, tile)
        value = maps(page).evaluate("(plot, tile) => plot._fullData[tile].z[3][2]", tile)
        assert dark / (dark + grey) == pytest.approx(value / largest, abs=0.12), tile
    page.mouse.move(5, 5)
    page.locator(".mha-tip").wait_for(state="hidden")
    assert maps(page).evaluate(LABEL, 0) == [0, 0]


def test_row_and_column_light_up_on_both_axes_and_follow_the_zoom(live):
    page = live(heads=2, queries=8)
    lit = """(plot, [tile, query, key]) => {
        const { axes: [x, y] } = plot.layout.meta.tiles[tile], canvas = document.querySelector(".mha-marks");
        const axis = (id) => plot._fullLayout[id[0] + "axis" + id.slice(1)], ratio = canvas.width / plot.layout.width;
        const level = (left, top) => [...canvas.getContext("2d").getImageData(left * ratio, top * ratio, 1, 1).data][3];
        const across = axis(x)._offset + axis(x).l2p(key), down = axis(y)._offset + axis(y).l2p(query);
        return [level(axis(x)._offset - 7, down), level(across, axis(y)._offset - 12)].map((alpha) => alpha > 0);
    }"""
    point(page, 2, 3, 5)
    page.locator(".mha-tip").wait_for()
    for tile in (2, 3):
        assert maps(page).evaluate(lit, [tile, 3, 5]) == [True, True]
        assert maps(page).evaluate(lit, [tile, 6, 1]) == [False, False]
    drag(page, (3, 1, 1), (3, 5, 6))
    page.get_by_role("button", name="Reset zoom").wait_for()
    point(page, 3, 4, 4)
    page.wait_for_function("document.querySelector('.mha-tip').innerText.includes('query 4')")
    assert maps(page).evaluate(lit, [2, 4, 4]) == [True, True]


def test_tab_walks_the_heads_and_leaves_at_the_last(live):
    page = live(heads=3, queries=5)
    order = maps(page).evaluate("plot => plot.layout.meta.order")
    maps(page).focus()
    said = page.locator(".mha-unseen[role=status]")
    for head in order[1:]:
        page.keyboard.press("Tab")
        assert said.text_content().startswith(f"head {head},")
    wait_until_chosen(page, said_cell(page, order[2]))
    page.keyboard.press("Shift+Tab")
    wait_until_chosen(page, said_cell(page, order[1]))
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert not maps(page).evaluate("plot => plot === document.activeElement")


def said_cell(page, head):
    chosen = maps(page).evaluate("plot => plot.layout.meta.chosen")
    return f"head {head} query {chosen['query']} key {chosen['key']}"


def test_one_head_alone_is_followed_by_the_next(live):
    page = live(heads=3, queries=5, arrangement="one")
    order = maps(page).evaluate("plot => plot.layout.meta.order")
    maps(page).focus()
    page.keyboard.press("Tab")
    page.wait_for_function("name => document.querySelector('.mha-maps')._fullData[0].name === name", arg=f"head {order[1]}")
    page.keyboard.press("Shift+Tab")
    page.wait_for_function("name => document.querySelector('.mha-maps')._fullData[0].name === name", arg=f"head {order[0]}")


def test_a_click_among_all_heads_chooses_one(live):
    page = live(height=1600, heads=3, queries=5, arrangement="all")
    order = maps(page).evaluate("plot => plot.layout.meta.order")
    click(page, 2, 4, 1)
    wait_until_chosen(page, f"head {order[2]} query 4 key 1")
    click(page, 3, 0, 3)
    wait_until_chosen(page, "head None query 0 key 3")


def test_a_pooled_tile_says_its_block_and_opens_its_head(live):
    page = live(heads=12, queries=128)
    order = maps(page).evaluate("plot => plot.layout.meta.order")
    rows = maps(page).evaluate("plot => plot._fullData[3].z.length")
    assert rows < 128
    point(page, 3, 50, 70)
    page.wait_for_function("document.querySelector('.mha-tip').innerText.includes('largest weight')")
    tip, value = (
        page.locator(".mha-tip").inner_text(),
        maps(page).evaluate(
            "plot => { const { z } = plot._fullData[3], at = (i) => Math.floor((i * z.length) / 128); return z[at(50)][at(70)]; }"
        ),
    )
    assert f"largest weight {value:.6f}" in tip and re.search(r"queries \d+ “q\d+” … \d+ “q\d+” → keys", tip)
    click(page, 3, 50, 70)
    page.wait_for_function("head => document.querySelector('.mha-maps').layout.meta.chosen.head === head", arg=order[3])
    page.get_by_text(re.compile(rf"chosen: head {order[3]} query (49|50|51) key (69|70|71)$")).wait_for(timeout=10_000)


def test_of_a_difference_the_tip_says_what_changed_from_what_to_what(live):
    page = live(heads=2, queries=5, compare=1)
    point(page, 4, 1, 2)
    a, b, change = (maps(page).evaluate("(plot, tile) => plot._fullData[tile].z[1][2]", tile) for tile in (2, 3, 4))
    lines = [f"change {prose(change, '+.6f')}", f"A {a:.6f}, B {b:.6f}"]
    page.wait_for_function("lines => document.querySelector('.mha-tip').innerText.endsWith(lines)", arg="\n".join(lines))
    head = maps(page).evaluate("plot => plot.layout.meta.tiles[1].head")
    click(page, 1, 3, 3)
    wait_until_chosen(page, f"head {head} query 3 key 3")


def test_on_the_scale_of_rows_the_tip_says_the_weight(live):
    page = live(heads=2, queries=5, scale="row")
    point(page, 2, 1, 2)
    weight = maps(page).evaluate("plot => plot._fullData[2].customdata[1][2]")
    page.wait_for_function("text => document.querySelector('.mha-tip').innerText.endsWith(text)", arg=f"weight {weight:.6f}")


def test_tokens_are_shown_exactly_as_typed(live):
    page = live(heads=1, typed=1)
    tokens = maps(page).evaluate("plot => plot.layout.meta.keys")
    for i, token in enumerate(tokens):
        point(page, 1, i, i)
        said = f"{i} “{token}”" if token != str(i) else str(i)
        page.wait_for_function(
            "said => document.querySelector('.mha-tip').textContent.includes(`query ${said} → key ${said}`)", arg=said
        )
    assert page.locator(".mha-live img").count() == 0 and page.locator(".mha-live b").count() == 0


def test_a_picture_that_leaves_its_page_while_it_is_drawn_ends_in_no_error(live):
    page = live()
    page.evaluate("""() => {
        const leaving = document.querySelector(".mha-maps"), { react } = window.Plotly;
        const moment = () => new Promise((go) => setTimeout(go, 50));
        window.Plotly.react = async (plot, ...figure) => {
            const drawn = await react(plot, ...figure);
            if (plot !== leaving) return drawn;
            window.Plotly.react = react;
            for (window.underWay = true; plot.isConnected; ) await moment();
            await moment();
            setTimeout(() => (window.underWay = false));
        };
    }""")
    page.get_by_label("seed").fill("1")
    page.get_by_label("seed").press("Enter")
    page.wait_for_function("window.underWay")
    live()
    page.wait_for_function("!window.underWay")
