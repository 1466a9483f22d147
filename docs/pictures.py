"""Makes the README's pictures: the app itself, in headless Chromium. ``make pictures``."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402

from tests.conftest import QUIET, free_port, wait_until_healthy  # noqa: E402

WORDS = "the cat sat on the mat because the cat was tired%0Athe dog slept"
PICTURES = {
    "first_screen.png": ("light", f"?words={WORDS}&padding=3&positions=1"),
    "compare.png": ("dark", "?pinned=seed%3D7&causal=1"),
    "models.png": ("light", "models?layer=1&head=2&cell=20,7"),
}


def main():
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), f"--server.port={port}"]
    server = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}, stdout=subprocess.DEVNULL)
    try:
        url = f"http://localhost:{port}"
        wait_until_healthy(server, url)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
            for name, (scheme, address) in PICTURES.items():
                page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
                page.goto(f"{url}/{address}")
                page.wait_for_selector(".mha-maps .main-svg")
                page.wait_for_function("!document.querySelector('[data-testid=stStatusWidget]')")
                page.wait_for_timeout(1000)  # Plotly's last frame
                page.screenshot(path=ROOT / "docs" / name)
                page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait(10)


if __name__ == "__main__":
    main()
