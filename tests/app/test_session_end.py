"""What a session began ends when its browser is gone: no process and no computation of it goes on."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import websockets

from tests.protocol import Session

APP = Path(__file__).parents[2] / "app.py"
PATIENCE = 30


def workers():
    """The profile workers of every server that these tests have started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "mha_viz.studies.profile_worker" in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


def test_a_tab_that_closes_takes_its_profile_workers_with_it(serve):
    url = serve(APP).removeprefix("http://")

    async def measure_and_leave():
        session = Session(0)
        session.page, session.address = "profile", "embed_dim=64&num_heads=2&seq_len=2048&repeats=50"
        async with websockets.connect(f"ws://{url}/_stcore/stream", subprotocols=["streamlit"], max_size=None) as socket:
            await session.ask(socket)
            await session.press(socket, "profile_go")
            begun = workers()
        return begun

    before = set(workers())
    with ThreadPoolExecutor(1) as thread:  # Playwright keeps an event loop of its own running in the main one
        begun = set(thread.submit(asyncio.run, measure_and_leave()).result()) - before
    assert begun, "nothing was measured: there is nothing to end"
    until = time.monotonic() + PATIENCE
    while begun & set(workers()) and time.monotonic() < until:
        time.sleep(0.1)
    assert not begun & set(workers())
