"""An address opens no folder but those that whoever serves the app has named; what is refused is not looked at."""

import os
from pathlib import Path

import pytest

from mha_viz.core.rules import Wrong
from mha_viz.settings.environment import MODELS_FOLDERS
from mha_viz.sources.pretrained import check_named, folders, names_folder

OUTSIDE = [
    "/home",
    "/home/",
    "~",
    "~nosuchuser",
    "./model",
    "../model",
    ".",
    "..",
    r"\\host\share",
    "//host/share",
    "C:\\m",
    "x" * 300,
]


@pytest.fixture
def allowed(tmp_path, monkeypatch):
    """A folder that is named, with one model in it, and one beside it that is not."""
    for name in ("models/mine", "models/deep/er", "models-of-others/theirs"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv(MODELS_FOLDERS, os.pathsep.join([str(tmp_path / "none"), str(tmp_path / "models")]))
    return tmp_path / "models"


@pytest.fixture
def nothing_is_looked_at(monkeypatch):
    def looked(*_, **__):
        raise AssertionError("a folder was looked at")

    for name in ("is_folder", "own_folder"):
        monkeypatch.setattr(folders, name, looked)
    for name in ("is_dir", "exists", "iterdir", "stat"):
        monkeypatch.setattr(Path, name, looked)


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_folder_is_refused_alike_whether_it_exists_and_unseen(name, nothing_is_looked_at, monkeypatch):
    monkeypatch.delenv(MODELS_FOLDERS, raising=False)
    monkeypatch.setattr("mha_viz.sources.pretrained.load.shipped_models", dict)
    assert names_folder(name)
    with pytest.raises(Wrong, match=r"an address does not open folders .* --models-folder"):
        check_named(name, ())


@pytest.mark.parametrize(
    "name", ["..", "../models-of-others/theirs", "../../etc", "mine/../../models-of-others/theirs", "/etc"]
)
def test_nothing_outside_of_what_is_served_is_looked_at(name, allowed, monkeypatch):
    seen = []
    monkeypatch.setattr(folders, "is_folder", lambda path: seen.append(path) or True)
    assert folders.served_folder(name) is None and not seen


def test_what_is_served_is_found_by_its_path_and_by_its_name(allowed):
    for name in (str(allowed), str(allowed / "mine"), "mine", "./mine", "deep/er", "deep/../mine"):
        assert folders.served_folder(name).samefile(allowed if name == str(allowed) else allowed / name)
        check_named(name, ())
    assert folders.served_folder("absent") is None


def test_a_name_on_the_hub_is_no_folder_and_what_was_typed_is_open():
    for name in ("gpt2", "google/bert-base", "sentence-transformers/all-MiniLM-L6-v2", "docs"):
        assert not names_folder(name)
        check_named(name, ())
    check_named("/srv/models", {"/srv/models"})
    with pytest.raises(Wrong):
        check_named("/srv/models/.private", {"/srv/models"})
