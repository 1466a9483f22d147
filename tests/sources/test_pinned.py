"""What a view of a source compares with, and addresses that say how a file is shown."""

import pytest

from mha_viz.core.rules import Wrong
from mha_viz.settings import Settings, View
from mha_viz.sources.source import (
    as_pinned,
    display_of_address,
    pin_of_address,
    pinned,
    pinned_trace,
    source,
    source_of_address,
)

SMALL = Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=4)


def test_a_view_without_a_pin_compares_with_nothing():
    assert pinned_trace(source(SMALL), View()) is None


def test_a_pin_is_settings_of_the_same_kind():
    text = as_pinned(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=5), 0, "")
    trace = pinned_trace(source(SMALL), View(pinned=text))
    assert trace.weights.shape == (1, 2, 5, 5)
    assert pinned(source(SMALL), View(pinned=text))[0].settings.seq_len == 5


@pytest.mark.parametrize(("pin", "argument"), [("no settings", "pinned"), ("num_heads=3&embed_dim=8", "num_heads")])
def test_a_bad_pin_is_refused(pin, argument):
    with pytest.raises(Wrong) as refused:
        pinned_trace(source(SMALL), View(pinned=pin))
    assert refused.value.argument == argument


def test_an_address_pins_a_source_of_the_same_kind_alone():
    of = source(SMALL)
    assert "seq_len=5" in pin_of_address("?seq_len=5", of)
    assert pin_of_address("?source=trained", of) is None


def test_an_address_beside_a_file_says_how_it_is_shown():
    assert display_of_address("?source=file&head=1").view.head == 1
    with pytest.raises(Wrong, match="says seed") as refused:
        display_of_address("?seed=8&head=1")
    assert refused.value.nearest == ({"address": "?head=1"},)
    with pytest.raises(Wrong) as refused:
        display_of_address("?head=-1")
    assert refused.value.argument == "head"


def test_an_address_names_no_file():
    with pytest.raises(Wrong, match="no address holds"):
        source_of_address("?source=file")
