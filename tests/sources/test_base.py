"""A kind of source is one thing: added in one place, it is known in addresses, settings files, commands, captions and checks."""

import json
from dataclasses import make_dataclass

import numpy as np
import pytest

from mha_viz import Wrong
from mha_viz.__main__ import main
from mha_viz.settings import Display, View, Walk
from mha_viz.settings.rules import Ruled, number, ruled
from mha_viz.settings.settings import TINY, Settings
from mha_viz.sources.base import SOURCES, Kind, Source, address_of, kind_named, kind_of
from mha_viz.sources.source import source, source_of_address, source_of_file
from mha_viz.sources.trained import Trained
from tests.even import Even, EvenKind


@pytest.fixture
def sixth(monkeypatch):
    kind = EvenKind()
    monkeypatch.setitem(SOURCES, kind.name, kind)
    return kind


def test_a_sixth_kind_is_opened_by_address_and_by_settings(sixth, tmp_path):
    of, display = source_of_address("?source=even&length=6&sees=past&head=0&step=softmax")
    assert of.kind is sixth and of.settings == Even(6, "past") and display == Display(View(head=0), Walk("softmax"))
    assert address_of(of.settings) == of.address == {"source": "even", "length": "6", "sees": "past"}
    path = tmp_path / "even.json"
    path.write_text(json.dumps({"source": "even", "length": 6, "sees": "past"}))
    np.testing.assert_array_equal(source_of_file(path).traces[0].weights, of.traces[0].weights)
    with pytest.raises(Wrong, match="must be one of all, past") as caught:
        source_of_address("?source=even&sees=future")
    assert caught.value.nearest


@pytest.mark.parametrize("name", ["head", "step", "token", "pitfall", "opened", "source"])
def test_a_kind_with_a_name_that_an_address_has_for_something_else_cannot_be_defined(name):
    settings = make_dataclass("Odd", [(name, int, ruled(0, number(0)))], bases=(Ruled,), frozen=True)
    with pytest.raises(TypeError, match=f"Odd.*a field {name}"):
        type("OddKind", (Kind,), {"name": "odd", "settings": settings})


def test_a_sixth_kind_is_drawn_and_checked_by_the_commands(sixth, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["export", "--address", "?source=even&length=6&sees=past", "--out", "even.md"]) == 0
    said = (tmp_path / "even.md").read_text()
    assert "even maps of 6" in said and "only the past" in said and "source=even&length=6" in said.replace("\\", "")
    assert main(["validate", "--address", "?source=even&length=6"]) == 0
    assert "model: none: even maps" in capsys.readouterr().out


def test_a_name_that_no_kind_has_is_told_with_those_that_there_are(sixth):
    with pytest.raises(Wrong, match="must be one of random, tiny, trained, pretrained, even") as caught:
        source_of_address("?source=odd")
    assert {"source": "even"} in caught.value.nearest
    with pytest.raises(Wrong, match="must be settings of a source: Settings, Trained, Pretrained, Opened"):
        kind_of(3)


@pytest.mark.parametrize(
    ("settings", "name"),
    [(Settings(), "random"), (Settings(case="tiny", **TINY), "tiny"), (Trained(), "trained"), (None, "file")],
)
def test_settings_tell_their_kind(settings, name):
    assert kind_of(settings) is SOURCES[name]


def test_every_kind_but_a_file_opens_what_its_address_says():
    for kind in SOURCES.values():
        if kind.in_address and kind.name != "pretrained":  # which needs a library
            settings = kind.made()
            of = source(settings)
            address = "?" + "&".join(f"{name}={value}" for name, value in of.address.items())
            assert source_of_address(address)[0].settings == settings and of.name == kind.called(settings)


def test_the_tiny_case_is_named_by_its_field_or_as_a_source():
    by_field = "?case=tiny&embed_dim=4&num_heads=2&batch_size=1&seq_len=3&padding="
    assert source_of_address("?source=tiny")[0].settings == source_of_address(by_field)[0].settings


def test_the_first_kind_goes_without_a_name():
    assert kind_named(None) is SOURCES["random"]
    assert source_of_address("?seed=8")[0].settings == Settings(seed=8)


def test_a_kind_that_leaves_a_needed_piece_out_cannot_be_made():
    class Half(Kind):
        name, title, settings = "half", "half a kind", Even

        def open(self, settings):
            return Source("half", (), settings)

    with pytest.raises(TypeError, match=r"called.*versions"):
        Half()
