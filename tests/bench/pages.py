"""Every page in Chromium: from navigation to its last picture, against bare pages that import torch and draw one figure."""

import shutil
import statistics

from playwright.sync_api import sync_playwright

from mha_viz.app.session import PAGES
from tests.bench.clock import Row
from tests.bench.serving import serving
from tests.conftest import QUIET

TURNS = 5
METHOD = "headless Chromium, 1440 × 900, warm server, warm cache; from navigation to the last change of a picture; A B A B"
LAST = {  # what stands for a picture where a page has none
    "validate": ".verdicts",
    "about": "[data-testid=stMain] h2",
    "pitfalls": "[data-testid=stCode]",
}
WATCH = """
window.last = 0;
const picture = '.js-plotly-plot, .verdicts, [data-testid=stMain] h2, [data-testid=stCode]';
const near = (node) => (node.nodeType === 1 ? node : node.parentElement)?.closest?.(picture) ?? node.querySelector?.(picture);
new MutationObserver((changes) => {
    const seen = changes.some(({ target, addedNodes }) => near(target) || [...addedNodes].some(near));
    if (seen) window.last = performance.now();
}).observe(document, { childList: true, subtree: true });
"""
QUIETLY = """(last) => document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
    && document.querySelector(last) && window.last && performance.now() - window.last > 1500"""


TITLES = PAGES | {"models": "Explore of a shipped model"}
BARE = {"bare": "Explore's picture", "one figure": "one heatmap of 20²"}  # variants: see variant.py


def rows():
    with serving("app") as app, serving("bare") as bare, serving("one figure") as plain, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        urls = {"bare": (bare, ""), "one figure": (plain, "")}
        urls |= {name: (app, "" if name == "explore" else name) for name in TITLES}
        contexts = {
            host: browser.new_context(viewport={"width": 1440, "height": 900}) for host in (app, bare, plain)
        }  # a cache each
        waits = {name: [] for name in urls}
        for turn in range(TURNS + 1):
            for name, (host, path) in urls.items():
                taken = opened(contexts[host], f"http://{host}/{path}", LAST.get(name, ".main-svg"))
                waits[name] += [taken] if turn else []  # the first fills the caches
        browser.close()
    taken = {name: statistics.median(found) for name, found in waits.items()}
    for name, title in TITLES.items():
        ratios = [f"{taken[name] / taken[bare]:.2f}× of {what} alone" for bare, what in BARE.items()]
        measured = f"{'; '.join(ratios)} ({taken[name] / 1000:.2f} s)"
        yield Row(f"page “{title}”, from navigation to its last picture", measured, "≤ 1.5×", METHOD)


def opened(context, url, last):
    """Milliseconds from navigation to the last change of a picture, one of which is ``last``."""
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(url)
    page.wait_for_function(QUIETLY, arg=last, timeout=60_000)
    taken = page.evaluate("window.last")
    page.close()
    return taken
