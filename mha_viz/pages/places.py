"""Where a person is on each page: its address and View wait while another page is looked at."""

from pathlib import Path

import streamlit as st

STYLE = Path(__file__).with_name("style.css")
OWN = ("view", "address", "behind", "written", "notes", "arrived", "typed_limits", "wrong_view")


def enter(page):
    """Come to ``page``, perhaps from another one, and find it as it was left, unless its address says otherwise."""
    st.html(STYLE)
    state = st.session_state
    before, state.page = state.get("page", page), page
    if before == page:
        return
    places = state.setdefault("places", {})
    places[before] = {name: state.pop(name) for name in OWN if name in state}
    state.pop("staged", None)  # nothing of this page is drawn yet
    left = places.get(page)
    if left is not None:
        state.update(left)
        if not st.query_params:
            st.query_params.from_dict(state.address)
