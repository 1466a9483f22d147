"""Small files that claim to be large: refused, or opened, from what their headers say, in a process that counts its memory."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.recording import Recording
from tests.forked import Forked

pytestmark = pytest.mark.slow

# Looks at a file and opens it with the guesses: the megabytes and seconds of the processor that it took, and the outcome.
PROGRAM = """
import sys, time
from pathlib import Path
import mha_viz.core.engine
import mha_viz.sources.files, mha_viz.sources.files.weights, mha_viz.sources.files.maps
from mha_viz.core.rules import Wrong
from mha_viz.sources.files import look, open_found

def megabytes(field):
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith(field))

def measure(path, how):
    path = Path(path)
    data = path.read_bytes() if how == "bytes" else path
    before, start = megabytes("VmRSS"), time.process_time()
    try:
        found = look(path.name, data)
        answers = {q.field: q.choices[0] if q.guess is None else q.guess for q in found.questions}
        said = f"{len(open_found(found, **answers).traces)} opened"
    except Wrong as wrong:
        said = str(wrong)
    return megabytes("VmHWM") - before, time.process_time() - start, said
"""


@pytest.fixture(scope="module")
def measured():
    with Forked(PROGRAM, **os.environ | {"OMP_NUM_THREADS": "1"}) as forked:
        yield lambda path, how: forked(str(path), how)


def pt(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def npz(save=np.savez_compressed, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def wide():
    """A layer of 22,000 numbers a token, of one number on the disk."""
    one = torch.zeros(1, 1)
    return {"in_proj_weight": one.expand(66_000, 22_000), "out_proj.weight": one.expand(22_000, 22_000)}


def nested(levels):
    held = torch.zeros(2, 2)
    for _ in range(levels):
        held = [held, held]
    return held


def bomb():
    """1.6 GB of zeros in 7 MB."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open("a.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (200, 1000, 2000)})
        for _ in range(200):
            member.write(bytes(8_000_000))
    return file.getvalue()


def many_layers(count):
    eye = np.eye(2, dtype=np.float32)
    return {f"layers.{i}.{x}_proj.weight": eye for i in range(count) for x in "qkvo"}


def maps(count):
    return {f"a{i}": np.full((4, 4), 0.25, np.float32) for i in range(count)}


def recording(count, suffix, calls=None):
    """The bytes of a recording of so many equal calls, and of one that describes ``calls`` of them instead."""
    tensors, metadata = Recording((call(),))._parts()
    about = json.loads(metadata["mha_viz"])
    tensors = {f"{i}.{key.partition('.')[2]}": array for i in range(count) for key, array in tensors.items()}
    about["calls"] *= count if calls is None else calls
    data = save(tensors, {"mha_viz": json.dumps(about)})
    if suffix == ".safetensors":
        return data
    every = Recording((call(),))._arrays()
    every.pop("recording")
    return npz(
        np.savez,
        recording=np.frombuffer(data, np.uint8),
        **{f"{i}.{key}": array for i in range(count) for key, array in every.items()},
    )


def call():
    torch.manual_seed(0)
    q = torch.randn(1, 2, 4, 2).numpy()
    return trace_of_call(Call(q, q, q, out_weight=np.eye(4, dtype=np.float32), out_bias=np.zeros(4, np.float32)))


def bytearray_of(size):
    """A pickle that asks for so many bytes of memory: PROTO 2, GLOBAL, an int, TUPLE1, REDUCE, STOP."""
    return b"\x80\x02cbuiltins\nbytearray\nJ" + size.to_bytes(4, "little") + b"\x85R."


def zipped(pickled):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
    return file.getvalue()


SMALL = {
    "a wide layer": (lambda: pt(wide()), "would expand to 7,744,000,000"),
    "a wide layer as before 1.6": (lambda: pt(wide(), _use_new_zipfile_serialization=False), "would expand to 7,744,000,000"),
    "one number as maps": (lambda: pt(torch.ones(1, 1).expand(20_000, 20_000)), "would expand to 1,600,000,000"),
    "a tensor in many places": (lambda: pt([torch.full((1000, 1000), 1e-3)] * 30_000), "would expand to 120,000,000,000"),
    "lists in lists": (lambda: pt(nested(26)), "the same ones in as many places"),
    "lists in lists in lists": (lambda: pt(nested(60)), "the same ones in as many places"),
    "lists too deep": (lambda: pt(nested(90)), "64 containers deep"),
    "a long name for many": (lambda: pt({"a" * 1_000_000: [torch.zeros(2, 2)] * 1000}), "the same ones in as many places"),
    "a large bytearray": (lambda: zipped(bytearray_of(2**31 - 1)), "no tensor at all"),
    "a far place in the memo": (lambda: zipped(b"\x80\x02]r\xff\xff\xff\x7f."), "no tensor at all"),
    "a zip bomb": (bomb, "would expand to 1,600,000,128"),
    "token lists that are padded": (lambda: json.dumps([["a"] * 2000] + [["a"]] * 2000).encode(), "they are 4,002,000"),
    "token lists that are padded less": (lambda: json.dumps([["a"] * 400] + [["a"]] * 400).encode(), "at most 16,384"),
    "many lines": (lambda: b"a\n" * 2_000_000, "2,000,000 tokens"),
    "many items": (lambda: b"a\n\n" * 1_300_000, "1,300,000"),
    "many words": (lambda: " ".join(map(str, range(260_000))).encode(), "at most 16,384"),
    "many arrays": (lambda: npz(**maps(2000)), "2000 opened"),
    "many tensors": (lambda: save(many_layers(2000)), "2000 opened"),
    "too many layers": (lambda: save(many_layers(4000)), "4,000 attention layers, and at most 2,048"),
    "too many layers in a .pt": (
        lambda: pt({name: torch.from_numpy(array.copy()) for name, array in many_layers(4000).items()}),
        "4,000 attention layers, and at most 2,048",
    ),
    "too many maps": (lambda: save(maps(16_000)), "16,000 arrays that may be attention maps"),
    "too many maps in a .pt": (
        lambda: pt({name: torch.from_numpy(array) for name, array in maps(16_000).items()}),
        "16,000 arrays that may be attention maps",
    ),
    "too many arrays": (lambda: npz(**maps(16_000)), "16,000 arrays that may be attention maps"),
    "far too many arrays": (lambda: npz(np.savez, **maps(60_000)), "60,000 tensors, and at most 50,000"),
    "far too many tensors": (lambda: save(maps(200_000)), "200,000 tensors, and at most 50,000"),
    "layers of one array": (lambda: npz(a=np.ones((30_000, 1, 1, 2, 1))), "30,000 layers of attention maps, and at most 2,048"),
    "a long recording": (lambda: recording(2048, ".safetensors"), "2048 opened"),
    "a long recording in an .npz": (lambda: recording(2048, ".npz"), "2048 opened"),
    "a recording too long": (lambda: recording(2049, ".safetensors"), "2,049 attention calls, and at most 2,048"),
    "a recording too long in an .npz": (lambda: recording(2049, ".npz"), "2,049 attention calls, and at most 2,048"),
    "a recording far too long": (lambda: recording(16_000, ".safetensors"), "96,000 tensors, and at most 50,000"),
    "a recording far too long in an .npz": (lambda: recording(4_000, ".npz"), "tensors, and at most 50,000"),
    "a recording of calls that are not there": (lambda: recording(1, ".safetensors", 50_000), "calls[1]"),
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is counted as Linux tells it")
@pytest.mark.parametrize("kind", SMALL)
def test_a_small_file_takes_little_whatever_it_claims(kind, measured, tmp_path):
    make, outcome = SMALL[kind]
    (tmp_path / "file").write_bytes(make())
    megabytes, seconds, said = measured(tmp_path / "file", "bytes")
    assert outcome in said
    assert megabytes < 100
    assert seconds < (6 if "opened" in said else 3)  # a quiet machine needs a third of that or less


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is counted as Linux tells it")
@pytest.mark.parametrize("how", ["bytes", "path"])
def test_an_honest_file_is_opened_in_little_more_than_its_own_size(how, measured, tmp_path):
    np.save(tmp_path / "file", np.full((18, 1, 1000, 1000), 1e-3, np.float32))  # 72 MB
    megabytes, _, said = measured(tmp_path / "file.npy", how)
    assert "1 opened" in said
    assert megabytes < (
        72 if how == "bytes" else 144
    )  # of bytes nothing is copied, a path is read once; and masks a byte a cell


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is counted as Linux tells it")
def test_many_tensors_of_a_pt_on_a_disk_map_it_once(measured, tmp_path):
    (tmp_path / "file.pt").write_bytes(pt({name: torch.from_numpy(array.copy()) for name, array in maps(2000).items()}))
    megabytes, _, said = measured(tmp_path / "file.pt", "path")
    assert "2000 opened" in said
    assert megabytes < 100


@pytest.mark.parametrize("as_path", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_every_tensor_of_a_pt_is_read_as_torch_reads_it(old, as_path, tmp_path):
    from mha_viz.sources.files.read import read_file

    torch.manual_seed(0)
    base = torch.randn(6, 8)
    held = {
        "epoch": 3,
        "options": {"lr": 1e-3, "betas": (0.9, 0.99)},
        "model": {
            "plain": base,
            "turned": base.T,
            "part": base[1:4, ::2],
            "one": base[2, 3],
            "parameter": torch.nn.Parameter(base + 1),
            "half": base.half(),
            "brain": base.bfloat16(),
            "double": base.double(),
            "empty": torch.zeros(0, 3),
            "repeated": torch.ones(1, 4).expand(3, 4),
            "ids": torch.arange(4),
            "yes": torch.tensor([True]),
            "z": torch.zeros(2, dtype=torch.complex64),
        },
        "list": [base * 2, (base * 3,)],
        "state": torch.nn.Linear(3, 2).state_dict(),
    }
    path = tmp_path / "a.pt"
    torch.save(held, path, _use_new_zipfile_serialization=not old)
    tensors = read_file("a.pt", path if as_path else path.read_bytes())
    expected = {f"model.{name}": tensor for name, tensor in held["model"].items()}
    expected |= {"list.0": base * 2, "list.1.0": base * 3} | {f"state.{name}": tensor for name, tensor in held["state"].items()}
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (tensors[name].shape, f"torch.{tensors[name].dtype}") == (tuple(tensor.shape), str(tensor.dtype))
        if tensors[name].floating:
            np.testing.assert_array_equal(
                tensors[name].read(), tensor.detach().float() if name == "model.brain" else tensor.detach()
            )
