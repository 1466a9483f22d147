"""The package as somebody else has it: a wheel, installed in an environment of its own and used from an empty folder.

``make test-wheel`` runs it. The environment borrows the libraries of this one, so that nothing is downloaded; no file of the checkout is on
its path.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import numpy as np
import psutil
import pytest

import mha_viz as mv
from mha_viz.commands import COMMANDS
from tests.conftest import ROOT, TO_END, free_port, wait_until_healthy

TINY = ["--embed-dim", "8", "--num-heads", "2", "--seq-len", "4", "--repeats", "1"]


class Installation:
    """The installed package: ``python`` and ``command`` run from ``folder``, which holds what they write and is empty at first."""

    def __init__(self, environment, folder):
        self.bin = environment / ("Scripts" if os.name == "nt" else "bin")
        self.folder = folder
        self.variables = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MHA_", "STREAMLIT_"))
        }
        self.variables |= {"HOME": str(folder), "USERPROFILE": str(folder)}  # without Streamlit settings of whoever tests

    def run(self, program, *arguments, status=0):
        """What a program prints, and what it complains of, which is no traceback."""
        command = [str(self.bin / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    def python(self, code):
        """What the code prints, as JSON."""
        return json.loads(self.run("python", "-c", code)[0])

    def command(self, *arguments, status=0):
        return self.run("mha-viz", *arguments, status=status)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder / "wheel", ROOT], check=True)
    venv.create(folder / "venv")
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    site.joinpath("borrowed.pth").write_text(sysconfig.get_path("purelib"))
    (wheel,) = (folder / "wheel").glob("*.whl")
    subprocess.run([*pip, f"--python={folder / 'venv'}", "install", "--no-deps", "--no-index", wheel], check=True)
    (folder / "empty").mkdir()
    return Installation(folder / "venv", folder / "empty")


def test_the_package_is_the_wheels_and_says_its_version(installed):
    said = installed.python(
        "import json, sys, mha_viz; print(json.dumps([mha_viz.__file__, mha_viz.__version__, 'torch' in sys.modules]))"
    )
    assert not Path(said[0]).is_relative_to(ROOT) and Path(said[0]).is_relative_to(installed.bin.parent)
    assert said[1:] == [mv.__version__, False]
    assert installed.command("--version") == (f"mha-viz {mv.__version__}\n", "")
    assert Path(said[0]).with_name("py.typed").is_file()


def test_a_trained_model_runs(installed):
    said = installed.python(
        "import json, mha_viz as mv\n"
        "run = mv.trained(mv.Trained('induction', words='<bos> m a r c h i n g m a r c h'))\n"
        "print(json.dumps([run.predictions[0, -1].tolist(), len(run.recording.traces), len(mv.heads(run).data) > 8]))"
    )
    assert said == [["i"], 2, True], "what followed h last time, from two layers"


def test_a_recording_is_made_saved_loaded_and_exported(installed):
    shapes = installed.python(
        "import json, torch, mha_viz as mv\n"
        "model = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True).eval()\n"
        "with mv.record(model) as recording:\n"
        "    model(torch.randn(2, 5, 16))\n"
        "recording.save('run.safetensors')\n"
        "print(json.dumps([trace.weights.shape for trace in mv.load('run.safetensors').traces]))"
    )
    assert shapes == [[2, 4, 5, 5]]
    installed.command("export", "--recording", "run.safetensors", "--view", "heads", "--out", "heads.html")
    page = (installed.folder / "heads.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "Plotly" in page


def test_a_figure_is_exported_in_each_kind_of_format(installed, chromium_path):
    endings = ("json", "npz", "csv", "md", "py", "svg", "pdf", "png")
    figures = [f'[[figure]]\naddress = "?num_heads=4&causal=1"\nout = "layer.{ending}"\n' for ending in endings]
    (installed.folder / "figures.toml").write_text("".join(figures))
    installed.command("export", "--batch", "figures.toml")
    begins = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG"}
    assert all((installed.folder / f"layer.{ending}").read_bytes().startswith(magic) for ending, magic in begins.items())
    with np.load(installed.folder / "layer.npz") as arrays:
        np.testing.assert_array_equal(arrays["weights"], mv.synthetic(mv.Settings(num_heads=4, causal=True)).weights)
    assert f"MHA Explorer {mv.__version__}" in (installed.folder / "layer.md").read_text(encoding="utf-8")


def test_a_page_is_exported_as_the_app_shows_it(installed, chromium_path):
    installed.command("export", "--view", "screen", "--out", "page.png")
    assert (installed.folder / "page.png").read_bytes().startswith(b"\x89PNG")


def test_every_command_runs(installed):
    assert all(name in installed.command("--help")[0] for name in COMMANDS)
    assert (
        "count as neither"
        in installed.command("validate", "--address", "?embed_dim=8&num_heads=2&batch_size=1&seq_len=3&padding=")[0]
    )
    assert json.loads(installed.command("profile", *TINY, "--json")[0])["machine"]["torch"]
    installed.command("train", "induction", "--steps", "1", "--out", "made")
    installed.command("quality", "--num-heads", "1", "--seeds", "1", "--steps", "1", "--out", "made")
    assert {path.name for path in (installed.folder / "made").iterdir()} >= {
        "induction.safetensors",
        "quality-look-both-ways.json",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", "--batch", "docs/figures.toml"], "batch = 'docs/figures.toml': "),
        (["train", "induction"], "out = None: is needed: the folder to write into"),
        (["quality"], "out = None: is needed: the folder to write into"),
        (["run", "gone.safetensors"], "no such file"),
        (["export", "--address", "?source=pretrained&name=./model", "--out", "a.json"], "./model"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_what_a_checkout_alone_has_is_missed_politely(installed, arguments, said):
    complaint = installed.command(*arguments, status=2)[1]
    assert complaint.startswith(f"mha-viz {arguments[0]}: ") and said in complaint


@pytest.fixture
def app(installed):
    """The address of the app, and its process."""
    port = free_port()
    command = [str(installed.bin / "mha-viz"), "run", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, cwd=installed.folder, env=installed.variables, **quiet)
    try:
        wait_until_healthy(server, f"http://localhost:{port}")
        yield f"http://localhost:{port}", psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait(TO_END)


def test_the_app_has_the_checkouts_settings(installed, app):
    package = Path(installed.python("import json, mha_viz; print(json.dumps(mha_viz.__path__))")[0])
    for name in ("app.py", ".streamlit/config.toml"):
        assert (package / "start" / name).read_bytes() == (ROOT / name).read_bytes()
    listening = [one.laddr.ip for one in app[1].net_connections("inet") if one.status == psutil.CONN_LISTEN]
    assert listening and set(listening) <= {"127.0.0.1", "::1"}, "server.address"


def test_the_first_page_shows_its_picture_and_looks_as_it_is_set(app, chromium):
    url, _ = app
    page = chromium.new_page(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    missing = []
    page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
    page.goto(url)
    page.locator(".js-plotly-plot .hm, .js-plotly-plot canvas, .js-plotly-plot image").first.wait_for(timeout=60_000)
    page.get_by_role("link", name="Decode").click()
    page.locator(".js-plotly-plot").first.wait_for(timeout=60_000)
    assert page.url.startswith(f"{url}/decode") and page.title() == "MHA Explorer"
    ground = page.locator("[data-testid=stApp]").evaluate("element => getComputedStyle(element).color")
    assert ground == "rgb(240, 242, 246)", "textColor of theme.dark"
    assert page.locator("[data-testid=stAppDeployButton]").count() == 0, "client.toolbarMode"
    assert missing == []
    page.close()
