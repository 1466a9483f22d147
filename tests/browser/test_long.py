"""A sequence too long for whole maps, in a real browser: zooming into the pooled map brings the exact window there."""

import pytest

from tests.browser.person import eventually

pytestmark = pytest.mark.browser
RANGE = "document.querySelector('.st-key-long_head .mha-maps')._fullLayout.xaxis2.range"
TITLES = "document.querySelector('.st-key-long_window .mha-maps').layout.annotations.map(one => one.text).join(' ')"


def test_zooming_brings_the_exact_window_and_lasts(person):
    page = person.open(seq_len=5600, num_heads=4, batch_size=1, padding="0").page
    tiles = "document.querySelector('.st-key-long_heads .mha-maps').layout.meta.tiles.length"
    eventually(lambda: page.evaluate(tiles) == 4)
    box = page.locator(".st-key-long_head .mha-maps").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 24, y + 24, steps=4)
    page.mouse.up()
    eventually(lambda: "rows" in person.query())
    rows = person.query()["rows"].split(",")
    assert 0 < int(rows[1]) - int(rows[0]) <= 512
    eventually(lambda: f"exact, {rows[0]}–{int(rows[1]) - 1} × " in page.evaluate(TITLES))
    low, high = page.evaluate(RANGE)
    assert high - low < 40  # the new figure has not ended the zoom
    page.locator(".st-key-long_head").get_by_role("button", name="Reset zoom").click()
    eventually(lambda: "rows" not in person.query())
    person.saw_nothing_wrong()
