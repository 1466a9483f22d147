"""The Explore page in Chromium: from a change to the redrawn maps, in place against Streamlit's own chart, and against a bare page."""

import shutil
import statistics

from playwright.sync_api import sync_playwright

from tests.bench.clock import Row, milliseconds
from tests.bench.serving import serving
from tests.conftest import QUIET

TURNS = 12
METHOD = (
    "headless Chromium, 1440 × 900, 8 heads × 20²; from the key that makes the change to the frame with the new maps; A B A B"
)
WATCH = """() => {
    window.maps = () => [...document.querySelectorAll('.js-plotly-plot')].find((plot) => plot._fullData?.[0]?.type === 'heatmap');
    window.looks = () => JSON.stringify(Array.from(maps()?._fullData[0].z[0] ?? []));
    document.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter') return;
        const start = performance.now(), before = looks();
        window.taken = null;
        const look = () => {
            const now = looks();
            if (now === before || now === '[]') return requestAnimationFrame(look);
            requestAnimationFrame(() => (window.taken = performance.now() - start)); // the frame that shows them
        };
        look();
    }, true);
}"""


def rows():
    """Medians of the same change on each page in turn."""
    with serving() as live, serving("chart") as chart, serving("bare") as bare, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        ours, theirs, plain = (opened(browser, url) for url in (live, chart, bare))
        order = taken({"ours": (ours, reorder), "chart": (theirs, reorder)})
        seed = taken({"ours": (ours, reseed), "chart": (theirs, reseed), "bare": (plain, reseed)})
        browser.close()
    yield row("order of heads, in place against st.plotly_chart", order["ours"], order["chart"], "≤ 0.8×")
    yield row("seed, in place against st.plotly_chart", seed["ours"], seed["chart"], "< 1.0×")
    yield row("seed, this page against a bare one, both in place", seed["ours"], seed["bare"], "≤ 1.5×")


def row(what, ours, theirs, target):
    return Row(what, f"{ours / theirs:.2f}× ({milliseconds(ours)} against {milliseconds(theirs)})", target, METHOD)


def opened(browser, url):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"http://{url}")
    page.wait_for_function(f"({WATCH})() || maps()", timeout=60_000)
    page.wait_for_timeout(1500)  # everything that loads late
    return page


def taken(changes):
    """Median seconds of each change, made in turns; the first two turns do not count."""
    waits = {name: [] for name in changes}
    for turn in range(TURNS + 2):
        for name, (page, change) in changes.items():
            change(page, turn)
            page.wait_for_function("window.taken !== null", timeout=30_000)
            waits[name].append(page.evaluate("window.taken") / 1000)
            page.wait_for_timeout(300)  # what follows the picture
    return {name: statistics.median(all_waits[2:]) for name, all_waits in waits.items()}


def reseed(page, turn):
    field = page.locator(".st-key-seed input")
    field.fill(str(100 + turn))
    field.press("Enter")


def reorder(page, turn):
    """Between the order by difference from the average and that by number."""
    field = page.locator(".st-key-view_order input")
    field.click()
    field.press("ArrowDown" if turn % 2 == 0 else "ArrowUp")
    field.press("Enter")
