"""One server, one browser window and one person for all tests of a module."""

from urllib.parse import urlparse

import pytest

from mha_viz.app.session import OF_LAYER, PAGES
from tests.browser.person import PATIENCE, Person

USUAL_SIZE = {"width": 1440, "height": 900}

# Streamlit remembers in the browser that somebody opened the sidebar, and opens it again, over the picture of a narrow page.
FORGET_SIDEBAR = """
if (location.protocol === "http:")
  Object.keys(localStorage).filter((key) => key.startsWith("stSidebar")).forEach((key) => localStorage.removeItem(key));
"""

# Streamlit looks for its server below a page's own address first, where none answers.
ASKED_IN_VAIN = [f"/{page}/_stcore/{asked}" for page in PAGES | OF_LAYER for asked in ("health", "host-config")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """What fails leaves its page to nobody."""
    report = yield
    if report.failed and "usual_window" in item.funcargs:
        item.funcargs["usual_window"].goto("about:blank")
    return report


@pytest.fixture(scope="session")
def usual_window(chromium):
    """A window that notes what nobody should see.

    Its ``complaints`` are errors on the console and in scripts, and requests to other machines, which find none; all but those
    ASKED_IN_VAIN. Nothing is intercepted: a browser whose requests are intercepted keeps no script from one page to the next.
    """
    with chromium.new_context(viewport=USUAL_SIZE) as context:
        page = context.new_page()
        page.complaints = complaints = []
        page.add_init_script(FORGET_SIDEBAR)
        page.set_default_timeout(1000 * PATIENCE)

        def asked(request):
            if urlparse(request.url).hostname not in ("localhost", None):
                complaints.append(f"request to {request.url}")

        def said(message):
            in_vain = urlparse(message.location.get("url")).path in ASKED_IN_VAIN and "404" in message.text
            if message.type == "error" and not in_vain:
                complaints.append(message.text)

        def answered(answer):
            in_vain = urlparse(answer.url).path in ASKED_IN_VAIN and answer.status == 404
            if answer.status >= 400 and not in_vain:
                complaints.append(f"{answer.status} {answer.url}")

        page.on("request", asked)
        page.on("console", said)
        page.on("response", answered)
        page.on("pageerror", lambda error: complaints.append(error.stack or str(error)))
        yield page


@pytest.fixture
def look(usual_window):
    """``look(width, height, scheme)`` makes the usual window as large, light or dark; afterwards it is as usual again, and empty."""

    def as_told(width, height=USUAL_SIZE["height"], scheme="light"):
        usual_window.set_viewport_size({"width": width, "height": height})
        usual_window.emulate_media(color_scheme=scheme)

    yield as_told
    as_told(**USUAL_SIZE)
    usual_window.goto("about:blank")


@pytest.fixture(scope="session")
def address(serve):
    return serve("app.py")


@pytest.fixture
def person(usual_window, address):
    """Somebody at the usual window; afterwards nothing may have gone wrong unseen."""
    person = Person(usual_window, address)
    yield person
    person.saw_nothing_wrong()
