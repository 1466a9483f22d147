"""One server, one browser window and one person for all tests of a module."""

from urllib.parse import urlparse

import pytest

from mha_viz.pages.places import PAGES
from tests.browser.person import PATIENCE, Person

# Streamlit looks for its server below a page's own address first, where none answers.
ASKED_IN_VAIN = [f"/{page}/_stcore/{asked}" for page in PAGES for asked in ("health", "host-config")]


@pytest.fixture(scope="session")
def window(chromium):
    """``window(**options)`` opens a window, 1440 × 900 unless told otherwise, which notes what nobody should see.

    Its ``complaints`` are errors on the console and in scripts, and requests to other machines, which are not let out; all but those
    ASKED_IN_VAIN.
    """
    contexts = []

    def opened(**options):
        context = chromium.new_context(**{"viewport": {"width": 1440, "height": 900}} | options)
        contexts.append(context)
        page = context.new_page()
        page.complaints = complaints = []
        page.set_default_timeout(1000 * PATIENCE)

        def only_here(route):
            if urlparse(route.request.url).hostname in ("localhost", None):
                route.continue_()
            else:
                complaints.append(f"request to {route.request.url}")
                route.abort()

        def said(message):
            in_vain = urlparse(message.location.get("url")).path in ASKED_IN_VAIN and "404" in message.text
            if message.type == "error" and not in_vain:
                complaints.append(message.text)

        def answered(answer):
            in_vain = urlparse(answer.url).path in ASKED_IN_VAIN and answer.status == 404
            if answer.status >= 400 and not in_vain:
                complaints.append(f"{answer.status} {answer.url}")

        context.route("**/*", only_here)
        page.on("console", said)
        page.on("response", answered)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def address(serve):
    return serve("app.py")


@pytest.fixture(scope="session")
def usual_window(window):
    return window()


@pytest.fixture
def person(usual_window, address):
    """Somebody at the usual window; afterwards nothing may have gone wrong unseen."""
    person = Person(usual_window, address)
    yield person
    person.saw_nothing_wrong()
