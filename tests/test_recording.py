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
    "call": grouped,
    "sixteen bits": lambda: grouped(np.float16),
    "double": lambda: grouped(np.float64),
    "no values": scores_alone,
    "maps": finished_maps,
    "attended": attended,
    "synthetic": lambda: synthetic(Settings(embed_dim=8, num_heads=2)),
    "dropout": lambda: synthetic(Settings(embed_dim=8, num_heads=2, training=True, dropout=0.4)),
}


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
@pytest.mark.parametrize("kind", TRACES)
def test_what_is_saved_comes_back(kind, suffix, tmp_path):
    trace, path = TRACES[kind](), tmp_path / f"run.{suffix}"
    Recording((trace,), ("a note",), Cause(0, "why", 0, None, 2), "seed=3").save(path)
    again = mha_viz.load(path)
    assert again.notes == ("a note",) and again.cause == Cause(0, "why", 0, None, 2) and again.address == "seed=3"
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
    with pytest.raises(Wrong, match="is cut off"):
        mha_viz.load(saved)


def test_other_files_are_told_what_they_are(tmp_path):
    with pytest.raises(Wrong, match="no such file"):
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


def of_call(**parts):
    """A change of what describes call 0; None takes a part away."""

    def change(tensors, about):
        call = about["calls"][0]
        about["calls"] = [{name: value for name, value in (call | parts).items() if value is not GONE}]

    return change


def of_mask(**parts):
    return lambda tensors, about: about["calls"][0]["mask"].update(parts)


def of_tensors(**parts):
    def change(tensors, about):
        for name, array in parts.items():
            tensors[f"0.{name}"] = array
            if array is GONE:
                del tensors[f"0.{name}"]

    return change


def of_recording(**parts):
    return lambda tensors, about: about.update(parts)


GONE = object()
MISFITS = {  # of a recording with [N, H, L, S] = [2, 4, 3, 5], two groups of keys, one extra column: a change, and the part that is named
    "no k": (of_tensors(k=GONE), "'k': must be there"),
    "no padding": (of_tensors(query_padding=GONE), "'query_padding': must be there"),
    "three groups": (of_tensors(k=drawn(2, 3, 5, 6)), "k of shape (2, 3, 5, 6)"),
    "q of whole numbers": (of_tensors(q=np.zeros((2, 4, 3, 6), int)), "q of type int64"),
    "q of three axes": (of_tensors(q=drawn(4, 3, 6)), "q of shape (4, 3, 6)"),
    "k of one number": (of_tensors(k=np.array(1.0, np.float32)), "k of shape ()"),
    "v of another length": (of_tensors(v=drawn(2, 2, 4, 6)), "v of shape (2, 2, 4, 6)"),
    "padding of another length": (of_tensors(query_padding=np.zeros((2, 4), bool)), "query_padding of shape (2, 4)"),
    "padding of numbers": (of_tensors(query_padding=np.zeros((2, 3), np.float32)), "query_padding of type float32"),
    "key padding of another length": (of_tensors(padded=np.zeros((2, 5), bool)), "padded of shape (2, 5)"),
    "key padding of numbers": (of_tensors(padded=np.zeros((2, 4), np.int64)), "padded of type int64"),
    "bias of three axes": (of_tensors(bias=drawn(4, 3, 4)), "bias of shape (4, 3, 4)"),
    "bias for three heads": (of_tensors(bias=drawn(1, 3, 3, 4)), "bias of shape (1, 3, 3, 4)"),
    "bias of bool": (of_tensors(bias=np.ones((1, 4, 3, 4), bool)), "bias of type bool"),
    "dense of numbers": (of_tensors(dense=drawn(1, 1, 3, 4)), "dense of type float32"),
    "dense of another length": (of_tensors(dense=np.zeros((1, 1, 3, 5), bool)), "dense of shape (1, 1, 3, 5)"),
    "out_weight of another width": (of_tensors(out_weight=drawn(8, 20)), "out_weight of shape (8, 20)"),
    "out_bias of another length": (of_tensors(out_bias=drawn(7)), "out_bias of shape (7,)"),
    "out_bias alone": (of_tensors(out_weight=GONE), "out_bias of shape (8,)"),
    "dropout of another shape": (of_tensors(keep_scale=drawn(2, 4, 3, 4)), "keep_scale of shape (2, 4, 3, 4)"),
    "maps beside q and k": (of_tensors(weights=drawn(2, 4, 3)), "weights of shape (2, 4, 3)"),
    "no keys": (of_call(keys=GONE), "'keys': must be there"),
    "keys that are a text": (of_call(keys="the cat"), "calls[0].keys = 'the cat'"),
    "queries of another number": (of_call(queries=[["a"] * 4] * 2), "2 lists of 3 texts"),
    "queries of numbers": (of_call(queries=[[1, 2, 3]] * 2), "2 lists of 3 texts"),
    "a name that is a number": (of_call(name=3), "calls[0].name = 3"),
    "extra that is a text": (of_call(extra="one"), "calls[0].extra = 'one'"),
    "more extra columns than keys": (of_call(extra=5), "calls[0].extra = 5"),
    "positions of another number": (of_call(positions=[0, 1]), "calls[0].positions = [0, 1]"),
    "positions in words": (of_call(positions=["a", "b", "c"]), "calls[0].positions"),
    "scale in words": (of_call(scale="0.5"), "calls[0].scale = '0.5'"),
    "scale of none": (of_call(scale=None), "calls[0].scale = None"),
    "infinite scale": (of_call(scale=float("inf")), "calls[0].scale = inf"),
    "off that is a number": (of_call(off=3), "calls[0].off = 3"),
    "off of a head that is not there": (of_call(off=[[4, "zero"]]), "calls[0].off = 4"),
    "off in an unknown way": (of_call(off=[[1, "halved"]]), "off = 'halved'"),
    "no mask": (of_call(mask=GONE), "'mask': must be there"),
    "a mask that is a list": (of_call(mask=[]), "calls[0].mask = []"),
    "a mask of other rules": (of_mask(strided=True), "calls[0].mask = "),
    "a mask for more queries": (of_mask(num_queries=4), "mask.num_queries = 4"),
    "a mask for whole keys": (of_mask(num_keys=4.0), "mask.num_keys = 4.0"),
    "a window of nothing": (of_mask(window=0), "mask.window = 0"),
    "a window in words": (of_mask(window="wide"), "mask.window = 'wide'"),
    "causal as a number": (of_mask(causal=1), "mask.causal = 1"),
    "calls by name": (of_recording(calls={"0": {}}), "calls = {'0': {}}"),
    "a call that is a number": (of_recording(calls=[7]), "calls[0] = 7"),
    "an empty call": (of_recording(calls=[{}]), "calls[0] = 'name'"),
    "a call without tensors": (lambda tensors, about: about["calls"].append(about["calls"][0]), "calls[1] = 'query_padding'"),
    "no calls": (of_recording(calls=None), "calls = None"),
    "notes that are numbers": (of_recording(notes=[1, 2]), "notes = [1, 2]"),
    "notes that are a text": (of_recording(notes="dropout"), "notes = 'dropout'"),
    "an address that is a list": (of_recording(address=["seed=3"]), "address = ['seed=3']"),
    "a cause in words": (of_recording(cause="why"), "cause = 'why'"),
    "a cause without a sentence": (of_recording(cause={"trace": 0}), "cause = {'trace': 0}"),
    "a cause in another call": (of_recording(cause={"trace": 1, "sentence": "why"}), "cause.trace = 1"),
    "a cause in another item": (of_recording(cause={"trace": 0, "sentence": "why", "item": 2}), "cause.item = 2"),
    "a cause in a text": (of_recording(cause={"trace": 0, "sentence": "why", "query": "x"}), "cause.query = 'x'"),
    "half a character": (of_call(name="\ud800"), "half a character"),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_parts_that_do_not_fit_are_named(kind, saved):
    from safetensors import safe_open

    change, said = MISFITS[kind]
    with safe_open(saved, "numpy") as file:
        about = json.loads(file.metadata()["mha_viz"])
    tensors = load_file(saved)
    change(tensors, about)
    save_file(tensors, saved, {"mha_viz": json.dumps(about)})
    with pytest.raises(Wrong) as caught:
        mha_viz.load(saved)
    assert caught.value.argument == "file"
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (np.array([{"a": 1}]), "Python objects"),
        (np.zeros((2, 8), np.uint8), "one axis"),
        (np.zeros(8, np.float32), "float32"),
        (np.zeros(0, np.uint8), "cut off"),
        (np.zeros(20, np.uint8), "cut off"),
    ],
)
def test_an_npz_whose_recording_is_none(held, said, tmp_path):
    np.savez(tmp_path / "run.npz", recording=held)
    with pytest.raises(Wrong, match=said):
        mha_viz.load(tmp_path / "run.npz")


def test_a_member_of_an_npz_that_is_damaged(tmp_path):
    Recording((grouped(),)).save(tmp_path / "run.npz")
    data = bytearray((tmp_path / "run.npz").read_bytes())
    place = data.index(b"\x93NUMPY")
    data[place + 6] = 9  # a version that there is not
    (tmp_path / "run.npz").write_bytes(data)
    with pytest.raises(Wrong, match="cannot be read"):
        mha_viz.load(tmp_path / "run.npz")


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


def test_a_picture_of_a_recording_that_holds_nothing_says_so():
    with pytest.raises(Wrong, match="holds no attention: nothing was recorded"):
        mha_viz.heads(Recording(()))


def test_a_file_holds_no_more_calls_than_are_opened(tmp_path):
    one = trace_of_maps(np.full((1, 1, 1, 1), 1.0))
    for suffix in (".safetensors", ".npz"):
        with pytest.raises(Wrong, match=r"at most 2,048 can be opened again.*layers=…, steps=…"):
            Recording((one,) * 2049).save(tmp_path / f"run{suffix}")
        assert not list(tmp_path.iterdir())
