"""Presenting the lessons in a real browser: every key that the page names does what it says."""

import pytest

from tests.browser.person import IDLE, eventually

pytestmark = pytest.mark.browser


def looks(person):
    """The page's background, and the colour of the picture's titles, as the browser draws them."""
    script = """() => {
        const app = document.querySelector('[data-testid=stApp]'), title = document.querySelector('.mha-maps .annotation-text');
        return [app && getComputedStyle(app).backgroundColor, title && (title.style.fill || title.querySelector('text').style.fill)];
    }"""
    return person.page.evaluate(script)


def turn(person):
    """Press T: the page is loaded anew."""
    with person.page.expect_navigation():
        person.page.keyboard.press("t")


def test_a_class_is_led_by_keys(person):
    page = person.page
    try:
        page.goto(f"{person.address}/lessons")
        eventually(lambda: page.locator(".st-key-picture .main-svg").count() and page.locator(IDLE).count())
        page.keyboard.press("p")
        eventually(lambda: person.query() == {"presented": "1"})
        page.keyboard.press("ArrowRight")
        eventually(lambda: person.query() == {"lesson": "hides", "presented": "1"} and page.locator(IDLE).count())
        page.keyboard.press("a")
        eventually(
            lambda: person.query() == {"lesson": "hides", "revealed": "1", "presented": "1"} and page.locator(IDLE).count()
        )
        eventually(lambda: looks(person)[1])
        light = looks(person)
        turn(person)
        eventually(lambda: None not in looks(person) and looks(person)[0] != light[0] and looks(person)[1] != light[1])
        assert person.query() == {"lesson": "hides", "revealed": "1", "presented": "1"}, "the lesson is where it was"
        eventually(lambda: page.locator(IDLE).count())
        turn(person)
        eventually(lambda: looks(person) == light)
        eventually(lambda: page.locator(IDLE).count())
        page.keyboard.press("ArrowLeft")
        eventually(lambda: person.query() == {"presented": "1"})
    finally:
        page.evaluate("localStorage.clear()")  # which holds the theme of every page
