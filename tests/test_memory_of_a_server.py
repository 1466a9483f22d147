"""The memory of a server, in a process of its own: within its limit whoever opens a large layer, and given back when all have left."""

import asyncio
import contextlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import websockets

from tests.conftest import ROOT, TO_END, free_port, wait_until_healthy
from tests.protocol import Session

MB = 2**20
GIB_4 = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)); "
STREAMLIT = "from streamlit.web.cli import main; sys.argv[0] = 'streamlit'; main()"
LARGE = "seq_len=2048&num_heads=16&embed_dim=512&batch_size=1&padding="
PATIENCE = 30  # seconds until memory is back; sessions that could come back included

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="address space is limited as Linux does it"),
]


@contextlib.contextmanager
def limited():
    """(process, address) of a server that may use 4 GiB of address space."""
    port = free_port()
    command = [sys.executable, "-c", GIB_4 + STREAMLIT, "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_healthy(process, f"http://localhost:{port}")
        yield psutil.Process(process.pid), f"localhost:{port}"
    finally:
        process.terminate()
        process.wait(TO_END)


class Visit(Session):
    """A session that remembers what it was told, errors among it, and whether a picture came."""

    def __init__(self, number, address):
        super().__init__(number)
        self.address, self.said, self.pictures = address, [], 0

    def drawn(self, delta):
        kind = delta.new_element.WhichOneof("type")
        if kind in ("exception", "alert"):
            self.said.append(getattr(delta.new_element, kind).ListFields()[0][1])
        self.pictures += kind == "bidi_component"


async def visit(url, *addresses):
    """The Visits of people who open these addresses at once, and leave."""

    async def one(number, address):
        person = Visit(number, address)
        async with websockets.connect(
            f"ws://{url}/_stcore/stream", subprotocols=["streamlit"], max_size=None, open_timeout=120, ping_interval=None
        ) as socket:
            await person.ask(socket)
        return person

    return await asyncio.gather(*(one(number, address) for number, address in enumerate(addresses)))


def visited(url, *addresses):
    with ThreadPoolExecutor(1) as thread:  # Playwright keeps an event loop of its own running in the main one
        return thread.submit(asyncio.run, visit(url, *addresses)).result()


def settled(process, most):
    """The memory of a process once it is at most ``most``, or when patience ends."""
    until = time.monotonic() + PATIENCE
    while process.memory_info().rss > most and time.monotonic() < until:
        time.sleep(0.2)
    return process.memory_info().rss


def steady(process):
    """The memory of a process once it was the same, to a megabyte, for ten looks."""
    until, seen = time.monotonic() + PATIENCE, []
    while time.monotonic() < until:
        seen = [*seen[-9:], process.memory_info().rss]
        if len(seen) == 10 and max(seen) - min(seen) < MB:
            break
        time.sleep(0.2)
    return process.memory_info().rss


def test_large_layers_fit_and_are_given_back():
    with limited() as (process, url):
        visited(url, LARGE)  # what the first visitor brings stays: PyTorch, Plotly and the threads
        at_first = steady(process)
        for seed in range(3):
            (person,) = visited(url, f"{LARGE}&seed={seed}")
            assert person.pictures and not person.said
        assert settled(process, at_first + 100 * MB) < at_first + 100 * MB
        together = visited(url, *(f"{LARGE}&seed={seed}" for seed in range(10, 14)))
        assert process.is_running() and all(person.pictures or person.said for person in together)
        assert all("free" in str(said) for person in together for said in person.said), "what does not fit says so"
        (person,) = visited(url, "embed_dim=8192")  # 1 GiB of weights
        assert person.pictures and not person.said
        assert settled(process, at_first + 100 * MB) < at_first + 100 * MB
