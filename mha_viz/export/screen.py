"""The page itself as a picture: the app is started for it, and ended after it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qsl
from urllib.request import urlopen

from mha_viz.core.rules import Wrong
from mha_viz.export.browser import Browser
from mha_viz.export.figure import Figure
from mha_viz.settings.environment import MODELS_FOLDERS
from mha_viz.settings.start import server_command
from mha_viz.sources.pretrained import names_folder

HIGH = 0.625  # of the width: a window of 1440 × 900
PATIENCE = 60  # seconds for the app to start


def screen(figure: Figure, browser: Browser) -> bytes:
    """The bytes of a PNG of the page of the Figure's address, as the app shows it, in a window as wide as the figure."""
    if figure.format != "png":
        right = str(Path(figure.out).with_suffix(".png"))
        raise Wrong("out", figure.out, "is of the page itself, which is saved as png.", [{"out": right}])
    if figure.settings or figure.recording:
        raise Wrong(
            "view", figure.view, "is the page of an address: give that, and no file.", [{"settings": None, "recording": None}]
        )
    width = round(figure.size[0])
    with served(folder_in(figure.address or "")) as url:
        return browser.screen(f"{url}/{figure.address or ''}", width, round(width * HIGH), figure.theme)


def folder_in(address: str) -> str:
    """The folder that an address names as a model: whoever asks for its page opens it. "" where it names none."""
    name = dict(parse_qsl(address.lstrip("?"))).get("name", "")
    return os.path.abspath(os.path.expanduser(name)) if name and names_folder(name) else ""


@contextmanager
def served(models_folder: str = "") -> Iterator[str]:
    """The address of an app that is served for as long as it is needed; addresses may name models in ``models_folder``."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    environment = os.environ | {MODELS_FOLDERS: models_folder}
    server = subprocess.Popen(server_command(port), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url, began = f"http://localhost:{port}", time.monotonic()
    try:
        while not healthy(url):
            if server.poll() is not None or time.monotonic() - began > PATIENCE:
                raise Wrong("view", "screen", "needs the app, which did not start: python -m mha_viz run says why.")
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait(10)


def healthy(url: str) -> bool:
    """Whether an app answers at this address."""
    try:
        return bool(urlopen(f"{url}/_stcore/health", timeout=1).read() == b"ok")
    except (URLError, TimeoutError, ConnectionError):
        return False
