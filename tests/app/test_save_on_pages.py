"""Save on pages other than Explore: what is kept is what is on screen, and the command to paste makes the same picture."""

import json
import shlex

import pytest
from streamlit.runtime.caching import clear_session_resource_cache
from streamlit.testing.v1 import AppTest

from mha_viz.__main__ import main
from mha_viz.components.live import DEFAULT_WIDTH
from mha_viz.export.command import command
from mha_viz.export.figure import Figure
from mha_viz.settings.profile import Profile
from mha_viz.studies.profile_results import Results, as_json
from mha_viz.studies.profiling import PEAK, SECONDS, Event
from mha_viz.studies.quality import quality_json, shipped
from tests.app.screen import APP, errors, figure, to_page

SIZES = {"embed_dim": "16", "num_heads": "4", "seq_len": "6", "padding": "1"}


@pytest.fixture(autouse=True)
def own_session():
    """What another test's page kept is not this one's."""
    clear_session_resource_cache("test session id")


def page(name, **address):
    at = to_page(AppTest.from_file(str(APP), default_timeout=60), name, **address)
    assert not at.exception, at.exception
    return at


def chart(at, key):
    """The figure that is drawn under this key."""
    return next(json.loads(one.proto.spec) for one in at.get("plotly_chart") if one.key == key)


def made_by_command(at, folder, place="save"):
    """The figure that the command to paste makes of what the page kept."""
    (kept,) = at.session_state[f"{place}_shown"]
    out = str(folder / f"{kept.name}.json")
    told = shlex.split(command(Figure(out, view=kept.view, width=(DEFAULT_WIDTH, "px")), kept.shown))
    assert told[:3] == ["python", "-m", "mha_viz"] and main(told[3:]) == 0
    return json.loads((folder / f"{kept.name}.json").read_text())


def same(one, other):
    """Whether two figures show the same: what only the page needs is left out."""
    one, other = ([figure["data"], figure["layout"].get("annotations"), figure["layout"]["height"]] for figure in (one, other))
    return one == other


@pytest.mark.parametrize(
    ("drawn", "address"),
    [
        ("softmax", {"step": "softmax", "causal": "1", "head": "2", "cell": "3,1"}),
        ("query", {"step": "query", "together": "1", "batch_first": "0", "item": "1"}),
        ("mask", {"step": "mask", "causal": "1", "what_if": "0:1=zero", "weighting": "norms", "pinned": "seed=8"}),
        ("softmax", {"step": "dropout"}),  # which does not fall
    ],
)
def test_a_step(drawn, address, tmp_path):
    at = page("steps", **SIZES, **address)
    assert same(chart(at, f"step_picture_{drawn}"), made_by_command(at, tmp_path))


def test_a_step_of_a_model(tmp_path):
    at = page("steps", source="trained", layer="1", step="softmax", what_if="1:0=zero")
    assert same(chart(at, "step_picture_softmax"), made_by_command(at, tmp_path))
    assert "induction" in at.session_state["save_shown"][0].shown.source.name


def test_a_step_without_a_picture_has_nothing_to_save():
    assert page("steps", **SIZES, step="validate").session_state["save_shown"] == []


@pytest.mark.parametrize(
    "address",
    [
        {"token": "3"},
        {"prompt": "2", "kv_heads": "2", "cache_dtype": "float16", "item": "1", "batch_first": "0"},
        {"training": "1", "causal": "1", "token": "5"},
    ],
)
def test_a_step_of_decoding(address, tmp_path):
    at = page("decode", **SIZES, **address)
    assert same(figure(at, "decoding"), made_by_command(at, tmp_path))


def test_decoding_a_model(tmp_path):
    at = page("decode", source="trained", layer="1", token="9")
    assert same(figure(at, "decoding"), made_by_command(at, tmp_path))


def test_what_is_not_current_is_saved_as_it_is_shown(tmp_path):
    at = page("decode", **SIZES, token="3")
    looking = at.session_state["places"]["layer"].content
    looking.change(kv_heads=3)
    at = at.run()
    assert "kv_heads = 3" in errors(at)[0]
    assert same(figure(at, "decoding"), made_by_command(at, tmp_path))


def results():
    found = Results(Profile(embed_dim=8, num_heads=(1, 2), seq_len=(4, 8)))
    for row in found.rows:
        found.add(Event(PEAK, row.point, 2**20))
        found.add(Event(SECONDS, row.point, 1e-3 * row.point.seq_len))
    return found


def test_a_profile_with_its_numbers_beside_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = page("profile")
    at.get("file_uploader")[0].upload("found.json", as_json(results()).encode(), "application/json").run()
    at = at.run()
    next(one for one in at.selectbox if one.label == "head counts at length").select(4).run()
    (tmp_path / "found.json").write_text(as_json(results()))
    assert same(chart(at, "profile_picture"), made_by_command(at, tmp_path))


@pytest.mark.parametrize("task", ["look-both-ways", "induction"])
def test_quality_as_it_ships(task, tmp_path):
    at = page("profile")
    at.selectbox(key="quality_task").select(task).run()
    assert same(chart(at, "quality_picture"), made_by_command(at, tmp_path, "save_quality"))


def test_a_saved_quality_is_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at, text = page("profile"), quality_json(shipped("induction"))
    at.get("file_uploader")[0].upload("quality-induction.json", text.encode(), "application/json").run()
    (tmp_path / "quality-induction.json").write_text(text)
    assert same(chart(at.run(), "quality_picture"), made_by_command(at, tmp_path, "save_quality"))
