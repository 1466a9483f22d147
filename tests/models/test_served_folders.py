"""Folders as models on the page: from an address none, by hand any where the app serves this machine alone."""

import pytest
import streamlit as st

from mha_viz.settings.environment import CLASS, MODELS_FOLDERS
from tests.app.screen import errors, held, models, page_text, set_to

REFUSED = "an address does not open folders of the machine that serves the app"


@pytest.fixture
def folder(tmp_path):
    """A folder that is no model's: whoever looks into it says what it holds."""
    (tmp_path / "secret.txt").write_text("x")
    return str(tmp_path)


def typed(name):
    """The page on which somebody has typed ``name`` for a model."""
    at = models(source="pretrained")
    next(box for box in at.selectbox if box.key == "name").options.append(name)  # which a browser adds by itself
    return set_to(at, "name", name)


def looked_into(at):
    assert not at.exception
    return "secret.txt" in page_text(at)


@pytest.mark.parametrize("asked", ["name", "pinned"])
@pytest.mark.parametrize("serves_class", ["", "1"])
def test_an_address_opens_no_folder(asked, serves_class, folder, monkeypatch):
    monkeypatch.setenv(CLASS, serves_class)
    absent = f"{folder}/absent"
    said = []
    for name in (folder, absent, "~nosuchuser", "x" * 300, r"\\host\share"):
        value = name if asked == "name" else f"name={name}".replace("\\", "%5C")
        at = models(source="pretrained", **{asked: value})
        assert REFUSED in page_text(at) and not looked_into(at)
        said.append(page_text(at).replace(name, "").replace(name[:37], ""))
    assert said[0] == said[1], "whether a folder exists is not told"


def test_a_folder_that_is_typed_is_opened_where_the_app_serves_this_machine_alone(folder, monkeypatch):
    monkeypatch.delenv(CLASS, raising=False)
    at = typed(folder)
    assert looked_into(at) and at.query_params["name"] == folder
    monkeypatch.setenv(CLASS, "1")
    assert REFUSED in errors(typed(folder))[0]


def test_a_folder_that_is_typed_is_not_opened_where_others_reach_the_app(folder, monkeypatch):
    option = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: "0.0.0.0" if name == "server.address" else option(name))
    assert REFUSED in errors(typed(folder))[0]


def test_a_folder_that_is_served_is_opened_from_an_address(folder, monkeypatch):
    monkeypatch.setenv(MODELS_FOLDERS, folder)
    assert looked_into(models(source="pretrained", name=folder))


def test_what_a_folder_is_called_is_kept_in_full(folder):
    at = typed(f"{folder}/../{folder.rpartition('/')[2]}")
    assert held(at)["name"] == folder
