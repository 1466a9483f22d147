"""Layers whose maps are too long to be whole, on Explore and on Models: pooled head by head, stopped, gone on with."""

import numpy as np
import pytest

from mha_viz.core import attend
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.recording import Recording
from mha_viz.settings.environment import FILE
from mha_viz.sources import synthetic
from tests.app.screen import figure, held, models, opened, press, sent, set_to, to_page

SIZE = {"seq_len": "300", "embed_dim": "16", "num_heads": "4", "batch_size": "1", "causal": "1"}


@pytest.fixture(autouse=True)
def nothing_is_whole(monkeypatch):
    """300 tokens are long here."""
    monkeypatch.setattr(attend, "WHOLE", 2**16)
    monkeypatch.setattr(synthetic, "WHOLE", 2**16)


def heads(at):
    return [trace["name"] for trace in figure(at, "long_heads")["data"] if trace["type"] == "heatmap"]


def test_all_heads_come_and_the_first_has_its_window():
    at = opened(**SIZE, seed="101")
    assert not at.exception and heads(at) == ["head 0", "head 1", "head 2", "head 3"]
    assert "2 × 2" in str(figure(at, "long_head")["layout"]["annotations"])
    assert "exact" in str(figure(at, "long_window")["layout"]["annotations"])


def test_somebody_stops_and_goes_on(monkeypatch):
    from mha_viz.core import long

    at = opened(**SIZE, seed="102")
    at.session_state.long = {}
    at.session_state.long_stopped = True
    at.run()
    assert heads(at) == ["head 0"]
    press(at, "Go on")
    assert len(heads(at)) == 4
    monkeypatch.setattr(long, "pooled", None)  # what is there is not computed again
    at.run()
    assert not at.exception and len(heads(at)) == 4


def test_rows_and_columns_can_be_typed():
    at = opened(**SIZE, seed="103")
    set_to(set_to(at, "view_rows", "10, 30"), "view_columns", "0, 500")
    assert "exact: queries 10–29, keys 0–299" in str(figure(at, "long_window")["layout"]["annotations"])
    assert at.query_params["rows"] == "10,30"
    set_to(at, "view_rows", "30, 10")
    assert "must be a first number and one beyond the last" in at.error[0].value
    assert "exact: queries 10–29" in str(figure(at, "long_window")["layout"]["annotations"])


def test_a_shorter_sequence_is_shown_whole_again():
    at = opened(**SIZE, seed="104")
    set_to(at, "seq_len", 20)
    assert not at.exception and sent(at)
    set_to(at, "seq_len", 300)
    assert not at.exception and len(heads(at)) == 4


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
    assert not at.exception and heads(at) == ["head 0", "head 1"]
    set_to(at, "view_layer", 1)
    assert not at.exception and sent(at) and held(at)["view_layer"] == 1
