"""Fixtures for every test: a real Chromium, and a Streamlit server on a port of its own."""

import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: its threads must not spin against each other

ROOT = Path(__file__).parents[1]
TO_END = 60  # seconds that a server may take to end on a slow machine
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Whatever asks for a browser, itself or for what it is given, is marked so."""
    for item in items:
        if "chromium_path" in item.fixturenames:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium_path():
    """Where Chromium is; skips where none is on the PATH, fails there if MHA_REQUIRE_BROWSER=1."""
    from mha_viz.export.browser import installed

    path = installed()
    if path is None:
        reason = "no Chromium on the PATH: browser tests need one (Debian: apt-get install chromium)"
        if os.environ.get("MHA_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def chromium(chromium_path):
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def serve():
    """``serve(script)`` starts ``streamlit run script`` and returns its address; the same script is served once."""
    running = {}

    def start(script, **env):
        script = str(ROOT / script)
        key = (script, *sorted(env.items()))
        if key not in running:
            port = free_port()
            command = [sys.executable, "-m", "streamlit", "run", script, f"--server.port={port}", "--server.headless=true"]
            environment = os.environ | {"PYTHONPATH": str(ROOT)} | env
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running[key] = process, f"http://localhost:{port}"
            wait_until_healthy(*running[key])
        return running[key][1]

    yield start
    for process, _ in running.values():
        process.terminate()
    for process, _ in running.values():
        process.wait(TO_END)


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def wait_until_healthy(process, url, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"streamlit ended with status {process.returncode} before it served {url}")
        try:
            if urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).read() == b"ok":
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"{url} did not answer within {seconds} s")


@pytest.fixture(autouse=True)
def same_numbers():
    """What a test draws without a seed is the same whichever tests ran before it in its worker."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def same_threads():
    """Commands that train take one thread, each in a process of its own; a test that runs one here leaves the others theirs.

    With another number of threads sums are added in another order, and the last bit changes.
    """
    threads = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None
    yield
    if threads is not None:
        sys.modules["torch"].set_num_threads(threads)
