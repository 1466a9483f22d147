"""A page that is loaded once and visited many times: loading it takes longer than most of what is tried on it."""

import itertools
from urllib.parse import urlencode

import streamlit as st

GO = "query => { history.pushState({}, '', query); window.dispatchEvent(new PopStateEvent('popstate')) }"
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
numbers = itertools.count(1)


def begin_anew():
    """In the page: forget everything when another visit begins. Returns a key for what must not survive one."""
    visit = st.query_params.get("visit", "none")
    if st.session_state.get("visit") != visit:
        st.session_state.clear()
        st.session_state["visit"] = visit
    return f"picture-{visit}"


def go(page, address, case):
    """In a test: visit the page at ``address`` with this case, and wait for its picture."""
    query = "?" + urlencode({"visit": next(numbers)} | case)
    if page.url.startswith(address):
        page.mouse.move(1, 1)
        page.wait_for_selector(IDLE)  # a page that is busy with the visit before may not hear of this one
        page.evaluate(GO, query)
    else:
        page.goto(f"{address}/{query}")
    wait_until_visited(page, query.split("&")[0].removeprefix("?visit="))


def wait_until_visited(page, visit):
    """In a test: wait for the picture of this visit, and of no other."""
    page.wait_for_function(
        "visit => { const plots = document.querySelectorAll('.mha-maps');"
        " return plots.length === 1 && plots[0].closest(`.st-key-picture-${visit}`) && plots[0]._fullLayout?.meta"
        " && plots[0].querySelector('.main-svg') }",
        arg=visit,
        timeout=60_000,
    )
