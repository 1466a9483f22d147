"""What goes over the wire when something changes: what a control does not affect is not sent again."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import websockets

from tests.protocol import Session

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture(scope="module")
def after(serve):
    """``after(change)``: what is sent after a change of an open page, as (kind, bytes) in order."""
    url = serve(APP).removeprefix("http://")

    async def open_and(change):
        session = Session(0)
        async with websockets.connect(f"ws://{url}/_stcore/stream", subprotocols=["streamlit"], max_size=None) as socket:
            await session.ask(socket)
            await change(session, socket)
            return session.received

    with ThreadPoolExecutor(1) as thread:  # Playwright keeps an event loop of its own running in the main one
        yield lambda change: thread.submit(asyncio.run, open_and(change)).result()


def kinds(received):
    return [kind for kind, _ in received]


def test_a_first_visit_is_sent_the_whole_page_and_nothing_that_is_folded(after):
    received = after(lambda session, socket: session.ask(socket))
    assert kinds(received).count("text_input") == 6


@pytest.mark.parametrize("change", [Session.seed, Session.padding])
def test_a_setting_sends_the_picture_and_no_control(after, change):
    received = after(change)
    assert "bidi_component" in kinds(received)
    assert not {"number_input", "text_input", "selectbox"} & set(kinds(received))


def test_a_chosen_cell_sends_the_picture_and_no_control(after):
    received = after(Session.head)
    assert "bidi_component" in kinds(received)
    assert not {"number_input", "text_input", "selectbox"} & set(kinds(received))


def test_the_layout_sends_new_shapes_and_no_picture(after):
    received = after(lambda session, socket: session.change(socket, "batch_first", string_array_value=["sequence first"]))
    assert "html" in kinds(received) and "bidi_component" not in kinds(received)
    assert sum(size for _, size in received) < 20_000, "the picture alone has more than 60 kB"


def test_the_same_picture_is_not_sent_twice(after):
    async def there_and_back(session, socket):
        await session.change(socket, "causal", bool_value=True)
        await session.change(socket, "causal", bool_value=False)

    assert "bidi_component" not in kinds(after(there_and_back))
