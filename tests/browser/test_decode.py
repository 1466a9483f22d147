"""The Decode page in a real browser: token by token with buttons, keys and pointer, and from page to page with what is set."""

import json

import numpy as np
import pytest

from mha_viz import Settings, synthetic
from mha_viz.analysis.decoding import lengths
from mha_viz.core.decode import decode
from tests.browser.person import IDLE, Person, eventually


class Decoder(Person):
    PATH = "decode"


@pytest.fixture
def decoding(usual_window, address):
    """Somebody at the Decode page, and the Settings that are shown there: its defaults with another seed."""
    person = Decoder(usual_window, address)
    settings = Settings(seed=person.go(), causal=True)
    eventually(shows, person, 10, settings)
    yield person, settings
    person.saw_nothing_wrong()


def panels(person):
    """name → [heads, columns] as drawn, NaN where nothing is."""
    script = """() => JSON.stringify(document.querySelector('.mha-maps')._fullData.filter(t => t.type === 'heatmap')
        .map(t => [t.name, Array.from(t.z, row => Array.from(row))]))"""
    return {name: np.array(z, np.float32) for name, z in json.loads(person.page.evaluate(script))}


def column(person, panel, key, row=0):
    """The window's px in the middle of a cell of a panel."""
    script = """([panel, key, row]) => {
        const plot = document.querySelector('.mha-maps'), axis = id => plot._fullLayout[`${id[0]}axis${id.slice(1)}`];
        const [x, y] = plot.layout.meta.panels[panel].axes, box = plot.getBoundingClientRect();
        return [box.left + axis(x)._offset + axis(x).l2p(key), box.top + axis(y)._offset + axis(y).l2p(row)];
    }"""
    return person.page.evaluate(script, [panel, key, row])


def shows(person, token, settings):
    trace = synthetic(settings)
    found = decode(trace.layer, trace.batch)
    drawn, (q, k, v) = panels(person), lengths(found)
    np.testing.assert_allclose(drawn["q"][:, token], q[:, token], rtol=1e-6)
    for name, values in (("k", k), ("v", v)):
        np.testing.assert_allclose(drawn[name][:, : token + 1], values[:, : token + 1], rtol=1e-6)
    assert np.isnan(drawn["k"][:, token + 1 :]).all()
    weights = found.steps[token].weights[0, :, 0]
    np.testing.assert_array_equal(drawn["weights"][:, : token + 1], np.where(weights == 0, np.nan, weights))  # masked: hatched


def test_token_by_token_with_buttons_and_keys(decoding):
    person, settings = decoding
    person.page.evaluate("document.querySelector('.mha-maps').before = true")
    person.page.get_by_role("button", name="Next token").click()
    eventually(shows, person, 11, settings)
    person.page.wait_for_selector(IDLE)
    person.page.keyboard.press("ArrowRight")
    eventually(shows, person, 12, settings)
    person.page.wait_for_selector(IDLE)
    person.page.keyboard.press("ArrowLeft")
    eventually(shows, person, 11, settings)
    assert person.page.evaluate("document.querySelector('.mha-maps').before"), "the picture changes in place"
    eventually(lambda: person.query() == {"seed": str(settings.seed), "token": "11"})
    person.sees(".chosen", "Step 12 of 20: token 11 is new")


def test_keys_in_the_picture_go_one_token_at_a_time(decoding):
    person, settings = decoding
    person.page.locator(".mha-maps").focus()
    person.page.keyboard.press("ArrowRight")
    eventually(lambda: person.query() == {"seed": str(settings.seed), "token": "11"})
    person.page.keyboard.press("Home")
    eventually(lambda: person.query() == {"seed": str(settings.seed), "token": "0"})
    person.page.keyboard.press("End")
    eventually(lambda: person.query() == {"seed": str(settings.seed), "token": "19"})
    eventually(shows, person, 19, settings)
    person.page.keyboard.press("ArrowRight")  # there is none
    person.page.keyboard.press("ArrowLeft")
    eventually(lambda: person.query() == {"seed": str(settings.seed), "token": "18"})


def test_pointing_says_what_a_cell_is_and_a_click_goes_to_its_token(decoding):
    person, settings = decoding
    trace = synthetic(settings)
    weight = decode(trace.layer, trace.batch).steps[10].weights[0, 2, 0, 4]
    for panel, key, row, words in (
        (3, 4, 2, ["head 2, new row of the map", "token 4", f"weight {weight:.6f}"]),
        (1, 4, 1, ["head 1, key vector", "token 4", "length"]),
        (1, 15, 1, ["token 15", "not there yet"]),
        (0, 4, 1, ["query vector", "not kept"]),
    ):
        person.page.mouse.move(*column(person, panel, key, row))
        for said in words:
            person.sees(".mha-tip", said)
    person.page.mouse.click(*column(person, 2, 15, 3))
    eventually(shows, person, 15, settings)
    eventually(lambda: person.query() == {"seed": str(settings.seed), "token": "15"})


def test_timing_stops_when_somebody_says_so(decoding):
    person, _ = decoding
    person.widget("time_both").locator("button").filter(visible=True).click()
    person.widget("stop_timing").locator("button").filter(visible=True).click()
    person.sees("[data-testid=stMain]", "Time both again")
    person.sees("[data-testid=stMain]", "Stopped at ")


def test_from_page_to_page_with_what_is_set_and_back(person):
    person.go()
    person.type("seed", "11")
    eventually(lambda: person.query() == {"seed": "11"})
    person.page.get_by_role("link", name="Decode").click()
    person.page.wait_for_selector(".mha-maps[data-kind=decoding]")
    eventually(shows, person, 10, Settings(seed=11, causal=True))
    assert person.holds("seed") == "11"
    person.page.get_by_role("button", name="Next token").click()
    eventually(lambda: person.query() == {"seed": "11", "token": "11"})
    person.type("embed_dim", "64")
    eventually(shows, person, 11, Settings(seed=11, embed_dim=64, causal=True))
    eventually(lambda: person.query() == {"embed_dim": "64", "seed": "11", "token": "11"})
    person.page.get_by_role("link", name="Explore", exact=True).click()
    person.page.wait_for_selector(".mha-maps[data-kind=maps]")
    eventually(lambda: (person.holds("seed"), person.holds("embed_dim")) == ("11", "64"))
    person.page.go_back()
    person.page.wait_for_selector(".mha-maps[data-kind=decoding]")
    eventually(shows, person, 11, Settings(seed=11, embed_dim=64, causal=True))
    person.page.go_back()
    eventually(shows, person, 11, Settings(seed=11, causal=True))
    eventually(lambda: person.holds("embed_dim") == "128")


def test_a_link_that_is_followed_before_it_is_drawn_anew_loses_nothing(person):
    """A cell is chosen in the picture, which alone is drawn anew: the links above it still have the address from before."""
    person.go()
    person.page.locator(".mha-maps").focus()
    person.page.keyboard.press("ArrowDown")
    eventually(lambda: "cell" in person.query())
    chosen = person.query()
    person.page.get_by_role("link", name="Decode").click()
    person.page.wait_for_selector(".mha-maps[data-kind=decoding]")
    eventually(lambda: person.query() == chosen)


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_nothing_is_cut_at_any_width_in_either_theme(look, person, width, scheme):
    look(width, scheme=scheme)
    page = person.page
    page.goto(f"{person.address}/decode?words=the+cat+sat+on+the+mat%0Aa+dog&padding=&padding_side=left&item=1&num_heads=32")
    page.wait_for_selector(f"{IDLE} .mha-maps[data-kind=decoding] .main-svg", timeout=60_000)

    def fits():
        box = page.locator("[data-testid=stMainBlockContainer]").bounding_box()
        for plot in page.locator(".mha-maps, [data-testid=stPlotlyChart]").all():
            if (own := plot.bounding_box()) and own["height"]:
                assert own["x"] >= box["x"] - 1 and own["x"] + own["width"] <= box["x"] + box["width"] + 1
        paper = page.evaluate("document.querySelector('.mha-maps').layout.paper_bgcolor")
        assert paper == ("#0e1117" if scheme == "dark" else "#ffffff")

    eventually(fits)
