"""Where a person is: the address and View of what a page looks at wait while a page of something else is open.

Pages ``ON_EXPLORE`` look at one thing, the layer that the sidebar sets: a person who goes from one to another keeps its settings, its
address and what was chosen.
"""

from pathlib import Path

import streamlit as st

from mha_viz.pages import draft

STYLE = Path(__file__).with_name("style.css")
PAGES = {  # by the name of their file
    "lessons": "Start here", "explore": "Explore", "models": "Models", "steps": "Step by step", "decode": "Decode",
    "pitfalls": "Pitfalls", "validate": "Validate", "about": "About",
}  # fmt: skip
ON_EXPLORE = ("explore", "steps", "decode", "pitfalls", "validate")
OWN = ("view", "address", "behind", "written", "notes", "arrived", "typed_limits", "wrong_view", "wrong_what_if", "typed_what_if")


def enter(page, follow=()):
    """Come to ``page``, perhaps from another one, and find it as it was left; and the links that lead from page to page.

    The fragments ``follow`` are drawn anew with any other one: they say something of what the others choose.
    """
    st.html(STYLE)
    st.session_state.follow = (*follow, "pages") if page in ON_EXPLORE else follow  # links between these say what is set
    state, query = st.session_state, st.query_params.to_dict()
    before, state.page = state.get("page", page), page
    places = state.setdefault("places", {})
    if before != page:
        if place(before) != place(page):
            places[place(before)] = {name: state.pop(name) for name in OWN if name in state}
            state.update(places.get(place(page), {}))
        else:
            for name in state.get("draft", ()):  # widgets of the same name on the other page: this one's take what they held from the draft
                state.pop(name, None)
            if query in state.get("behind", ()):  # the link was drawn before what was changed since
                state.address, state.behind = query, []
        state.pop("staged", None)  # nothing of this page is drawn yet
    links()


@st.fragment(key="pages")
def links():
    """The links from page to page. With the address in them, Back leads through no page twice."""
    state, query = st.session_state, st.query_params.to_dict()
    arriving = query != state.get("address") and query not in state.get("behind", ())
    now = query if arriving else draft.address() if state.page in ON_EXPLORE else state.get("address", {})
    with st.container(key="pages", horizontal=True):
        for name, title in PAGES.items():
            address = now if place(name) == place(state.page) else state.places.get(place(name), {}).get("address", {})
            st.page_link(f"mha_viz/pages/{name}.py", label=title, query_params=address)


def place(page):
    """What a page looks at, by the name of the first page that does."""
    return ON_EXPLORE[0] if page in ON_EXPLORE else page
