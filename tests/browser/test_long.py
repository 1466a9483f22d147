"""A sequence too long for whole maps, in a real browser: zooming into a pooled map brings every weight of that part into sight."""

import pytest

from tests.browser.person import IDLE, eventually

pytestmark = pytest.mark.browser
MAPS = "document.querySelector('.st-key-picture .mha-maps')"
TITLES = f"{MAPS}.layout.annotations.map(one => one.text).join(' ')"


def drag(page, size):
    """Draw a square of so many px in the middle of the last large map."""
    axis = f"{MAPS}._fullLayout.xaxis3"
    box = page.locator(".st-key-picture .mha-maps").bounding_box()
    down = f"{MAPS}._fullLayout.yaxis3"
    x = box["x"] + page.evaluate(f"{axis}._offset + {axis}._length / 3")
    y = box["y"] + page.evaluate(f"{down}._offset + {down}._length / 2")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + size, y + size, steps=4)
    page.mouse.up()


def test_zooming_brings_every_weight_into_sight_and_leads_back(person):
    page = person.open(seq_len=5632, num_heads=4, batch_size=1, padding="0", embed_dim=32).page
    eventually(lambda: "average of 4 heads" in page.evaluate(TITLES))
    assert "pooled, max of 22 × 22: queries 0–5,631" in page.evaluate(TITLES)
    drag(page, 90)
    eventually(lambda: "rows" in person.query())
    rows = [int(end) for end in person.query()["rows"].split(",")]
    assert rows[1] - rows[0] > 256
    eventually(lambda: f"queries {rows[0]:,}–{rows[1] - 1:,}" in page.evaluate(TITLES))
    assert "pooled, max of" in page.evaluate(TITLES)
    drag(page, 24)
    eventually(
        lambda: "exact: queries" in page.evaluate(TITLES) and page.locator(IDLE).count()
    )  # the row of its progress has gone
    closer = [int(end) for end in person.query()["rows"].split(",")]
    assert rows[0] <= closer[0] < closer[1] <= rows[1] and closer[1] - closer[0] <= 256
    high, low = page.evaluate(f"{MAPS}._fullLayout.yaxis3.range")
    assert (low, high) == (-0.5, closer[1] - closer[0] - 0.5)  # the figure of this part is not zoomed itself
    box = page.locator(".st-key-picture .mha-maps").bounding_box()
    corner = [page.evaluate(f"{MAPS}._fullLayout.{axis}axis2._offset") + 30 for axis in "xy"]
    page.mouse.click(box["x"] + corner[0], box["y"] + corner[1])
    eventually(lambda: "cell" in person.query())
    query = int(person.query()["cell"].split(",")[0])
    assert closer[0] <= query < closer[1]
    page.get_by_role("button", name="Whole map").click()
    eventually(lambda: "rows" not in person.query() and "queries 0–5,631" in page.evaluate(TITLES))
    eventually(lambda: page.get_by_text("Drag over a large map to look closer").count() == 1)
    assert page.get_by_role("button", name="Whole map").count() == 0
    person.saw_nothing_wrong()
