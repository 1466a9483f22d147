"""``python -m mha_viz``: a file is looked at before a server is started for it, and checks say how they went by their status."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import mha_viz as mv
from mha_viz.__main__ import main
from mha_viz.settings.environment import FILE, MODELS_FOLDERS


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The command that would replace this process, and its environment; the working folder is one that is thrown away."""
    seen = {}
    monkeypatch.setattr(os, "execv", lambda program, arguments: seen.update(arguments=arguments, environment=dict(os.environ)))
    for name in (FILE, MODELS_FOLDERS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.chdir(tmp_path)
    return seen


def test_the_app_is_served_on_a_port(started):
    main(["run", "--port", "8600"])
    assert started["arguments"][0] == sys.executable and started["arguments"][4] == "run"
    assert started["arguments"][-1] == "--server.port=8600"
    assert FILE not in started["environment"]


def test_a_file_reaches_the_app_by_its_absolute_path(started, tmp_path):
    np.save(tmp_path / "attention.npy", np.full((2, 3, 3), 1 / 3))
    main(["run", "attention.npy"])
    assert started["environment"][FILE] == str(tmp_path / "attention.npy")


def test_folders_of_models_reach_the_app_by_their_absolute_paths(started, tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    main(["run", "--models-folder", "a", "--models-folder", str(tmp_path / "b")])
    assert started["environment"][MODELS_FOLDERS] == os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")])
    started.clear()
    assert main(["run", "--models-folder", "c"]) == 2 and not started
    assert "must be a folder that exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("gone.npy", None, "no such file"), ("empty.npy", b"", "is empty"), ("scores.json", b"[1, 2]", "must be token lists")],
)
def test_a_file_that_cannot_be_opened_starts_nothing(started, tmp_path, capsys, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["run", name]) == 2
    assert said in capsys.readouterr().err
    assert not started


@pytest.mark.parametrize(
    ("arguments", "status"),
    [([], 0), (["--address", "?training=1"], 1), (["--address", "?embed_dim=7"], 2), (["gone.safetensors"], 2)],
)
def test_validate_says_by_its_status_whether_a_check_fails(capsys, arguments, status):
    assert main(["validate", *arguments]) == status
    said = capsys.readouterr()
    assert ("cannot run and count as neither" in said.out) == (status < 2)
    assert bool(said.err) == (status == 2)


def test_validate_as_json(capsys, tmp_path):
    (tmp_path / "settings.json").write_text('{"embed_dim": 8, "num_heads": 2, "seq_len": 4, "padding": [1]}')
    assert main(["validate", str(tmp_path / "settings.json"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"row_sums", "gradcheck", "fast_path"} <= {check["name"] for check in told["checks"]}
    assert {check["verdict"] for check in told["checks"]} == {"pass", "cannot run"}
    assert "torch" in told["versions"]


def test_validate_takes_a_file_or_an_address(capsys):
    assert main(["validate", "settings.json", "--address", "?seed=8"]) == 2
    assert "not both" in capsys.readouterr().err


PROFILED = ["--embed-dim", "8", "--num-heads", "2", "--seq-len", "4", "--need-weights", "on", "--repeats", "1"]


def test_profile_prints_a_table_and_json_that_it_reads(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("mha_viz.studies.profiling.measure.__defaults__", (Answering, None))
    assert main(["profile", *PROFILED]) == 0
    said = capsys.readouterr().out
    assert (
        "yes          2       4    1.000 ms" in said and "1 KiB" in said and "python -m mha_viz profile --embed-dim 8" in said
    )
    assert main(["profile", *PROFILED, "--json"]) == 0
    (tmp_path / "found.json").write_text(capsys.readouterr().out)
    assert main(["profile", "--load", str(tmp_path / "found.json")]) == 0
    assert "1.000 ms" in capsys.readouterr().out


class Answering:
    """A worker that measures nothing: a call takes a millisecond and a KiB."""

    closed = False

    def __init__(self, threads):
        pass

    def ask(self, **request):
        self.value = 1024 if request["do"] == "peak" else 0.001

    def said(self):
        return {"value": self.value}

    def close(self):
        self.closed = True


def test_what_was_measured_is_told_where_somebody_stops(capsys, monkeypatch):
    def stopped(worker):
        if worker.value == 0.001:
            raise KeyboardInterrupt
        return {"value": worker.value}

    monkeypatch.setattr(Answering, "said", stopped)
    monkeypatch.setattr("mha_viz.studies.profiling.measure.__defaults__", (Answering, None))
    assert main(["profile", *PROFILED]) == 130
    said = capsys.readouterr()
    assert "1 KiB" in said.out and "stopped" in said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--num-heads", "3"], "128 = 3 × 42 + 2"),
        (["--seq-len", "64,x"], "'x' is not"),
        (["--load", "gone.json"], "cannot be read"),
        (["--load", "gone.json", "--repeats", "2"], "give one of them"),
    ],
)
def test_a_profile_that_makes_no_sense_measures_nothing(capsys, arguments, said):
    assert main(["profile", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_quality_trains_prints_and_writes(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("mha_viz.studies.quality.measure", lambda profile: ())
    assert main(["quality", "--num-heads", "1,2", "--seeds", "3", "--steps", "2", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "1 head, seed 3: right 0." in said and "2 heads 0." in said
    written = json.loads((tmp_path / "quality-look-both-ways.json").read_text())
    assert [one["num_heads"] for one in written["outcomes"]] == [1, 2] and written["profile"] is None


def test_quality_that_is_stopped_keeps_what_is_done_where_a_folder_is_named(capsys, monkeypatch, tmp_path):
    def stopped(profile):
        raise KeyboardInterrupt

    monkeypatch.setattr("mha_viz.studies.quality.measure", stopped)
    arguments = ["quality", "--num-heads", "1", "--seeds", "3", "--steps", "1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 130 and (tmp_path / "quality-look-both-ways.json").is_file()
    assert main(arguments) == 130 and "nothing is written over what ships" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sorting"], "must be one of look-both-ways"),
        (["--num-heads", "3"], "32 = 3 × 10 + 2"),
        (["--seeds", "one"], "'one' is not"),
    ],
)
def test_quality_of_what_makes_no_sense_trains_nothing(capsys, arguments, said):
    assert main(["quality", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on the PATH")
def test_make_passes_options_on():
    command = [
        "make",
        "-n",
        "--no-print-directory",
        "run",
        "ARGS=--class --port 8600",
    ]  # a make that runs the tests says its folder
    said = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True).stdout
    assert said.rstrip().endswith("-m mha_viz run --class --port 8600")


@pytest.mark.parametrize("command", [["validate"], ["run"], ["export", "--out", "a.json", "--recording"]])
def test_a_file_of_weights_that_do_not_fit_is_a_wrong(tmp_path, capsys, monkeypatch, command):
    """Kernels whose heads are of two sizes: status 2 and a sentence, never that of a failed check."""
    shapes = {"query": (16, 4, 4), "key": (16, 4, 3), "value": (16, 4, 4), "out": (4, 4, 16)}
    np.savez(tmp_path / "flax.npz", **{f"attn.{name}.kernel": np.ones(shape, np.float32) for name, shape in shapes.items()})
    monkeypatch.chdir(tmp_path)
    assert main([*command, "flax.npz"]) == 2
    said = capsys.readouterr().err
    assert "attn.key.kernel of shape (16, 4, 3)" in said
    assert "Traceback" not in said


def test_validate_takes_a_plain_state_dict_with_its_number_of_heads(capsys, tmp_path):
    path = tmp_path / "layer.pt"
    torch.save(torch.nn.MultiheadAttention(12, 3).state_dict(), path)
    assert main(["validate", str(path)]) == 2
    assert "num_heads = None: How many heads?" in capsys.readouterr().err
    assert main(["validate", str(path), "--num-heads", "5"]) == 2
    assert "num_heads = 5: must be one of 1, 2, 3, 4, 6, 12" in capsys.readouterr().err
    assert main(["validate", str(path), "--num-heads", "3"]) == 0
    assert "note        Your weights, random input: 20 tokens, drawn with seed 7." in capsys.readouterr().out
    assert main(["validate", "--num-heads", "3"]) == 2
    assert "is for a file of weights" in capsys.readouterr().err


def test_validate_says_what_the_page_says_beside_its_picture(capsys, tmp_path):
    """A mask of the numbers 0 and 1, and that dropout was on while it was recorded."""
    model = torch.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
    with mv.record(model) as recording:
        x = torch.randn(2, 4, 8)
        model(x, x, x, attn_mask=torch.tril(torch.ones(4, 4)))
    recording.save(tmp_path / "run.safetensors")
    main(["validate", str(tmp_path / "run.safetensors")])
    said = capsys.readouterr().out
    assert all(f"note        {note}" in said for note in recording.notes) and "dropout" in said.lower()
    assert "attn_mask holds the numbers 0 and 1 only" in said
    main(["validate", str(tmp_path / "run.safetensors"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["notes"] == list(recording.notes) and "holds the numbers 0 and 1 only" in told["findings"][0]["sentence"]


def test_validate_says_where_something_became_no_number(capsys, tmp_path):
    """Outside of attention as well, where no layer is to blame."""
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    model = torch.nn.Sequential()
    model.add_module("attention", attention)
    model.forward = lambda x: attention(x, x, x)[0] * float("nan")
    with mv.record(model, until="nonfinite") as recording:
        model(torch.ones(1, 3, 8))
    assert recording.cause is not None and recording.cause.trace is None
    recording.save(tmp_path / "run.safetensors")
    main(["validate", str(tmp_path / "run.safetensors")])
    said = capsys.readouterr()
    assert f"note        First not finite: {recording.cause.sentence}" in said.out and not said.err
