"""One person's session: the page they are on, what they look at there, and the links from page to page.

Pages OF_LAYER look at a layer, all at the same one: who goes from one to another takes along what is looked at and how. Any other page has
a place of its own, which waits while another is open.
"""

from pathlib import Path

import streamlit as st

from mha_viz.app import drawing
from mha_viz.app.drawing import uninterrupted
from mha_viz.app.fragment import fragment
from mha_viz.app.page_list import LISTED, file_of
from mha_viz.app.requests import keep_in_order
from mha_viz.app.state import Looking, Place
from mha_viz.app.task import end, going
from mha_viz.components import hold_links, stepper
from mha_viz.sources.base import kind_named

STYLE = Path(__file__).with_name("style.css")
PAGES = {page.name: page.title for page in LISTED if page.linked}
OF_LAYER = {page.name: page.source for page in LISTED if page.of_layer}
PLAYING = "playing"  # the Task that shows one snapshot of a training after another
TYPED = (  # what waits in controls to be mended, or was set aside, until another address is taken over
    "wanted",
    "left_padding",
    "wrong_file",
    "typed_view",
    "typed_what_if",
    "wrong_view",
    "wrong_what_if",
)


def enter(page, follow=()):
    """Come to ``page``, perhaps from another one, and find it as it was left; draw the links that lead from page to page.

    The fragments ``follow`` are drawn anew with any other one: they say something of what the others choose.
    """
    keep_in_order()
    st.html(STYLE)
    come(page, (*follow, "pages") if page in OF_LAYER else follow)  # links between these say what is set
    drawing.begin()
    links()
    hold_links()
    stepper()


@uninterrupted()
def come(page, follow):
    """Be on ``page`` from now on: another form begins, and what is asked of the page before is forgotten."""
    state = st.session_state
    before, state.page, state.follow = state.get("page"), page, follow
    state.just_came = before != page
    if state.just_came:
        drawing.leave_fragments()
        drawing.renew()


def place(page, content=Looking):
    """The Place that this page shares with others OF_LAYER, or has of its own; its ``content()`` is made at the first visit."""
    places = st.session_state.setdefault("places", {})
    key = "layer" if page in OF_LAYER else page
    if key not in places:
        places[key] = Place(content())
    return places[key]


def looking():
    """What the pages of a layer look at."""
    return place("explore").content


@uninterrupted()
def arrive(page, content=Looking):
    """Take the browser's address over where a person went to another one; begin another form then. Returns the Place."""
    state, here, query = st.session_state, place(page, content), named(st.query_params.to_dict(), page)
    if state.just_came and query in here.behind:  # the link was drawn before what was changed since
        here.address, here.behind = query, []
    if here.arrive(query, state.with_change, **({"fallback": OF_LAYER[page]} if page in OF_LAYER else {})):
        drawing.renew()
        let_go()
    state.address = unnamed(here.address, page)
    return here


def let_go():
    """Forget what was typed into controls of the view and could not be taken, and end what is played."""
    end(PLAYING)
    for name in TYPED:
        st.session_state.pop(name, None)


@uninterrupted()
def write_address(page=None):
    """Let the browser's address say what is set and how it is shown; not while a training is played: Back should not lead through it."""
    state = st.session_state
    page = page or state.page
    spelled = None if page in OF_LAYER and going(PLAYING) else place(page).spell()
    if spelled is not None:
        state.address = unnamed(spelled, page)
        st.query_params.from_dict(state.address)


def named(query, page):
    """The address of a page as all have it: with the source that goes without saying there."""
    default, first = OF_LAYER.get(page), kind_named(None).name
    query = query if default is None else {"source": default} | query
    return {name: text for name, text in query.items() if (name, text) != ("source", first)}


def unnamed(address, page):
    """An address as this page has it, where its own source goes without saying."""
    default = OF_LAYER.get(page)
    if default is None:
        return address
    if "source" not in address:
        return {"source": kind_named(None).name} | address
    return {name: text for name, text in address.items() if (name, text) != ("source", default)}


@fragment(key="pages")
def links():
    """The links from page to page. With the address in them, Back leads through no page twice."""
    with st.container(key="pages", horizontal=True):
        for name, title in PAGES.items():
            link(name, title)


def link(page, title, **options):
    """A link to a page as it was left."""
    st.page_link(file_of(page), label=title, query_params=unnamed(address_now(page), page), **options)


def address_now(page):
    """The address that says what a page shows, whether or not the browser has heard of it."""
    state = st.session_state
    places = state.get("places", {})
    key = "layer" if page in OF_LAYER else page
    here = "layer" if state.page in OF_LAYER else state.page
    if key == here:
        query = named(st.query_params.to_dict(), state.page)
        if key not in places or (query != places[key].address and query not in places[key].behind):
            return query  # which is being taken over
        return places[key].now()
    return places[key].address or {} if key in places else {}
