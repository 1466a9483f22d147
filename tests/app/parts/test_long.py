"""Layers whose maps are too long to be whole, on Explore and on Models: pooled head by head, then the average; stopped, gone on with."""

import json

import numpy as np
import pytest
from streamlit.runtime.caching import clear_session_resource_cache

from mha_viz.app.parts import long
from mha_viz.app.parts.long import coming
from mha_viz.app.task import Done, Task
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.recording import Recording
from mha_viz.settings.environment import FILE
from tests.app.screen import figure, held, models, opened, press, sent, set_to, to_page, unescaped

SIZE = {"seq_len": "300", "embed_dim": "16", "num_heads": "4", "batch_size": "1", "causal": "1"}


@pytest.fixture(autouse=True)
def nothing_is_whole(monkeypatch):
    """300 tokens are long here."""
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**16)


def heads(at):
    return sorted({trace["name"] for trace in figure(at)["data"] if trace["type"] == "heatmap"})


def words(at):
    return str(figure(at)["layout"]["annotations"])


EVERY = ["average of 4 heads", "head 0", "head 1", "head 2", "head 3"]


def test_all_heads_come_and_their_average():
    at = opened(**SIZE, seed="101")
    assert not at.exception and heads(at) == EVERY
    assert "pooled, max of 2 × 2: queries 0–299, keys 0–299" in words(at) and "differs" in words(at)
    assert any("whole, the maps of one batch item would take" in caption.value for caption in at.caption)


def test_what_makes_them_too_long_is_told_of_all_batch_items():
    at = opened(**SIZE | {"batch_size": "2"}, seed="112")
    assert any("whole, the maps of 2 batch items would take 7." in caption.value for caption in at.caption)


def test_somebody_stops_and_goes_on(monkeypatch):
    from mha_viz.analysis import long_maps

    at = opened(**SIZE, seed="102")
    clear_session_resource_cache("test session id")  # what was made is forgotten
    at.session_state.task_maps = Task(Done(1), coming(), resumes=True, stopped=True)
    at.run()
    assert heads(at) == ["average", "head 0"] and "comes after the heads" in words(at)
    press(at, "Go on")
    assert heads(at) == EVERY
    monkeypatch.setattr(long_maps, "pooling", None)  # what is there is not computed again
    at.run()
    assert not at.exception and heads(at) == EVERY


def test_however_fast_heads_come_a_browser_has_time_to_draw_them(monkeypatch):
    """A picture for each head would keep it too busy to hear a press of Stop."""
    drawn, go_on = [], long.go_on
    monkeypatch.setattr(long, "SLICE", 1000)
    monkeypatch.setattr(long, "go_on", lambda place: (drawn.append(True), go_on(place)))
    assert heads(opened(**SIZE, seed="131")) == EVERY
    assert len(drawn) <= 3


def test_rows_and_columns_can_be_typed():
    at = opened(**SIZE, seed="103", rows="5,60")
    at.session_state.popover_part = True
    at.run()
    set_to(set_to(at, "view_rows", "10, 30"), "view_columns", "0, 500")
    assert "exact: queries 10–29, keys 0–299" not in words(at) and "pooled, max of 1 × 2" in words(at)
    set_to(at, "view_columns", "0, 50")
    assert "exact: queries 10–29, keys 0–49" in words(at)
    assert at.query_params["rows"] == "10,30"
    set_to(at, "view_rows", "30, 10")
    assert "must be a first number and one beyond the last" in at.error[0].value and held(at)["view_rows"] == "30, 10"
    assert "exact: queries 10–29" in words(at)
    set_to(at, "view_rows", "300, 400")
    assert (
        "points to 300, and there are 300, from 0 to 299" in unescaped(at.error[0].value)
        and held(at)["view_rows"] == "300, 400"
    )
    assert "exact: queries 10–29" in words(at) and at.query_params["rows"] == "10,30"
    press(at, "Whole map")
    assert "queries 0–299, keys 0–299" in words(at) and "rows" not in at.query_params


@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [
        {"arrangement": "all"},
        {"arrangement": "one", "head": "2"},
        {"picture": "lines"},
        {"order": "entropy"},
        {"heads": "1,3"},
        {"picture": "lines", "rows": "10,30", "columns": "0,30"},
        {"weighting": "norms"},
        {"pooling": "mean"},
        {"scale": "linear"},
        {"scale": "row"},
        {"what_if": "0:1=zero"},
        {"what_if": "0:1=uniform 0:keys=3 0:temperature=0.5"},
        {"cell": "299,299"},
        {"pinned": "seed=5&seq_len=300&embed_dim=16&num_heads=4&batch_size=1&causal=1"},
        {"opened": "1"},
    ],
    ids=str,
)
def test_every_view_of_whole_maps_is_there(view):
    at = opened(**SIZE, seed="106", **view)
    assert not at.exception and not at.error and not at.warning, [*at.error, *at.warning]
    assert sent(at)


def test_maps_with_dropout_are_not_made_whole():
    at = opened(**SIZE, seed="110", training="1", dropout="0.1")
    assert not at.exception and "draws dropout for every weight" in at.error[0].value
    press(at, "training off")
    assert not at.error and heads(at) == EVERY


def test_nothing_leads_back_to_the_whole_from_the_whole():
    at = opened(**SIZE, seed="111", rows="300,400")
    assert "queries 0–299, keys 0–299" in words(at) and "Whole map" not in [button.label for button in at.button]


def test_statistics_are_read_from_all_rows_when_they_are_asked_for():
    at = opened(**SIZE, seed="107")
    at.session_state.statistics = True
    at.run()
    table = at.dataframe[0].value
    assert (
        list(table["head"]) == [0, 1, 2, 3]
        and table["entropy"].notna().all()
        and table["contribution"].sum() == pytest.approx(1)
    )


def test_a_number_is_opened_from_its_row_alone():
    at = opened(**SIZE, seed="108", rows="200,220", columns="190,220", cell="210,200", opened="1")
    assert any("query 210" in html.proto.body and "key 200" in html.proto.body for html in at.get("html"))


def test_a_shorter_sequence_is_shown_whole_again():
    at = opened(**SIZE, seed="104")
    set_to(at, "seq_len", 20)
    assert not at.exception and sent(at) and "pooled" not in words(at)
    set_to(at, "seq_len", 300)
    assert not at.exception and heads(at) == EVERY


@pytest.mark.parametrize("page", ["steps", "decode", "pitfalls", "validate"])
def test_pages_that_need_whole_maps_say_so(page):
    at = to_page(opened(**SIZE, seed="105"), page, **SIZE, seed="105")
    assert not at.exception and any("too long" in info.value for info in at.info)


def test_a_recording_opens_pooled(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    call = Call(*(rng.normal(size=(1, 2, 300, 4)).astype(np.float32) for _ in range(3)))
    short = Call(*(rng.normal(size=(1, 2, 5, 4)).astype(np.float32) for _ in range(3)))
    path = tmp_path / "long.safetensors"
    Recording(tuple(trace_of_call(one, later=True) for one in (call, short))).save(path)
    monkeypatch.setenv(FILE, str(path))
    at = models()
    assert not at.exception and heads(at) == ["average of 2 heads", "head 0", "head 1"]
    set_to(at, "view_layer", 1)
    assert not at.exception and sent(at) and held(at)["view_layer"] == 1 and "pooled" not in words(at)


def test_every_layer_is_there_in_small_while_somebody_looks(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    calls = [Call(*(rng.normal(size=(1, 2, size, 4)).astype(np.float32) for _ in range(3))) for size in (300, 5, 300)]
    path = tmp_path / "long.safetensors"
    Recording(tuple(trace_of_call(call, later=True) for call in calls)).save(path)
    monkeypatch.setenv(FILE, str(path))
    at = models()
    assert not any(element.key == "overview" for element in at.get("bidi_component"))
    at.session_state.every_layer = True
    at.run()
    small = figure(at, "overview")
    names = [f"layer {i} head {h}" for i in (0, 2) for h in (0, 1)]
    assert [trace["name"] for trace in small["data"] if trace["type"] == "heatmap"] == names
    assert "Every head of 2 layers; 1 other has maps of another size · pooled, max of 5 × 5" in str(
        small["layout"]["annotations"]
    )
    assert "n/a" not in json.dumps(small)
    set_to(at, "view_layer", 1)
    assert not at.exception and len([one for one in figure(at, "overview")["data"] if one["type"] == "heatmap"]) == 2


def test_a_head_off_by_its_mean_is_said_to_need_whole_maps():
    at = opened(**SIZE, seed="109", what_if="0:1=mean")
    assert not at.exception and "puts head 1 off by the mean of all rows" in at.error[0].value
    assert heads(at) == EVERY


def test_a_of_another_length_stands_beside_b_with_blocks_of_its_own():
    pinned = "&".join(f"{name}={value}" for name, value in (SIZE | {"seq_len": "299", "seed": "111"}).items())
    at = opened(**SIZE, seed="111", pinned=pinned)
    assert not at.exception and "A's maps are 299 × 299 and B's 300 × 300" in words(at)
    assert "pooled, max of up to 2 × 2" in words(at) and "pooled, max of 2 × 2" in words(at)
    assert not any("B − A" in one.proto.body for one in at.get("html"))
