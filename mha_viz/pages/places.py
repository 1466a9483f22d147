"""Where a person is on each page: its address and View wait while another page is looked at."""

from pathlib import Path

import streamlit as st

STYLE = Path(__file__).with_name("style.css")
PAGES = {"lessons": "Start here", "explore": "Explore", "models": "Models", "about": "About"}  # by the name of their file
OWN = ("view", "address", "behind", "written", "notes", "arrived", "typed_limits", "wrong_view", "wrong_what_if", "typed_what_if")


def enter(page, follow=()):
    """Come to ``page``, perhaps from another one, and find it as it was left; and the links that lead from page to page.

    The fragments ``follow`` are drawn anew with any other one: they say something of what the others choose.
    """
    st.html(STYLE)
    st.session_state.follow = follow
    state = st.session_state
    before, state.page = state.get("page", page), page
    places = state.setdefault("places", {})
    if before != page:
        places[before] = {name: state.pop(name) for name in OWN if name in state}
        state.update(places.get(page, {}))
        state.pop("staged", None)  # nothing of this page is drawn yet
    with st.container(key="pages", horizontal=True):
        for name, title in PAGES.items():  # with the address in the link, Back leads through no page twice
            address = state.get("address", {}) if name == page else places.get(name, {}).get("address", {})
            st.page_link(f"mha_viz/pages/{name}.py", label=title, query_params=address)
