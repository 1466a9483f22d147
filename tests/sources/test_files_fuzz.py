"""Valid files, damaged in every way that is easily thought of: the outcome is what the file holds, or a Wrong, and it comes soon."""

import copy
import io
import json
import random
import time

import numpy as np
import pytest
import torch
from safetensors.numpy import save

import mha_viz as mv
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Wrong
from mha_viz.sources.files import look, open_found

E, H = 16, 4
SECONDS = 5  # that one file may take, on a machine that is busy
VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1,
    3.5,
    float("nan"),
    float("inf"),
    10**30,
    "",
    "x",
    "1",
    [],
    [1],
    ["a"],
    [[1]],
    [None],
    {},
    {"a": 1},
    "\ud800",
    "a" * 5000,
    [[[[[[]]]]]],
)
LENGTHS = (0, 1, 2, 3, 4, 5, 8, 16, 17, 48)
TYPES = ("float16", "float32", "float64", "int64", "bool", "uint8", "complex64", "int8", ">f4", "U3", "O")


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def separate(names, leaf="weight", widths=(E, E, E, E), bias=True):
    weights = {f"attn.{name}.{leaf}": drawn(out, E) for name, out in zip(names, widths, strict=True)}
    return weights | ({f"attn.{name}.bias": drawn(out) for name, out in zip(names, widths, strict=True)} if bias else {})


def flax():
    held = {f"attn/{x}/kernel": drawn(E, H, E // H) for x in ("query", "key", "value")} | {
        "attn/out/kernel": drawn(H, E // H, E)
    }
    return held | {f"attn/{x}/bias": drawn(H, E // H) for x in ("query", "key", "value")} | {"attn/out/bias": drawn(E)}


WEIGHTS = {
    "module": lambda: {name: value.numpy() for name, value in torch.nn.MultiheadAttention(E, H).state_dict().items()},
    "wide": lambda: {
        name: value.numpy() for name, value in torch.nn.MultiheadAttention(E, H, kdim=8, vdim=9).state_dict().items()
    },
    "bert": lambda: separate(("query", "key", "value", "out")),
    "llama": lambda: separate(("q_proj", "k_proj", "v_proj", "o_proj"), widths=(E, E // 2, E // 2, E), bias=False),
    "gpt2": lambda: {
        "h.c_attn.weight": drawn(E, 3 * E),
        "h.c_attn.bias": drawn(3 * E),
        "h.c_proj.weight": drawn(E, E),
        "h.c_proj.bias": drawn(E),
    },
    "neox": lambda: {
        "l.query_key_value.weight": drawn(3 * E, E),
        "l.query_key_value.bias": drawn(3 * E),
        "l.dense.weight": drawn(E, E),
    },
    "flax": flax,
}


def maps(*shape):
    return torch.from_numpy(drawn(*shape)).softmax(-1).numpy()


def recording(tmp_path, kind="safetensors"):
    q, k = drawn(2, H, 3, 6), drawn(2, 2, 5, 6)
    mask = Mask(3, 4, extra=1, causal=True, window=2, padded=np.eye(2, 4, dtype=bool), bias=drawn(1, H, 3, 4))
    tokens = mv.core.tokens.Tokens.of(2, 3, 5, one_sequence=False)
    tokens = mv.core.tokens.Tokens(tokens.queries, tokens.keys, tokens.query_padding, 1, np.arange(3) + 1)
    call = trace_of_call(Call(q, k, k, mask, 0.25, drawn(8, 24), drawn(8), tokens, "layers.1"))
    about = ("a note",), mv.recording.Cause(0, "why", 0, None, 2), "?seed=3"
    mv.Recording((call, mv.core.maps.trace_of_maps(maps(1, 2, 3, 4))), *about).save(tmp_path / f"run.{kind}")
    return (tmp_path / f"run.{kind}").read_bytes()


def as_pt(arrays, chance):
    file = io.BytesIO()
    native = {
        name: np.ascontiguousarray(array)
        for name, array in arrays.items()
        if array.dtype.isnative and array.dtype.kind in "fibuc"
    }
    held = {name: torch.from_numpy(array) for name, array in native.items()}
    held = chance.choice([held, {"model": held, "step": 3}, list(held.values())])
    torch.save(held, file, _use_new_zipfile_serialization=chance.random() < 0.7)
    return file.getvalue()


def as_npz(arrays, chance):
    file = io.BytesIO()
    chance.choice([np.savez, np.savez_compressed])(file, **{name.replace("/", "."): array for name, array in arrays.items()})
    return file.getvalue()


def as_safetensors(arrays, chance):
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array.dtype.kind in "fibu"}
    return save({name: array.astype(array.dtype.newbyteorder("=")) for name, array in plain.items()})


def other_shape(array, chance):
    shape = list(array.shape)
    how = chance.randrange(6)
    if how == 0:
        return array.T
    if how == 1:
        return array.reshape(-1)
    if how == 2 or not shape:
        return np.resize(array, ()) if array.size else array  # one number
    if how == 3:
        return array[None]
    shape[chance.randrange(len(shape))] = chance.choice(LENGTHS)
    return np.resize(array, shape)


def damaged_arrays(arrays, chance):
    """The arrays, of which some are gone, renamed, or of another shape or type."""
    arrays = dict(arrays)
    for _ in range(chance.choice((1, 1, 2, 3))):
        if not arrays:
            break
        name = chance.choice(list(arrays))
        how = chance.random() if arrays[name].dtype.kind in "fibuc" else 0
        if how < 0.15:
            del arrays[name]
        elif how < 0.25:
            arrays[chance.choice((*arrays, "x", f"{name}x", "attn.q.weight", "²", "layer 10.weight"))] = arrays.pop(name)
        elif how < 0.75:
            arrays[name] = other_shape(arrays[name], chance)
        elif how < 0.9:
            arrays[name] = arrays[name].real.astype(chance.choice(TYPES))
        else:
            arrays[name] = np.full_like(
                arrays[name], chance.choice((np.nan, np.inf, 0, -1)) if arrays[name].dtype.kind == "f" else 1
            )
    return arrays


def damaged_json(held, chance):
    """What JSON holds, of which some is gone, renamed, nested or of another type."""
    held = json.loads(json.dumps(held))
    for _ in range(chance.choice((1, 1, 2, 3))):
        place = held
        while isinstance(place, dict | list) and place:
            key = chance.choice(list(place)) if isinstance(place, dict) else chance.randrange(len(place))
            inner, how = place[key], chance.random()
            if isinstance(inner, dict | list) and inner and how < 0.75:
                place = inner
                continue
            if how < 0.15:
                del place[key]
            elif how < 0.25 and isinstance(place, dict):
                place[chance.choice(("x", "seed", "name"))] = place.pop(key)
            elif how < 0.3 and isinstance(place, list):
                place.append(copy.deepcopy(inner))
            elif how < 0.4:
                place[key] = [inner]
            else:
                place[key] = copy.deepcopy(chance.choice(VALUES))
            break
    return held


def damaged_bytes(data, chance):
    """The file cut off, lengthened, or with some bytes changed, mostly where a header is."""
    data = bytearray(data)
    how = chance.random()
    if how < 0.1:
        return bytes(data[: chance.randrange(len(data))])
    if how < 0.15:
        return bytes(data) + bytes(chance.randrange(1, 50))
    for _ in range(chance.choice((1, 2, 3, 8))):
        area = chance.choice((16, 200, 2000, len(data)))
        place = chance.randrange(min(area, len(data)))
        place = len(data) - 1 - place if chance.random() < 0.2 else place
        data[place] = chance.randrange(256)
    return bytes(data)


def parts_of_recording(data):
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    import safetensors.numpy

    return safetensors.numpy.load(data), json.loads(metadata["mha_viz"])


def damaged_recording(data, chance):
    tensors, about = parts_of_recording(data)
    if chance.random() < 0.6:
        about = damaged_json(about, chance)
    if chance.random() < 0.6:
        tensors = damaged_arrays(tensors, chance)
    plain = {n: np.ascontiguousarray(a.astype(a.dtype.newbyteorder("="))) for n, a in tensors.items() if a.dtype.kind in "fibu"}
    return save(plain, {"mha_viz": json.dumps(about)})


def files(tmp_path, seed, count):
    """(name, bytes) of ``count`` damaged files, the same for the same seed."""
    chance = random.Random(seed)
    whole, npz = recording(tmp_path), recording(tmp_path, "npz")
    texts = {"queries": [["the", "cat"], ["a", "dog"]], "keys": [["x", "y", "z"], ["u", "v", "w"]]}
    for number in range(count):
        kind = chance.choice(("weights", "weights", "weights", "maps", "recording", "recording", "json", "npz"))
        if kind == "weights":
            arrays = WEIGHTS[chance.choice(list(WEIGHTS))]()
        elif kind == "maps":
            arrays = {"a": maps(2, 3, 5, 5), "b": maps(5, 5), "c": maps(2, 3, 4, 7)}
        if kind in ("weights", "maps"):
            write = chance.choice((as_pt, as_npz, as_safetensors))
            data = write(damaged_arrays(arrays, chance) if chance.random() < 0.7 else arrays, chance)
        elif kind == "recording":
            data = damaged_recording(whole, chance)
        elif kind == "npz":
            data = npz
        else:
            data = json.dumps(damaged_json(texts, chance)).encode()
        if kind == "npz" or chance.random() < 0.4:
            data = damaged_bytes(data, chance)
        yield f"{number} {kind}.json" if kind == "json" else f"{number} {kind}", data


def opened(name, data, chance):
    """Everything that a page reads of a file: what it holds, its questions, and each Trace under some answers."""
    found = look(name, data)
    str(found.holds).encode()
    answers = {}
    while question := next((one for one in found.ask(**answers) if one.field not in answers), None):
        choices = question.choices[:8] if isinstance(question.choices, range) else question.choices
        answers[question.field] = chance.choice(choices) if question.guess is None or chance.random() < 0.3 else question.guess
    made = open_found(found, **answers)
    for trace in made.traces:
        for field in trace.fields():
            if trace.has(field):
                getattr(trace, field)
        str((trace.name, trace.query_tokens, trace.key_tokens, trace.num_positions, made.notes)).encode()


def failures(tmp_path, seed, count):
    """What ended in something else than a result or a Wrong, and what took too long."""
    chance = random.Random(seed)
    for name, data in files(tmp_path, seed, count):
        start = time.process_time()
        try:
            with np.errstate(all="ignore"):
                opened(name, data, chance)
        except Wrong as wrong:
            str(wrong).encode()
        except Exception as error:
            yield name, data, repr(error)
        if time.process_time() - start > SECONDS:
            yield name, data, f"{time.process_time() - start:.1f} s"


def test_a_damaged_file_ends_in_a_result_or_a_wrong(tmp_path):
    assert [(name, said) for name, _, said in failures(tmp_path, 1, 500)] == []


@pytest.mark.parametrize("kind", WEIGHTS)
def test_whole_weights_are_opened(kind):
    opened(kind, save({name: np.ascontiguousarray(array) for name, array in WEIGHTS[kind]().items()}), random.Random(0))
