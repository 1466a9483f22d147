"""Presenting the lessons in a real browser: every key that the page names does what it says."""

from tests.browser.person import READY, eventually


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


def press(person, key, **query):
    """Press a key, and wait until the page is done with it and its address says this; once more where it went by unheard, since
    Streamlit's buttons hear no key in the moment in which they are drawn anew."""
    person.page.keyboard.press(key)
    try:
        eventually(lambda: person.query() == query)
    except AssertionError:
        person.page.keyboard.press(key)
    arrived(person, **query)


def arrived(person, **query):
    person.page.wait_for_selector(READY, timeout=60_000)  # after loading, which takes a slow machine its time
    eventually(lambda: person.query() == query and person.page.locator(READY).count())
    eventually(lambda: None not in looks(person))


def test_a_class_is_led_by_keys(person):
    try:
        person.page.goto(f"{person.address}/lessons")
        arrived(person)
        press(person, "p", presented="1")
        press(person, "ArrowRight", lesson="hides", presented="1")
        press(person, "a", lesson="hides", revealed="1", presented="1")
        light = looks(person)
        turn(person)
        arrived(person, lesson="hides", revealed="1", presented="1")  # where it was
        eventually(lambda: not set(looks(person)) & {*light, None})
        turn(person)
        arrived(person, lesson="hides", revealed="1", presented="1")
        eventually(lambda: looks(person) == light)
        press(person, "ArrowLeft", presented="1")
    finally:
        person.page.evaluate("localStorage.clear()")  # which holds the theme of every page
