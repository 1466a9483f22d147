"""A server with one variant of the page, for as long as it is measured."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import ROOT, TO_END, free_port, wait_until_healthy

VARIANT = Path(__file__).with_name("variant.py")


@contextmanager
def serving(variant=""):
    """The address at which the page is served, with ``variant`` (see variant.py) taken away; the whole "app" as it is."""
    port = free_port()
    script = ROOT / "app.py" if variant == "app" else VARIANT
    command = [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}", "--server.headless=true"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MHA_BENCH": variant}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"localhost:{port}"
        wait_until_healthy(process, f"http://{url}")
        yield url
    finally:
        process.terminate()
        process.wait(TO_END)
