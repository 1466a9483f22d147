"""What was measured, as figures of documents: from a file or as it ships, in every format that has a meaning, and what is wrong is said."""

import csv
import io
import json
import shlex

import pytest

from mha_viz.__main__ import main
from mha_viz.core.rules import Wrong
from mha_viz.export.command import command
from mha_viz.export.figure import Figure, read_figures, specification
from mha_viz.export.make import drawn, shown, spec_of
from mha_viz.settings.profile import Profile
from mha_viz.studies.profile_results import Results, as_json
from mha_viz.studies.profiling import PEAK, SECONDS, SKIPPED, Event
from mha_viz.views.shown import Measured


@pytest.fixture
def results():
    found = Results(Profile(embed_dim=8, num_heads=(1, 2), seq_len=(4, 8), need_weights="on"))
    for row in found.rows[:-1]:
        found.add(Event(PEAK, row.point, 2**20))
        found.add(Event(SECONDS, row.point, 1e-3 * row.point.seq_len))
    found.add(Event(SKIPPED, found.rows[-1].point, "would take too much, and so it is left out"))
    return found


@pytest.fixture
def profile(results, tmp_path, monkeypatch):
    """A file of Results, in the folder where this is run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profile.json").write_text(as_json(results))
    return "profile.json"


def made(**fields):
    figure = Figure(**fields)
    assert main(["export", *shlex.split(command(figure, shown(figure)))[4:]]) == 0
    with open(figure.out) as file:
        return file.read()


def test_a_profile_is_a_picture_with_words(profile):
    spec, alt = drawn(Figure(results=profile, view="profile", width=700), shown(Figure(results=profile)))
    assert spec["layout"]["width"] == 700 and any(
        note["text"] == "<b>at length 8</b>" for note in spec["layout"]["annotations"]
    )
    assert "1 head 8 ms" in alt
    spec = spec_of(Figure(results=profile, at_length=4))
    assert any(note["text"] == "<b>at length 4</b>" for note in spec["layout"]["annotations"])


def test_the_quality_that_ships_is_one_by_its_task(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = made(out="q.md", results="induction", view="quality")
    assert said.startswith("![Share of right answers by head count") and "python -m mha\\_viz quality induction" in said
    lines = list(csv.DictReader(io.StringIO(made(out="q.csv", results="induction"))))
    assert len(lines) == 15 and sorted({int(line["num_heads"]) for line in lines}) == [1, 2, 4, 8, 32]


def test_the_numbers_of_a_profile_are_a_line_a_point(profile):
    lines = list(csv.DictReader(io.StringIO(made(out="p.csv", results=profile))))
    assert [line["seconds"] for line in lines] == ["0.004", "0.008", "0.004", ""] and lines[0]["peak_bytes"] == str(2**20)
    assert lines[-1]["left_out"] == "would take too much, and so it is left out"


def test_the_command_says_all(results, profile):
    figure = Figure("again.json", results=profile, at_length=4, view="profile", theme="dark")
    told = command(Figure("again.json", view="profile", theme="dark"), Measured(results, profile, 4))
    assert told == command(figure, shown(figure)) and "--results profile.json --at-length 4" in told
    assert main(shlex.split(told)[3:]) == 0
    with open("again.json") as file:
        assert json.load(file)["layout"] == json.loads(json.dumps(spec_of(figure)["layout"]))


def test_a_list_of_figures_names_files_of_its_folder_and_tasks_as_they_are(profile, tmp_path):
    listed = '[[figure]]\nout = "p.svg"\nresults = "profile.json"\n[[figure]]\nout = "q.svg"\nresults = "induction"\nview = "quality"\n'
    (tmp_path / "figures.toml").write_text(listed)
    file, task = (figure.named("docs") for figure in read_figures(tmp_path / "figures.toml"))
    assert file.results == "docs/profile.json" and task.results == "induction"
    assert specification(task)["results"] == "induction"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"view": "profile"}, "name it with results"),
        ({"at_length": 8}, "name it with results"),
        ({"results": "profile.json", "at_length": 5}, "was not measured: 4,8 were"),
        ({"results": "induction", "at_length": 8}, "is for a profile"),
        ({"results": "profile.json", "view": "quality"}, "holds a profile.*Nearest right: view = 'profile'"),
        ({"results": "induction", "view": "heads"}, "Nearest right: view = 'quality'"),
        ({"results": "induction", "title": False}, "has no title"),
        ({"results": "induction", "address": "?seed=8"}, "stands beside results.*Nearest right: address = None"),
        ({"results": "induction", "out": "q.npz"}, "results have none.*Nearest right: out = 'q.csv'"),
        ({"results": "gone.json"}, "cannot be read: No such file.*results = 'look-both-ways'"),
        ({"results": "nonsense.json"}, "must hold what `python -m mha_viz profile --json` wrote"),
        ({"results": "half.json"}, "must hold what `python -m mha_viz quality` wrote"),
        ({"results": "beyond.json"}, "is no outcome"),
    ],
)
def test_what_is_not_there_is_named(profile, tmp_path, asked, said):
    (tmp_path / "nonsense.json").write_text("[1, 2]")
    (tmp_path / "half.json").write_text('{"trial": {"task": "induction"}}')
    one = {"num_heads": 1, "seed": 1, "accuracy": 1.5, "loss": 0.1, "uniform": 0.2}
    (tmp_path / "beyond.json").write_text(json.dumps({"trial": {}, "profile": None, "outcomes": [one], "machine": {}}))
    with pytest.raises(Wrong, match=said):
        spec_of(Figure(**asked))
