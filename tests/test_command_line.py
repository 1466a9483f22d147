"""``python -m mha_viz run``: a file is looked at before a server is started for it."""

import os
import sys

import numpy as np
import pytest

from mha_viz import __main__ as command_line


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The command that would replace this process, and its environment; the working folder is one that is thrown away."""
    seen = {}
    monkeypatch.setattr(os, "execv", lambda program, arguments: seen.update(arguments=arguments, environment=dict(os.environ)))
    monkeypatch.delenv(command_line.FILE, raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.chdir(tmp_path)
    return seen


def test_the_app_is_served_on_a_port(started):
    command_line.main(["run", "--port", "8600"])
    assert started["arguments"][:4] == [sys.executable, "-m", "streamlit", "run"]
    assert started["arguments"][-1] == "--server.port=8600"
    assert command_line.FILE not in started["environment"]


def test_a_file_reaches_the_app_by_its_absolute_path(started, tmp_path):
    np.save(tmp_path / "attention.npy", np.full((2, 3, 3), 1 / 3))
    command_line.main(["run", "attention.npy"])
    assert started["environment"][command_line.FILE] == str(tmp_path / "attention.npy")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("gone.npy", None, "no such file"), ("empty.npy", b"", "is empty"), ("scores.json", b"[1, 2]", "must be token lists")],
)
def test_a_file_that_cannot_be_opened_starts_nothing(started, tmp_path, capsys, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        command_line.main(["run", name])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not started
