"""Where a person is: the address and View of what a page looks at wait while a page of something else is open.

Pages OF_EITHER look at the layer of Explore or at one of a model, whichever their address names: an address of a model names its source.
A person who goes from page to page takes along what is looked at, its address and what was chosen.
"""

from pathlib import Path

import streamlit as st

from mha_viz.app import draft, source
from mha_viz.app import drawing as form
from mha_viz.app.fragment import fragment
from mha_viz.components import stepper

STYLE = Path(__file__).with_name("style.css")
PAGES = {  # by the name of their file
    "lessons": "Start here", "explore": "Explore", "models": "Models", "steps": "Step by step", "decode": "Decode",
    "pitfalls": "Pitfalls", "validate": "Validate", "profile": "Profile", "about": "About",
}  # fmt: skip
OF_EITHER = ("steps", "decode", "pitfalls", "validate")
ADDRESSES = {"explore": draft.address, "models": source.address}  # of what these two, and the pages OF_EITHER, look at
OWN = (
    "view",
    "address",
    "behind",
    "written",
    "notes",
    "arrived",
    "typed_view",
    "wrong_view",
    "wrong_what_if",
    "typed_what_if",
)


def enter(page, follow=()):
    """Come to ``page``, perhaps from another one, and find it as it was left; and the links that lead from page to page.

    The fragments ``follow`` are drawn anew with any other one: they say something of what the others choose.
    """
    st.html(STYLE)
    query = st.query_params.to_dict()
    if come(page, follow, query):
        st.query_params.from_dict(query)  # a link to the page that one is on leaves the browser's address as it was
    form.begin()
    links()
    stepper()


@form.uninterrupted()
def come(page, follow, query):
    """Take up what was left of ``page``, and lay away what the page before looked at. Returns whether it is the same page, which looks at
    something else now."""
    state = st.session_state
    before, was = state.get("page", page), state.get("place")
    now = ("models" if "source" in query else "explore") if page in OF_EITHER else page
    if before != page:
        form.leave_fragments()
    state.page, state.place, state.looked_at = page, now, now if now in ADDRESSES else looked_at()
    state.follow = (*follow, "pages") if now in ADDRESSES else follow  # links between these say what is set
    places = state.setdefault("places", {})
    if (before, was) != (page, now):
        form.renew()
    if was not in (None, now):
        places[was] = {name: state.pop(name) for name in OWN if name in state}
        state.update(places.get(now, {}))
    elif before != page and source.named(query) in map(
        source.named, state.get("behind", ())
    ):  # the link was drawn before what was changed since
        state.address, state.behind = query, []
    return before == page and was not in (None, now)


@fragment(key="pages")
def links():
    """The links from page to page. With the address in them, Back leads through no page twice."""
    with st.container(key="pages", horizontal=True):
        for name, title in PAGES.items():
            link(name, title, looked_at() if name in OF_EITHER else name)


def link(page, title, place, **options):
    """A link to a page that looks at ``place``, as that was left."""
    state, query = st.session_state, st.query_params.to_dict()
    address = state.places.get(place, {}).get("address", {})
    if place == state.place:
        arriving = query != state.get("address") and query not in state.get("behind", ())
        address = query if arriving else ADDRESSES.get(place, lambda: state.get("address", {}))()
    if place == "models":
        address = source.named(address) if page in OF_EITHER else source.unnamed(address)
    st.page_link(f"mha_viz/app/pages/{page}.py", label=title, query_params=address, **options)


def looked_at():
    """What pages OF_EITHER look at: "explore", its layer, or "models", one of a model; what was looked at last."""
    return st.session_state.get("looked_at", "explore")
