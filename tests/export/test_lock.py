"""What a document's figures were made of is kept, and each way in which one can be out of date is found."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mha_viz.__main__ import main
from mha_viz.export.figure import Figure
from mha_viz.export.lock import lock_of, recorded, stale
from mha_viz.export.make import spec_of

SMALL = "?embed_dim=8&num_heads=2&seq_len=4&padding="
ASKED = Figure(out="a.json", address=SMALL, view="pair")


@pytest.fixture
def document(tmp_path):
    (tmp_path / "figures.toml").write_text(f"[[figure]]\nout = 'a.json'\naddress = '{SMALL}'\nview = 'pair'\n")
    assert main(["export", "--batch", str(tmp_path / "figures.toml")]) == 0
    return tmp_path


def checked(folder):
    return main(["export", "--batch", str(folder / "figures.toml"), "--check"])


def test_what_was_just_made_is_up_to_date(document, capsys):
    assert checked(document) == 0
    assert "all 1 figures are as they say" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "a.json").unlink(), "is not there"),
        (lambda folder: (folder / "a.json").write_text("{}"), "was changed"),
        (lambda folder: rewritten(folder, "view = 'pair'", "view = 'head'"), "asked for differently"),
        (lambda folder: rewritten(folder, "[[figure]]", "[[figure]]\nout = 'b.json'\n[[figure]]"), "b.json was never made"),
        (lambda folder: locked(folder, words="0"), "say something else"),
        (lambda folder: locked(folder, numbers=lambda found: [number * 1.01 for number in found]), "other numbers"),
    ],
)
def test_each_way_to_be_out_of_date_is_found(document, capsys, change, said):
    change(document)
    assert checked(document) == 1
    assert said in capsys.readouterr().out


def rewritten(folder, old, new):
    path = folder / "figures.toml"
    path.write_text(path.read_text().replace(old, new))


def locked(folder, **changes):
    """The record with these changes."""
    path = lock_of(folder / "figures.toml")
    held = json.loads(path.read_text())
    for name, change in changes.items():
        held["a.json"][name] = change(held["a.json"][name]) if callable(change) else change
    path.write_text(json.dumps(held))


def test_last_digits_of_another_machine_are_no_change(document):
    spec = spec_of(ASKED)
    record = recorded(ASKED, spec, document)
    for trace in spec["data"]:
        if trace["type"] == "heatmap":
            trace["z"] = np.nextafter(trace["z"], 1, dtype=np.float32)
    assert stale(ASKED, spec, record, document) is None
    assert stale(replace(ASKED, heads="1"), spec, record, document) == "is asked for differently now"


def test_a_figure_that_cannot_be_made_takes_no_record_away(document, capsys):
    with (document / "figures.toml").open("a") as file:
        file.write("[[figure]]\nout = 'b.json'\nheads = '99'\n")
    rewritten(document, "out = 'a.json'", "out = 'z.json'\nheads = '99'\n[[figure]]\nout = 'a.json'")
    assert main(["export", "--batch", str(document / "figures.toml")]) == 2
    assert list(json.loads(lock_of(document / "figures.toml").read_text())) == ["a.json"]


def test_without_a_record_it_says_how_to_make_one(tmp_path, capsys):
    (tmp_path / "figures.toml").write_text("[[figure]]\nout = 'a.json'\n")
    assert checked(tmp_path) == 2
    assert "no record of its figures yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[" * 100_000,
        "[]",
        '{"a.json": 3}',
        '{"a.json": {}}',
        '{"a.json": {"asked": 0, "words": "", "numbers": ["a"], "file": ""}}',
    ],
)
def test_a_damaged_record_says_to_make_the_figures_again(document, capsys, text):
    lock_of(document / "figures.toml").write_text(text)
    assert checked(document) == 2
    assert "figures.lock.json" in capsys.readouterr().err
    assert main(["export", "--batch", str(document / "figures.toml")]) == 0
    assert checked(document) == 0


def test_a_list_of_figures_that_nests_too_deep(tmp_path, capsys):
    (tmp_path / "figures.toml").write_text("a = " + "[" * 100_000)
    assert main(["export", "--batch", str(tmp_path / "figures.toml")]) == 2
    assert "TOML" in capsys.readouterr().err
