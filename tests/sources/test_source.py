"""Where a source comes from: settings, the address of a page, a file."""

import json

import numpy as np
import pytest

from mha_viz import Settings, View, Wrong, synthetic, trained
from mha_viz.core.json_text import parse_json
from mha_viz.settings import to_address, to_json
from mha_viz.sources.base import changed_by
from mha_viz.sources.source import display_of_address, source, source_of_address, source_of_file
from mha_viz.sources.trained import Trained

SMALL = Settings(embed_dim=8, num_heads=2, batch_size=2, seq_len=4, padding=(1,))
MODEL = Trained("look-both-ways-2", batch_size=2)


def test_settings_in_a_file_and_in_an_address_are_one_source(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(to_json(SMALL))
    address = "http://localhost:8501/?" + "&".join(f"{name}={value}" for name, value in to_address(**vars(SMALL)).items())
    for of in (source_of_file(path), source_of_address(address)[0]):
        assert of.settings == SMALL
        np.testing.assert_array_equal(of.traces[0].weights, synthetic(SMALL).weights)
    assert source_of_address("")[0].settings == Settings()


def test_an_address_of_the_models_page_and_settings_of_a_model(tmp_path):
    assert source_of_address("http://localhost:8501/models?model=look-both-ways-2&batch_size=2")[0].settings == MODEL
    assert source_of_address("?source=trained&model=look-both-ways-2&batch_size=2")[0].settings == MODEL
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"source": "trained"} | vars(MODEL)))
    assert source_of_file(path).settings == MODEL


def test_what_if_is_part_of_an_address():
    of, display = source_of_address("?embed_dim=8&num_heads=2&what_if=0:keys=1")
    assert display.view == View(what_if="0:keys=1")
    assert of.traces[0].mask[..., 1].all()
    assert changed_by(source(SMALL), View()).traces[0].layer is not None


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("?embed_dim=7", "divisible"),
        ("?heads_=3", "is no setting"),
        ("?source=file&file=a", "no address holds"),
        ("?source=radio", "random, tiny"),
        ("?causal", "must spell settings"),
        ("?model=gpt", "is no setting"),
    ],
)
def test_a_bad_address_is_named(address, said):
    with pytest.raises(Wrong, match=said):
        source_of_address(address)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.json", None, "no such file"),
        ("bad.json", "{", "must be JSON"),
        ("other.json", '{"heads": 3}', "is no setting"),
        ("list.json", '["a", "b"]', "tokens alone"),
        ("wrong.json", '{"num_heads": 3}', "divisible"),
        ("deep.json", "[" * 100_000, "nested too deep"),
        ("deep.json", '{"a":' * 100_000, "nested too deep"),
        ("half.json", '{"words": "\\ud800 b"}', "half a character"),
        ("half.json", '[["\\udfff"]]', "half a character"),
        ("source.json", '{"source": ["trained"]}', "random, tiny"),
        ("source.json", '{"source": {}}', "random, tiny"),
        ("source.json", '{"source": 1}', "random, tiny"),
        ("latin.json", b'{"words": "caf\xe9"}', "byte 14 is 0xe9"),
        ("number.json", "7", "tokens alone"),
        ("long.json", '{"seed": ' + "9" * 5000 + "}", "must be JSON"),
    ],
)
def test_a_bad_file_is_named(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Wrong, match=said):
        source_of_file(tmp_path / name)


def test_a_pair_of_surrogates_is_one_character():
    assert parse_json("file", '["\\ud83d\\udc08"]') == ["🐈"]


def test_a_trained_models_layers_are_those_that_ran():
    of = source(MODEL)
    np.testing.assert_array_equal(of.traces[0].weights, trained(MODEL).recording.traces[0].weights)


def test_a_view_of_a_file_is_told_from_its_settings():
    assert display_of_address("?source=file&file=run.npz&head=2&scale=log").view == View(head=2, scale="log")
    with pytest.raises(Wrong, match="head"):
        display_of_address("?head=two")
