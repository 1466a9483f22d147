"""Where a person is: the address and View of what a page looks at wait while a page of something else is open."""

from pathlib import Path

import streamlit as st

STYLE = Path(__file__).with_name("style.css")
PAGES = {  # by the name of their file
    "lessons": "Start here", "explore": "Explore", "models": "Models", "steps": "Step by step", "pitfalls": "Pitfalls",
    "validate": "Validate", "about": "About",
}  # fmt: skip
ON_EXPLORE = ("explore", "steps", "pitfalls", "validate")  # they look at its layer, and so share its address, draft and View
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
        if place(before) != place(page):
            places[place(before)] = {name: state.pop(name) for name in OWN if name in state}
            state.update(places.get(place(page), {}))
        else:
            for name in state.get("draft", ()):  # widgets of the same name on the other page: this one's take what they held from the draft
                state.pop(name, None)
            if st.query_params.to_dict() != state.get("address", {}):  # the link was drawn before what was changed since
                st.query_params.from_dict(state.address)
        state.pop("staged", None)  # nothing of this page is drawn yet
    with st.container(key="pages", horizontal=True):
        for name, title in PAGES.items():  # with the address in the link, Back leads through no page twice
            here = place(name) == place(page)
            address = state.get("address", {}) if here else places.get(place(name), {}).get("address", {})
            st.page_link(f"mha_viz/pages/{name}.py", label=title, query_params=address)


def place(page):
    """What a page looks at, by the name of the first page that does."""
    return "explore" if page in ON_EXPLORE else page
