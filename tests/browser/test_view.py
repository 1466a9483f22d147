"""How the picture is shown, in a real browser: the row above it, what opens from it."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from mha_viz import View, synthetic
from tests.browser.person import eventually
from tests.browser.test_explore import follow, picture_is


def choice(person, name, label):
    """Click one of a few choices in the toolbar, or in a panel that has opened from it."""
    person.widget(f"view_{name}").get_by_text(label, exact=True).first.click()


@contextmanager
def opened(person, name):
    """While it is open: a panel of the toolbar."""
    button = person.widget(f"popover_{name}").get_by_role("button").first
    button.click()
    yield
    button.click()


def layout(person, name):
    return person.page.evaluate(f"document.querySelector('.mha-maps').layout.{name}")


def heads(person):
    return [tile["head"] for tile in person.meta()["tiles"]]


def test_arrangements(person):
    settings = follow(person, order="index")
    assert heads(person) == [*range(8), 0, None]  # the strip, its first head, the average
    choice(person, "arrangement", "all")
    eventually(lambda: heads(person) == [*range(8), None])
    choice(person, "arrangement", "one")
    eventually(lambda: len(heads(person)) == 1)
    eventually(lambda: person.query() == {"seed": str(settings.seed), "order": "index", "arrangement": "one"})
    choice(person, "arrangement", "pair")
    eventually(picture_is, person, settings, View(order="index"))


def test_lines_and_back(person):
    settings = follow(person)
    choice(person, "picture", "lines")
    eventually(
        lambda: person.page.evaluate("document.querySelector('.mha-maps').data.every(trace => trace.type !== 'heatmap')")
    )
    eventually(lambda: person.query() == {"seed": str(settings.seed), "picture": "lines"})
    choice(person, "picture", "maps")
    eventually(picture_is, person, settings)


def test_a_subset_of_heads(person):
    follow(person, order="index")
    with opened(person, "heads"):
        for head in ("0", "2", "5"):  # each is let go
            choice(person, "heads", head)
            eventually(lambda head=head: int(head) not in heads(person)[:-2])
        assert heads(person)[:-2] == [1, 3, 4, 6, 7]
        eventually(lambda: person.query().get("heads") == "1,3,4,6,7")
        person.page.get_by_role("button", name="all 8 heads", exact=True).click()
        eventually(lambda: heads(person)[:-2] == list(range(8)))


def test_scales_limits_and_colours(person):
    settings = follow(person)
    ink = layout(person, "coloraxis.colorscale")
    with opened(person, "scale"):
        person.type("view_limits", "0, 0.5")
        eventually(lambda: layout(person, "coloraxis.cmax") == 0.5)
        person.type("view_limits", "1, 0")
        person.sees("[data-testid=stAlert]", "must be two numbers, 0 or more, the lower first")
        assert layout(person, "coloraxis.cmax") == 0.5
        person.type("view_limits", "")
        eventually(lambda: layout(person, "coloraxis.cmax") != 0.5)
        eventually(lambda: person.page.get_by_test_id("stAlert").count() == 0)
        for label, spelled in (("logarithmic", "log"), ("each row to its own maximum", "row")):
            choice(person, "scale", label)
            eventually(lambda spelled=spelled: person.query().get("scale") == spelled)
        assert person.tiles().shape == (10, 20, 20)
        person.pick("view_colors", "Viridis")
        eventually(lambda: layout(person, "coloraxis.colorscale") != ink)
        eventually(lambda: person.query() == {"seed": str(settings.seed), "scale": "row", "colors": "viridis"})


def test_a_against_b(person):
    settings = follow(person)
    a = synthetic(settings)
    person.page.get_by_role("button", name="Pin as A", exact=True).click()
    person.page.get_by_role("button", name="Unpin A", exact=True).wait_for()
    person.type("padding", "9")
    b = synthetic(replace(settings, padding=(9,)))

    def beside_each_other():
        shown = {
            tile["source"]: (tile["head"], drawn) for tile, drawn in zip(person.meta()["tiles"], person.tiles(), strict=True)
        }
        head, change = shown["difference"]
        np.testing.assert_allclose(change, b.weights[0, head] - a.weights[0, head], atol=1e-7)
        np.testing.assert_array_equal(shown["a"][1], a.weights[0, head])
        np.testing.assert_array_equal(shown["b"][1], b.weights[0, head])

    eventually(beside_each_other)
    person.page.get_by_role("button", name="Unpin A", exact=True).click()
    eventually(picture_is, person, replace(settings, padding=(9,)))


def test_one_number_opened(person):
    settings = follow(person, head=4, cell=(6, 0))
    weight = f"{synthetic(settings).weights[0, 4, 6, 0]:.6f}"
    person.click("view_opened")
    person.sees(".derivation", "softmax")
    assert weight in person.text(".derivation") and weight in person.text(".chosen")
    person.click_cell(4, 3, 3)
    person.sees(".derivation", "query 3")
    person.click("view_opened")
    eventually(lambda: person.page.locator(".derivation").count() == 0)


def test_reset_and_escape(person):
    settings = follow(person, head=2, cell=(6, 9), order="index", colors="grey")
    person.page.locator(".mha-maps").focus()
    person.page.keyboard.press("Escape")
    eventually(lambda: "cell" not in person.query())
    person.page.get_by_role("button", name="Reset view", exact=True).click()
    eventually(lambda: person.query() == {"seed": str(settings.seed)})
    eventually(picture_is, person, settings)


def test_the_wrong_layout_is_tried(person):
    settings = follow(person, batch_size=4, seq_len=4, padding=())
    person.page.get_by_role("button", name="Wrong layout?").click()
    dialog = person.page.get_by_role("dialog")
    person.sees("[role=dialog]", "N = L: the shapes are the same and give nothing away")
    assert "leak" in dialog.inner_text()
    person.page.keyboard.press("Escape")
    eventually(lambda: dialog.count() == 0)
    eventually(picture_is, person, settings)
