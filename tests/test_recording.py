"""Recordings are saved and loaded whole; a file that is anything else is told what it is, and none is ever half-written."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mha_viz
from mha_viz import Batch, Layer, Recording, Settings, attend, synthetic
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Wrong
from mha_viz.core.tokens import Tokens
from mha_viz.recording import Cause, is_recording

RANDOM = np.random.default_rng(0)


def drawn(*shape, dtype=np.float32):
    return RANDOM.normal(size=shape).astype(dtype)


def grouped(dtype=np.float32):
    mask = Mask(3, 4, extra=1, causal=True, window=2, padded=np.eye(2, 4, dtype=bool), bias=drawn(1, 4, 3, 4))
    tokens = Tokens.of(2, 3, 5, [["<s>", "ü", "\n"]] * 2, None, np.eye(2, 3, dtype=bool), one_sequence=False)
    tokens = Tokens(tokens.queries, tokens.keys, tokens.query_padding, 1, np.arange(3) + 1)
    made = (drawn(2, heads, size, 6, dtype=dtype) for heads, size in ((4, 3), (2, 5), (2, 5)))
    return trace_of_call(Call(*made, mask, 0.25, drawn(8, 24), drawn(8), tokens, "layers.1.attention"))


def scores_alone():
    return trace_of_call(Call(drawn(1, 2, 3, 4), drawn(1, 2, 3, 4), mask=Mask(3, 3, dense=np.eye(3, dtype=bool)[None, None])))


def finished_maps():
    weights = np.full((1, 2, 3, 4), 0.25, np.float32)
    weights[0, 1, 2] = np.nan
    return trace_of_maps(weights, name="uploaded")


def attended():
    layer = Layer.random(8, 2, add_zero_attn=True)
    return attend(layer, Batch(drawn(2, 5, 8), key_padding_mask=np.eye(2, 5, dtype=bool), causal=True))


TRACES = {
    "call": grouped, "sixteen bits": lambda: grouped(np.float16), "double": lambda: grouped(np.float64), "no values": scores_alone,
    "maps": finished_maps, "attended": attended, "synthetic": lambda: synthetic(Settings(embed_dim=8, num_heads=2)),
    "dropout": lambda: synthetic(Settings(embed_dim=8, num_heads=2, training=True, dropout=0.4)),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
@pytest.mark.parametrize("kind", TRACES)
def test_what_is_saved_comes_back(kind, suffix, tmp_path):
    trace, path = TRACES[kind](), tmp_path / f"run.{suffix}"
    Recording((trace,), ("a note",), Cause(0, "why", 1, None, 2), "seed=3").save(path)
    again = mha_viz.load(path)
    assert again.notes == ("a note",) and again.cause == Cause(0, "why", 1, None, 2) and again.address == "seed=3"
    (loaded,) = again.traces
    assert (loaded.name, loaded.scale) == (trace.name, trace.scale)
    assert (loaded.query_tokens, loaded.key_tokens, loaded.num_positions) == (
        trace.query_tokens,
        trace.key_tokens,
        trace.num_positions,
    )
    assert np.array_equal(loaded.query_padding, trace.query_padding)
    assert np.array_equal(loaded.tokens.positions, trace.tokens.positions)
    for name in trace.fields():
        assert loaded.has(name) == trace.has(name), name
        if trace.has(name):
            ours, theirs = getattr(trace, name), getattr(loaded, name)
            assert (ours is None) == (theirs is None), name
            assert ours is None or np.allclose(ours, theirs, atol=1e-6, equal_nan=True), name


def test_an_npz_holds_every_tensor_by_name_and_the_same_bytes_each_time(tmp_path):
    trace = synthetic(Settings(embed_dim=8, num_heads=2, causal=True))
    for name in ("a.npz", "b.npz"):
        Recording((trace,)).save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz") as held:
        assert held["query_tokens"].tolist() == [list(item) for item in trace.query_tokens]
        for name in ("q", "scores", "mask", "weights", "mean_weights", "undefined", "output"):
            assert np.array_equal(held[name], getattr(trace, name), equal_nan=name != "mask"), name
        np.testing.assert_allclose(held["concat"] @ held["out_weight"].T + held["out_bias"], held["output"], atol=1e-6)
    Recording((trace, trace)).save(tmp_path / "two.npz")
    with np.load(tmp_path / "two.npz") as held:
        assert {"0.weights", "1.weights"} <= set(held)


def test_rules_are_saved_as_rules(tmp_path):
    length = 400
    q = drawn(1, 1, length, 2)
    Recording((trace_of_call(Call(q, q, q, Mask(length, length, causal=True, window=50))),)).save(tmp_path / "long.safetensors")
    assert (tmp_path / "long.safetensors").stat().st_size < 3 * q.nbytes + 20_000 < length * length
    assert mha_viz.load(tmp_path / "long.safetensors").traces[0].rules.window == 50


def test_many_calls_keep_their_order_and_an_empty_recording_is_one(tmp_path):
    traces = tuple(trace_of_maps(np.full((1, 1, 1, 1), 1.0), name=str(i)) for i in range(12))
    Recording(traces).save(tmp_path / "a.safetensors")
    assert [trace.name for trace in mha_viz.load(tmp_path / "a.safetensors").traces] == [str(i) for i in range(12)]
    Recording(()).save(tmp_path / "b.safetensors")
    assert mha_viz.load(tmp_path / "b.safetensors").traces == ()


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.safetensors"
    Recording((grouped(),)).save(path)
    return path


def rewritten(path, change=lambda tensors: None, **about):
    """The file with some of its parts changed."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        old = json.loads(file.metadata()["mha_viz"])
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, {"mha_viz": json.dumps(old | about)})
    return path


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_file_that_ends_too_early_is_refused(saved, share):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(Wrong, match="cannot be read as safetensors"):
        mha_viz.load(saved)


def test_other_files_are_told_what_they_are(tmp_path):
    with pytest.raises(Wrong, match="cannot be read"):
        mha_viz.load(tmp_path / "absent.safetensors")
    with pytest.raises(Wrong, match="cannot be read"):
        mha_viz.load(tmp_path)
    np.savez(tmp_path / "maps.npz", a=np.ones(3))
    with pytest.raises(Wrong, match="arrays and no recording"):
        mha_viz.load(tmp_path / "maps.npz")
    save_file({"weight": np.ones(3)}, tmp_path / "weights.safetensors")
    with pytest.raises(Wrong, match="tensors and no recording"):
        mha_viz.load(tmp_path / "weights.safetensors")
    assert not is_recording(None) and not is_recording({"format": "pt"}) and is_recording({"mha_viz": "{}"})


def test_another_format_is_named(saved):
    with pytest.raises(Wrong, match=r"has the format 'mha_viz recording 7'"):
        mha_viz.load(rewritten(saved, format="mha_viz recording 7"))


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("0.k"),
        lambda tensors: tensors.pop("0.query_padding"),
        lambda tensors: tensors.update({"0.k": drawn(2, 3, 5, 6)}),
        lambda tensors: tensors.update({"0.q": np.zeros((2, 4, 3, 6), int)}),
    ],
    ids=["no k", "no padding", "another k", "whole numbers"],
)
def test_parts_that_do_not_fit_are_refused(saved, change):
    with pytest.raises(Wrong):
        mha_viz.load(rewritten(saved, change))


def test_metadata_that_is_broken_is_refused(saved):
    tensors = load_file(saved)
    for text in ("{", "[]", '"text"', '{"format": "mha_viz recording 1"}'):
        save_file(tensors, saved, {"mha_viz": text})
        with pytest.raises(Wrong):
            mha_viz.load(saved)


def test_nothing_half_written_is_left(saved, monkeypatch):
    before = saved.read_bytes()

    def full(tensors, path, metadata):
        path.write_bytes(before[:100])
        raise OSError("no space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(OSError, match="no space"):
        Recording((grouped(),)).save(saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]
    with pytest.raises(OSError, match="no space"):
        Recording((grouped(),)).save(saved.parent / "new.safetensors")
    assert os.listdir(saved.parent) == [saved.name]
