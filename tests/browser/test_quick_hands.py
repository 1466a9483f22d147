"""Hands that are quicker than the page: controls pressed one after another, with up to 150 ms in between, leave no error and no blank page,
and the picture is the one that the address opens."""

import random

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from mha_viz.app.session import PAGES
from tests.browser.person import IDLE, eventually

PATHS = ("", "models", "steps", "decode", "pitfalls")
PRESSES = 4  # of each page, one right after the other
CONTROLS = """() => {
    const said = /Help for|Train|Time both|Save|Light|Upload|Stop/, found = [];
    const places = "[data-testid=stMain] button, [data-testid=stSidebar] button, .st-key-pages a, input[type=checkbox]";
    const all = document.querySelectorAll(places);
    for (const one of all) {
        const about = one.innerText || one.getAttribute("aria-label") || "";
        if (!one.disabled && !said.test(about) && !one.closest("[data-testid=stFileUploader]")) found.push(one);
    }
    found.forEach((one, i) => one.setAttribute("data-quick", i));
    return found.length;
}"""
PICTURES = """() => JSON.stringify([...document.querySelectorAll(".mha-maps")].map(plot =>
    (plot._fullData ?? []).map(one => [one.name, Array.from(one.z ?? [], row => Array.from(row))])))"""


DRAWN = "() => [...document.querySelectorAll('.mha-maps')].every(plot => plot._fullData?.length)"


def settled(page):
    """Wait until nothing changes any more, and every picture is drawn."""
    eventually(lambda: page.locator(IDLE).count())
    page.wait_for_timeout(400)
    eventually(lambda: page.locator(IDLE).count() and page.evaluate(DRAWN))


@pytest.mark.parametrize("path", PATHS)
def test_nothing_breaks_and_the_picture_is_that_of_the_address(person, path):
    page, chance = person.page, random.Random(path)
    page.goto(f"{person.address}/{path}")
    page.wait_for_selector(".st-key-pages a", timeout=60_000)
    settled(page)
    pressed = []
    for number in chance.sample(range(page.evaluate(CONTROLS)), PRESSES):
        pressed.append(page.evaluate("i => document.querySelector(`[data-quick='${i}']`)?.innerText", number))
        page.evaluate("i => document.querySelector(`[data-quick='${i}']`)?.click()", number)
        page.wait_for_timeout(chance.randrange(150))
    settled(page)
    assert page.locator("[data-testid=stException], [role=dialog]:has-text('Bad message')").count() == 0
    assert page.locator(".st-key-pages a").count() >= len(PAGES), "the page is blank"
    address, shown = page.url, page.evaluate(PICTURES)
    page.goto(address)
    page.wait_for_selector(".st-key-pages a", timeout=60_000)

    def same():
        settled(page)
        assert page.evaluate(PICTURES) == shown, f"{pressed}: another picture at {address}"

    eventually(same)


@pytest.mark.parametrize(("path", "label"), [("", "Heads"), ("steps", "Save")])
def test_a_popover_that_is_opened_while_the_page_is_still_being_drawn_stays_open(person, path, label):
    page = person.page
    page.goto(f"{person.address}/{path}", wait_until="commit")
    page.get_by_role("button", name=label, exact=True).click()
    settled(page)
    assert page.get_by_test_id("stPopoverBody").count() == 1


@pytest.mark.parametrize(
    ("path", "link", "pressed"),
    [("", "Validate", "Reset view"), ("steps", "Decode", "Forward"), ("models", "Explore", "Reset view")],
)
def test_a_control_of_a_page_that_is_left_takes_nothing_from_the_next_one(usual_window, address, path, link, pressed):
    """The browser hears late of the page that the link leads to, and until then shows the controls of the one before."""
    held, server = [], []
    with usual_window.context.new_page() as page:
        page.route_web_socket("**/_stcore/stream", lambda route: server.append(late(route, held)))
        page.goto(f"{address}/{path}")
        page.locator(IDLE).wait_for()
        page.get_by_test_id("stMain").get_by_role("button", name=pressed).wait_for()
        settled(page)
        let_go = server[-1]()
        page.locator(".st-key-pages a", has_text=link).click()
        page.get_by_test_id("stMain").get_by_role("button", name=pressed).click()

        def answered():
            page.wait_for_timeout(30)  # in which messages are heard
            return any(ForwardMsg.FromString(message).HasField("script_finished") for message in held)

        eventually(answered)
        page.wait_for_timeout(500)  # for an answer to the second press, of which there is to be none
        let_go()
        settled(page)
        assert page.locator("[data-testid=stException], [role=dialog]:has-text('Bad message')").count() == 0
        assert page.locator(".st-key-pages a").count() >= len(PAGES), "the page is blank"


def late(route, held):
    """Pass on what a server says, until the function that is returned is called: from then on it is ``held``, until what that returns is
    called."""
    holding = []
    route.connect_to_server().on_message(lambda message: (held.append if holding else route.send)(message))

    def hold():
        holding.append(True)
        return let_go

    def let_go():
        holding.clear()
        for message in held:
            route.send(message)

    return hold


@pytest.mark.parametrize(("path", "to"), [("explore", "steps"), ("steps", "decode"), ("pitfalls", "explore")])
def test_what_was_typed_is_not_lost_where_a_link_is_tapped_right_after_it(person, path, to):
    """A tap presses and lets go in one moment."""
    page = person.page
    page.goto(f"{person.address}/{'' if path == 'explore' else path}")
    for typed, where in (("1234", to), ("56", path)):  # on the way there, and back
        page.wait_for_selector(".st-key-seed input", timeout=60_000)
        settled(page)
        page.locator(".st-key-seed input").fill(typed)
        page.locator(".st-key-pages a", has_text=PAGES[where]).click()
        eventually(lambda name="" if where == "explore" else where: page.evaluate("location.pathname") == f"/{name}")
        eventually(lambda text=typed: person.query().get("seed") == text and person.holds("seed") == text)


@pytest.mark.parametrize("link", ["Explore", "Decode"])
def test_after_a_link_that_was_clicked_twice_the_controls_hold_what_the_address_says(person, link):
    page, asked = person.page, {"source": "trained", "seed": "3", "batch_size": "2", "layer": "1"}
    person.open(**asked)
    settled(page)
    page.locator(".st-key-pages a", has_text="About").click()
    page.wait_for_url("**/about")
    settled(page)
    page.locator(".st-key-pages a", has_text=link).dblclick()
    page.wait_for_selector(".st-key-seed input", timeout=60_000)
    settled(page)
    assert (person.holds("seed"), person.holds("batch_size"), person.holds("view_source")) == ("3", "2", "shipped model")
    assert "1500" in person.text(".st-key-snapshot [data-testid=stSliderThumbValue]")
    person.type("seed", "4")
    eventually(lambda: person.query() == {**asked, "seed": "4"})
    settled(page)
