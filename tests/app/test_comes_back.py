"""A browser that is gone: for a while its session waits for it, and then ends, with the files that were open in it."""

import asyncio
import os
import re
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from mha_viz.core.maps import trace_of_maps
from mha_viz.recording import Recording
from tests.conftest import ROOT, TO_END, free_port, wait_until_healthy
from tests.protocol import Session

pytestmark = pytest.mark.slow

SHORT, PATIENCE = 3, 60  # seconds that a session waits here, and a test at most
SERVER = """
import sys, threading, time
from mha_viz.core.budget import BUDGET
from streamlit import runtime
from streamlit.web.cli import main

def tell():  # what is held, twice a second
    while True:
        time.sleep(0.5)
        if not runtime.exists():
            continue
        try:
            sessions = len(runtime.get_instance()._session_mgr.list_sessions())
            files = len(runtime.get_instance()._uploaded_file_mgr.file_storage)
        except (AttributeError, RuntimeError):  # it is starting, or a session came or went meanwhile
            continue
        print(f"{sessions} {BUDGET.opened} {files}", flush=True)

threading.Thread(target=tell, daemon=True).start()
sys.argv[0] = "streamlit"
main()
"""


class Server:
    """A server that says what it holds: sessions, bytes counted for what they have open, uploaded files."""

    def __init__(self):
        port = free_port()
        how = f"--server.port={port} --server.headless=true --server.enableXsrfProtection=false --server.disconnectedSessionTTL={SHORT}"
        command = [sys.executable, "-c", SERVER, "run", "app.py", *how.split()]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)
        self.address = f"localhost:{port}"
        wait_until_healthy(self.process, f"http://{self.address}")

    def wait_for(self, right):
        """What it says once ``right(sessions, bytes, files)``, or when patience ends."""
        until = time.monotonic() + PATIENCE
        for line in self.process.stdout:
            if re.fullmatch(r"\d+ \d+ \d+\n", line):
                now = tuple(map(int, line.split()))
                if right(*now) or time.monotonic() > until:
                    return now
        raise RuntimeError("the server ended")


@pytest.fixture
def server():
    server = Server()
    yield server
    server.process.terminate()
    server.process.wait(TO_END)


class Uploader(Session):
    """A session that opens a file."""

    def drawn(self, delta):
        super().drawn(delta)
        if delta.new_element.WhichOneof("type") == "file_uploader":
            self.uploader = delta.new_element.file_uploader.id, delta.fragment_id

    async def upload(self, url, socket, name, data):
        asked = BackMsg()
        asked.file_urls_request.request_id = "1"
        asked.file_urls_request.file_names.append(name)
        await socket.send(asked.SerializeToString())
        answer = ForwardMsg()
        while answer.WhichOneof("type") != "file_urls_response":
            answer.ParseFromString(await socket.recv())
        (place,) = answer.file_urls_response.file_urls
        await asyncio.to_thread(put, f"http://{url}{place.upload_url}", name, data)
        message = self.message(self.uploader[1])
        held = message.rerun_script.widget_states.widgets.add(id=self.uploader[0]).file_uploader_state_value
        held.uploaded_file_info.add(file_id=place.file_id, name=name, size=len(data), file_urls=place)
        await self.send(socket, message)


def put(url, name, data):
    edge = "----edge"
    about = f'Content-Disposition: form-data; name="file"; filename="{name}"'
    body = f"--{edge}\r\n{about}\r\n\r\n".encode() + data + f"\r\n--{edge}--\r\n".encode()
    how = {"Content-Type": f"multipart/form-data; boundary={edge}"}
    with urllib.request.urlopen(urllib.request.Request(url, body, how, method="PUT"), timeout=30) as answer:
        assert answer.status in (200, 204)


def run(work):
    with ThreadPoolExecutor(1) as thread:  # Playwright keeps an event loop of its own running in the main one
        return thread.submit(asyncio.run, work).result()


def test_a_session_ends_with_its_files_once_nobody_can_come_back_to_it(server, tmp_path):
    maps = np.random.default_rng(0).dirichlet(np.ones(200), (1, 4, 200)).astype(np.float32)  # [1, 4, 200, 200]
    Recording((trace_of_maps(maps, name="uploaded"),)).save(tmp_path / "run.safetensors")

    async def open_and_leave():
        person = Uploader(0)
        person.address = "source=file"
        async with websockets.connect(
            f"ws://{server.address}/_stcore/stream", subprotocols=["streamlit"], max_size=None, ping_interval=None
        ) as socket:
            await person.ask(socket)
            await person.upload(server.address, socket, "run.safetensors", (tmp_path / "run.safetensors").read_bytes())
            return await asyncio.to_thread(server.wait_for, lambda sessions, opened, files: opened)

    sessions, opened, files = run(open_and_leave())
    assert sessions == 1 and files == 1
    assert maps.nbytes < opened < 2 * maps.nbytes, "the file that is open is counted"
    assert server.wait_for(lambda *held: not any(held)) == (0, 0, 0), "nothing of a session outlives it"
