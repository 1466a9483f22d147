"""What is saved is what is on screen: its pixels, from the page itself and from a browser without a window, and its numbers."""

import csv
import io
import shlex
from dataclasses import asdict

import numpy as np
import pytest
from PIL import Image

from mha_viz import View, synthetic
from mha_viz.__main__ import main
from mha_viz.export.browser import Browser
from mha_viz.figures.heads import spec
from tests.browser.person import IDLE, eventually
from tests.browser.test_explore import follow

pytestmark = pytest.mark.browser
VIEW = View(head=4, cell=(10, 3), colors="viridis", scale="log")
MASKED = {"padding": (3, 0, 0), "causal": True}
SMALL = {"embed_dim": 16, "num_heads": 4, "seq_len": 6, "padding": 1}
ON_TOP = """said => {
    const { x, y, width, height } = said.getBoundingClientRect();
    return document.elementFromPoint(x + width / 2, y + height / 2) === said;
}"""
ALONE = "picture => Object.assign(picture.style, { position: 'fixed', inset: '0 auto auto 0', zIndex: 1e6 })"


@pytest.fixture
def picture(person):
    """The settings of a picture on screen in a view that is not the default, and its spec."""
    changed = {name: value for name, value in asdict(VIEW).items() if value != getattr(View(), name)}
    settings = follow(person, **MASKED, **changed)
    person.page.mouse.move(1, 1)
    width = person.page.evaluate("document.querySelector('.mha-maps').layout.width")
    return settings, spec(synthetic(settings), VIEW, width=width)


def test_a_picture_that_is_made_without_the_page_has_its_pixels(person, picture):
    figure = picture[1]
    size = {name: figure["layout"][name] for name in ("width", "height")}
    with Browser() as browser:
        png, svg = (browser.picture(figure, format) for format in ("png", "svg"))
    with person.page.context.new_page() as page:
        page.set_content(f"<body style='margin: 0'>{svg.decode()}")
        page.evaluate("document.fonts.ready.then(() => null)")
        drawn = page.screenshot(clip={"x": 0, "y": 0, **size})
    person.page.locator(".mha-live").evaluate(ALONE)

    def all_agree():
        seen = person.page.screenshot(clip={"x": 0, "y": 0, **size})
        agree(png, seen)
        agree(drawn, seen)

    eventually(all_agree)
    person.page.goto("about:blank")


def test_the_page_saves_the_same_picture_and_its_numbers(person, picture):
    settings, figure = picture
    with Browser() as browser:
        agree(saved(person, "save_now"), browser.picture(figure, "png", 2))
    weights = synthetic(settings).weights
    lines = {
        (line["head"], line["query"], line["key"]): float(line["weight"])
        for line in csv.DictReader(io.StringIO(saved(person, "save_csv").decode()))
    }
    assert lines["3", "4", "2"] == pytest.approx(weights[0, 3, 4, 2], rel=1e-6) and len(lines) == 9 * 20**2
    person.page.keyboard.press("Escape")


def test_the_command_that_a_page_gives_makes_the_very_picture_that_it_saves(person, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    person.go(**SMALL, step="softmax")
    person.page.get_by_role("link", name="Step by step").click()
    person.page.wait_for_selector(f"{IDLE} .step-head")
    png = saved(person, "save_now")
    person.sees(".mha-saver", "Saved ")
    person.pick("save_paste", "command")
    person.sees("[data-testid=stPopoverBody]", "python -m mha_viz export")
    command = shlex.split(person.text("[data-testid=stPopoverBody] code"))
    assert main(command[3:]) == 0
    agree(png, (tmp_path / command[-1]).read_bytes())
    person.page.keyboard.press("Escape")


def test_what_cannot_be_saved_is_said_above_all_that_is_open(person, look):
    look(390, 844)
    person.open(seq_len=150, batch_size=1)  # anew: in a window that is narrowed the sidebar closes over what is pressed next
    person.widget("popover_save").get_by_role("button").first.click()
    person.click("save_format", "SVG")
    eventually(lambda: "svg" in person.widget("save_now").inner_text())
    person.widget("save_now").get_by_role("button").click()
    said = person.page.get_by_text("Not saved: SVG holds no")
    eventually(lambda: said.count() == 1)
    assert said.evaluate(ON_TOP)
    person.page.keyboard.press("Escape")
    eventually(
        lambda: said.bounding_box()["y"] > person.page.locator(".mha-maps").first.bounding_box()["y"]
    )  # below the picture


def saved(person, key):
    """The file that this button saves, in the popover that opens for it."""
    button = person.widget(key).get_by_role("button")
    if not button.is_visible():
        person.widget("popover_save").get_by_role("button").first.click()
    with person.page.expect_download() as download:
        button.click()
    return download.value.path().read_bytes()


def agree(one, other):
    """Every pixel, words and marks included, to a level or two of 255, by which blends are rounded up or down."""
    one, other = (
        np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int) for png in (one, other)
    )  # [height, width, 3]
    assert one.shape == other.shape
    assert np.abs(one - other).max() <= 2
