"""What a browser says of a page that has changed since: a late change belongs to the form that it was made in, or to none.

Over Streamlit's own protocol, as a browser with quick hands sends it: a control that is not on the page any more, two changes at once.
"""

import ast
import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
import websockets
from streamlit.testing.v1 import AppTest

from mha_viz.sources.base import SOURCES
from mha_viz.sources.models import MODELS
from tests.protocol import Session

ROOT = Path(__file__).parents[2]
CALLED = {"on_click", "on_change", "on_select", "on_choose", "on_reset", "on_look", "on_zoom", "on_dismiss"}


@pytest.fixture(scope="module")
def at(serve):
    """``at(page, address, walk)``: the Session once ``await walk(session, socket)`` was there; an error that is drawn is raised."""
    url = serve(ROOT / "app.py").removeprefix("http://")

    async def open_and(page, address, walk):
        session = Session(0)
        session.page, session.address = page, address
        async with websockets.connect(f"ws://{url}/_stcore/stream", subprotocols=["streamlit"], max_size=None) as socket:
            await session.ask(socket)
            await walk(session, socket)
            return session

    with ThreadPoolExecutor(1) as thread:  # Playwright keeps an event loop of its own running in the main one
        yield lambda *asked: thread.submit(asyncio.run, open_and(*asked)).result()


def query(session):
    return dict(parse_qsl(session.address))


def kinds(session):
    return [kind for kind, _ in session.received]


async def late(session, socket, name, trigger=False, **value):
    """A word of a control that has gone: Streamlit does not answer to one in a fragment that has gone too, and so the page is asked for."""
    message = session.message()
    message.rerun_script.widget_states.widgets.add(id=session.ids[name][0], **({"trigger_value": True} if trigger else {}))
    for kind, held in value.items():
        last = message.rerun_script.widget_states.widgets[-1]
        if isinstance(held, list):
            getattr(last, kind).data.extend(held)
        else:
            setattr(last, kind, held)
    await session.send(socket, message)


async def at_once(session, socket, first, held, then, value):
    """Two changes, the second before the first is answered."""
    session.states[first] = held
    await socket.send(session.message().SerializeToString())
    await late(session, socket, then, **value)


async def choose(session, socket, source):
    await session.change(socket, "view_source", string_value=SOURCES[source].title)


@pytest.mark.parametrize("source", ["file", "pretrained"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", {"string_value": "5"}),
        ("batch_size", {"string_value": "2"}),
        ("model", {"string_value": "Look both ways: 2 heads"}),
        ("snapshot", {"string_array_value": ["70"]}),
        ("words", {"string_value": "<bos> a b a b"}),
    ],
)
def test_a_change_in_a_source_that_was_left_changes_nothing(at, source, name, value):
    async def walk(session, socket):
        await choose(session, socket, source)
        left = session.address
        await late(session, socket, name, **value)
        assert session.address == left, "nothing of the other source"
        session.states.clear()
        await choose(session, socket, "trained")
        assert query(session) == {}, "and nothing of the one that was left"

    at("models", "", walk)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("view_item", {"string_value": "batch item 1"}),
        ("view_arrangement", {"string_array_value": ["all"]}),
        ("view_picture", {"string_array_value": ["lines"]}),
    ],
)
def test_a_control_that_both_sources_have_breaks_neither(at, name, value):
    async def walk(session, socket):
        await at_once(session, socket, "view_source", {"string_value": "pretrained model"}, name, value)
        session.states.clear()
        await session.ask(socket)
        assert query(session)["source"] == "pretrained", "and no error"

    at("models", "", walk)


def test_a_field_that_its_model_has_not_any_more_is_not_heard(at):
    async def walk(session, socket):
        model = {"string_value": "Look both ways: 2 heads"}
        await at_once(session, socket, "model", model, "snapshot", {"string_array_value": ["110"]})
        assert query(session) == {"model": "look-both-ways-2"}, "this one has no such step"
        session.states.clear()
        model = {"string_value": MODELS["look-both-ways-1"].title}
        await at_once(session, socket, "model", model, "seed", {"string_value": "5"})
        assert query(session) == {"model": "look-both-ways-1", "seed": "5"}, "any model has a seed"

    at("models", "", walk)


def test_two_changes_that_arrive_at_once_both_count(at):
    async def walk(session, socket):
        session.states["num_heads"] = {"string_value": "1"}
        await session.change(socket, "view_source", string_value="tiny case, worked by hand")
        assert query(session)["case"] == "tiny"
        session.states.clear()
        session.states["seed"] = {"string_value": "9"}
        await session.change(socket, "causal", bool_value=True)
        assert query(session)["seed"] == "9" and query(session)["causal"] == "1"

    at("", "", walk)


def test_a_change_of_an_address_that_was_left_by_back_changes_nothing(at):
    async def walk(session, socket):
        await session.change(socket, "seed", string_value="8")
        session.address = "embed_dim=64"  # Back, or a link
        session.states.clear()
        form_of_before = dict(session.ids)
        await session.ask(socket)
        session.ids = form_of_before
        session.states["seed"] = {"string_value": "7"}
        await session.ask(socket)
        assert query(session) == {"embed_dim": "64"}

    at("", "", walk)


def test_a_page_of_which_nothing_is_drawn_answers_with_the_whole(at):
    """A fragment that is asked for where the page has none of it: the next whole page is complete."""

    async def walk(session, socket):
        await choose(session, socket, "file")  # nothing is open
        await late(session, socket, "view_item", string_value="batch item 1")
        session.states.clear()
        await choose(session, socket, "trained")
        assert "page_link" in kinds(session) and {"bidi_component", "kept"} & set(kinds(session))

    at("models", "", walk)


def test_who_asks_for_the_whole_page_gets_it(at):
    """What was on its way to a browser is thrown away when it asks for the whole page: no part of it may be left out then."""

    async def walk(session, socket):
        session.states["seed"] = {"string_value": "8"}
        await session.ask(socket)
        assert {"page_link", "text_input", "bidi_component"} <= set(kinds(session))
        session.states["seed"] = {"string_value": "9"}
        await session.send(socket, session.message(session.ids["seed"][1]))
        assert "bidi_component" in kinds(session) and "text_input" not in kinds(session)

    at("", "", walk)


def test_a_control_of_a_form_that_was_left_is_not_heard():
    def page():
        import streamlit as st

        from mha_viz.app.drawing import heard, renew

        renew()
        about, pressed = ["one"], st.session_state.setdefault("pressed", [])
        late, of_one = heard(lambda: pressed.append("late")), heard(lambda: pressed.append("of one"), of=lambda: about[0])
        renew()
        late()
        now, of_two = heard(lambda: pressed.append("now")), heard(lambda: pressed.append("of two"), of=lambda: about[0])
        about[0] = "two"
        for press in (now, of_one, of_two):
            press()

    assert AppTest.from_function(page).run().session_state.pressed == ["now"]


def test_a_press_is_heard_to_its_end_whatever_the_browser_asks_for_meanwhile():
    def page():
        import streamlit as st
        from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

        from mha_viz.app.drawing import heard

        def press():
            get_script_run_ctx().script_requests.request_rerun(RerunData())  # as a quick hand's next press does
            st.session_state.first = True
            st.session_state.second = st.session_state.first

        st.button("press", on_click=heard(press))

    at = AppTest.from_function(page).run()
    at = at.button[0].click().run()
    assert at.session_state.first and at.session_state.second


def test_every_callback_goes_the_one_way():
    """Whatever a page calls back stands in ``heard``: an argument of that name, by keyword or in a dict, is nothing else."""
    strays = []
    for path in sorted((ROOT / "mha_viz" / "app").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            pairs = [(one.arg, one.value) for one in getattr(node, "keywords", [])]
            if isinstance(node, ast.Dict):
                pairs += [(getattr(key, "value", None), value) for key, value in zip(node.keys, node.values, strict=True)]
            for name, value in pairs:
                own = isinstance(value, ast.Call) and getattr(value.func, "id", None) == "heard"
                said = isinstance(value, ast.Constant) and value.value in ("rerun", "ignore", None)
                if name in CALLED and not own and not said:
                    strays.append(f"{path.name}:{value.lineno} {name}={ast.unparse(value)}")
    assert strays == []
