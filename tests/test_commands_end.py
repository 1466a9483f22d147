"""How commands end that cannot go on: Ctrl-C, nobody who reads, no room, no such place. No traceback, and no half-written file."""

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from mha_viz.__main__ import STOPPED, UNREAD, main
from mha_viz.core.rules import Wrong
from mha_viz.core.whole_file import check_folder, whole_file
from mha_viz.export.figure import FORMATS, PICTURES
from mha_viz.studies.training import train, write

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """What is begun here hears Ctrl-C, also where the tests are a job in the background of a shell: such a job ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def begun(folder, *arguments, **options):
    """The process of a command that works in ``folder``, its output to be read."""
    command = [sys.executable, "-m", "mha_viz", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, start_new_session=True, **options)


# Ctrl-C

SECONDS_OF_CHECKS = ["validate", "--address", "?seq_len=256&batch_size=8"]  # not done before the signal or the reader's end
LONG = {  # by command: its arguments, and how many lines it prints before it is stopped
    "validate": (SECONDS_OF_CHECKS, 3),
    "validate --json": ([*SECONDS_OF_CHECKS, "--json"], 0),
    "train": (["train", "induction", "--steps", "5000", "--out", "made"], 1),
    "quality": (["quality", "--num-heads", "1,2", "--seeds", "3", "--steps", "3", "--out", "made"], 1),
    "profile": (["profile", "--seq-len", "512", "--repeats", "500"], 0),
    "export": (["export", "--out", "figure.npz"], 0),
    "export --batch": (["export", "--batch", "figures.toml"], 2),
    "run": (["run", "--port", "{free}"], 0),
}


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_without_a_traceback_and_leaves_whole_files(name, tmp_path):
    (tmp_path / "figures.toml").write_text("\n".join(f'[[figure]]\nout = "{i}.npz"' for i in range(500)))
    arguments, lines = LONG[name]
    process = begun(tmp_path, *[given.format(free=free_port()) for given in arguments])
    for _ in range(lines):
        process.stdout.readline()
    if not lines:
        in_the_midst_of_its_imports(process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all that it started
    said = process.communicate(timeout=60)[1]
    assert process.returncode in (STOPPED, -signal.SIGINT), said  # which a shell calls 130 as well
    assert "Traceback" not in said and "KeyboardInterrupt" not in said
    assert not list(tmp_path.rglob("*.part"))
    for path in tmp_path.rglob("*.npz"):
        np.load(path).close()


def in_the_midst_of_its_imports(process):
    """Wait until the process has loaded NumPy: what it imports for its work comes next."""
    maps = Path(f"/proc/{process.pid}/maps")
    while "numpy" not in maps.read_text():
        assert process.poll() is None, "it has ended already"
        time.sleep(0.01)


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


# Nobody reads


@pytest.mark.parametrize(("arguments", "lines"), [(SECONDS_OF_CHECKS, 1), (["validate", "--json"], 0)], ids=["lines", "json"])
def test_a_reader_that_has_gone_is_no_failed_check(arguments, lines, tmp_path):
    process = begun(tmp_path, *arguments)
    for _ in range(lines):
        process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(60) == UNREAD and said == ""


def test_output_that_cannot_be_written_is_said(tmp_path):
    with Path("/dev/full").open("w") as full:
        process = begun(tmp_path, "validate", stdout=full)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 2 and said == "python -m mha_viz validate: No space left on device\n"


# No room, no such place


@contextmanager
def full_disk():
    """No file grows beyond 100 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_full_disk_leaves_no_half_file_of_any_format(ending, tmp_path, monkeypatch, capsys, request):
    if ending in PICTURES:
        request.getfixturevalue("chromium_path")
    usual = Path.write_bytes

    def limited(path, data):
        with full_disk():
            return usual(path, data)

    monkeypatch.setattr(Path, "write_bytes", limited)
    old = tmp_path / f"figure.{ending}"
    old.touch()
    assert main(["export", "--out", str(old)]) == 2
    assert os.strerror(errno.EFBIG) in capsys.readouterr().err
    assert old.read_bytes() == b"" and os.listdir(tmp_path) == [old.name]


def test_a_full_disk_leaves_no_half_model(tmp_path):
    reports = list(train("induction", steps=1))
    with full_disk(), pytest.raises(Wrong, match="cannot be written"):
        write("induction", reports, tmp_path, steps=1)
    assert os.listdir(tmp_path) == []


PLACES = {"missing": "/proc/gone", "a file": "taken", "below a file": "taken/below"}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("arguments", [["train", "induction"], ["quality"]], ids=lambda arguments: arguments[0])
def test_a_place_that_does_not_do_is_told_before_minutes_of_training(arguments, place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").touch()
    monkeypatch.setattr("mha_viz.studies.training.train", lambda *_: pytest.fail("trains"))
    monkeypatch.setattr("mha_viz.studies.quality.study", lambda *_: pytest.fail("trains"))
    assert main([*arguments, "--out", place]) == 2
    assert f"out = '{place}': cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["gone/figure.json", "taken/figure.json", "folder.json"])
def test_a_figure_that_has_no_place_is_told(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").touch()
    (tmp_path / "folder.json").mkdir()
    assert main(["export", "--out", place]) == 2
    assert f"out = '{place}'" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["folder.json", "taken"]


def test_a_whole_file_replaces_the_old_one_alone_when_it_is_whole(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as temporary:
        temporary.write_text("half of the n")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a.json"]
    with whole_file(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["a.json"]
    check_folder(tmp_path / "deep" / "down")
    assert (tmp_path / "deep" / "down").is_dir()


@pytest.mark.parametrize(("port", "right"), [("99999", 8501), ("0", 8501), ("-1", 8501)])
def test_a_number_that_is_no_port(port, right, capsys):
    assert main(["run", f"--port={port}"]) == 2
    assert f"port = {port}: must be a whole number from 1 to 65535. Nearest right: port = {right}." in capsys.readouterr().err


def test_a_port_that_is_taken(capsys):
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
        assert main(["run", "--port", str(port)]) == 2
    assert f"port = {port}: cannot be served on: Address already in use. Nearest right: port = " in capsys.readouterr().err


LOST = """
import signal, sys, time, weakref
from mha_viz.__main__ import hear_again
sys.unraisablehook = hear_again
class Module: pass
module = Module()
lock = weakref.ref(module, lambda _: signal.raise_signal(signal.SIGINT))
try:
    del module
    time.sleep(2)
    print("lost")
except KeyboardInterrupt:
    print("heard")
"""


SWALLOWED = """
import signal, sys
from mha_viz import __main__ as program
def main(program):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("PyCapsule_Import could not import a module")
program.main = main
sys.exit(program.listening("mha-viz"))
"""


def test_ctrl_c_in_an_import_of_c_code_is_heard(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", SWALLOWED], env=environment, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (STOPPED, "mha-viz: stopped\n")


def test_ctrl_c_in_a_callback_is_heard(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", LOST], env=environment, capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("heard\n", "")
