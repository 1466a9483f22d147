"""Bytes or a path in, named tensors, a text or a Recording out: nothing in a file is run, and nothing larger than stated is read."""

import contextlib
import io
import json
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from mha_viz.core.arrays import as_array
from mha_viz.core.rules import Wrong
from mha_viz.recording import HELD, is_recording, load

LARGEST = 2 * 2**30  # bytes that are read at once; of a larger .safetensors or .pt on a disk, the tensors that are asked for
LARGEST_TEXT = 4 * 2**20  # bytes
LONGEST_HEADER = 100_000_000  # bytes: safetensors' own limit
OPENED = "a recording, .safetensors, .npy, .npz, .pt (saved by torch.save), or tokens as text or JSON"
BINARY = (".safetensors", ".npy", ".npz", ".pt", ".pth", ".bin", ".ckpt")


@dataclass(frozen=True, eq=False)
class Stored:
    """One tensor of a file, read when it is asked for: its ``shape``, and its type by PyTorch's or NumPy's name."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], object]

    @property
    def floating(self):
        return "float" in self.dtype

    def read(self):
        """The tensor as a NumPy array of float16, float32 (bfloat16 too) or float64."""
        called = self.name or "the array"  # an .npy holds one, without a name
        check_size(called, 4 * prod(self.shape))
        with reading(called):
            return as_array(called, self.load())


def read_file(name, data):
    """(form, content) of a file: ("recording", Recording), ("tensors", {name: Stored}) or ("text", str).

    ``data`` are bytes or a path. Raises Wrong, with ``name``, for whatever cannot be read.
    """
    data = data if isinstance(data, bytes) else Path(data)
    with reading(name):
        size = len(data) if isinstance(data, bytes) else data.stat().st_size
        start = data[:16] if isinstance(data, bytes) else _start(name, data)
    if not size:
        raise Wrong("file", name, "is empty.")
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= LONGEST_HEADER:
        return _safetensors(name, data, size)
    if start.startswith(b"\x93NUMPY"):
        check_size(name, size)
        with reading(name):
            return "tensors", {"": _numpy(name, "", lambda: _opened(data), size)}
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # with members, and without
        return _zip(name, data)
    if start.startswith(b"\x80"):  # a pickle, as torch.save wrote before 1.6
        check_size(name, size)
        return "tensors", _torch(name, data, mmap=False)
    return "text", _text(name, data, size)


@contextlib.contextmanager
def reading(name):
    """Whatever a reader raises becomes a Wrong: in a damaged or hostile file it can fail anywhere, and in any way."""
    try:
        yield
    except Wrong:
        raise
    except pickle.UnpicklingError as error:
        rule = (
            "is damaged, or holds something else than tensors, which is not read: that could run code from the file. "
            "Save tensors alone: torch.save(model.state_dict(), …)."
        )
        raise Wrong("file", name, rule) from error
    except MemoryError as error:
        raise Wrong("file", name, "does not fit into memory.") from error
    except FileNotFoundError as error:
        raise Wrong("file", name, "is not there: no such file.") from error
    except PermissionError as error:
        raise Wrong("file", name, "may not be read: permission denied.") from error
    except Exception as error:
        said = " ".join(str(error).split())
        raise Wrong(
            "file", name, f"cannot be read, it may be damaged or cut off: {said[:200] or type(error).__name__}"
        ) from error


def _start(name, path):
    if not path.is_file():
        raise Wrong("file", name, "is no file.")
    with open(path, "rb") as file:
        return file.read(16)


def _opened(data):
    return io.BytesIO(data) if isinstance(data, bytes) else open(data, "rb")


def check_size(name, size):
    """Raises Wrong for more bytes than are read at once."""
    if size > LARGEST:
        raise Wrong("file", name, f"would take {size:,} bytes; at most {LARGEST:,} are read at once.")


def _safetensors(name, data, size):
    """A Recording, or the tensors: those of a path are read one by one."""
    from safetensors import safe_open
    from safetensors.torch import load as load_bytes

    if isinstance(data, bytes):
        check_size(name, size)
        with reading(name):
            tensors = _torch_tensors(load_bytes(data))
            return ("recording", _recording_in(name, data)) if is_recording(_metadata(data)) else ("tensors", tensors)
    with reading(name), safe_open(data, "numpy") as file:
        if is_recording(file.metadata()):
            check_size(name, size)
            return "recording", _recording_at(name, data)
        slices = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
        shapes = {key: (tuple(part.get_shape()), _safe_type(part.get_dtype())) for key, part in slices.items()}

    def tensor(key):
        with safe_open(data, "pt") as file:
            return file.get_tensor(key)

    return "tensors", {key: Stored(key, *about, lambda key=key: tensor(key)) for key, about in shapes.items()}


def _metadata(data):
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]).get("__metadata__")


def _safe_type(code):
    """ "bfloat16" for "BF16", as PyTorch and NumPy say it."""
    for letters, word in (("BF", "bfloat"), ("F", "float"), ("I", "int"), ("U", "uint")):
        if code.startswith(letters):
            return word + code.removeprefix(letters)
    return code.lower()


def _recording_in(name, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.safetensors"
        path.write_bytes(data)
        return _recording_at(name, path)


def _recording_at(name, path):
    try:
        return load(path)
    except Wrong as wrong:
        if wrong.argument != "file":
            raise
        raise Wrong("file", name, wrong.rule.replace(str(path), str(name))) from wrong


def _zip(name, data):
    """A Recording or the tensors of an ``.npz``, or those of what ``torch.save`` wrote."""
    with reading(name), _opened(data) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    size = sum(member.file_size for member in members)
    if any(member.filename.endswith("data.pkl") for member in members):
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise Wrong("file", name, "is compressed, which torch.save never does: it is not read.")
        if isinstance(data, bytes):
            check_size(name, size)
        return "tensors", _torch(name, data, mmap=not isinstance(data, bytes))
    if any(not member.filename.endswith(".npy") for member in members):
        raise Wrong("file", name, f"is a zip archive of something else. What can be opened is {OPENED}.")
    check_size(name, size)
    if any(member.filename == f"{HELD}.npy" for member in members):
        return "recording", _recording_in(name, data) if isinstance(data, bytes) else _recording_at(name, data)

    def opened(member):
        with _opened(data) as file, zipfile.ZipFile(file) as archive:
            return io.BytesIO(archive.read(member))

    with reading(name):
        return "tensors", {
            key: _numpy(name, key, lambda member=member: opened(member), member.file_size)
            for member in members
            for key in [member.filename.removesuffix(".npy")]
        }


def _numpy(name, key, opened, size):
    """The Stored of one ``.npy``; its header is checked first, which may promise more than ``size`` bytes hold."""
    with opened() as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
        held = size - file.tell()
    if dtype.hasobject:
        rule = "holds Python objects, and to read them could run code from the file. Save numbers alone."
        raise Wrong("file", name, rule)
    if prod(shape) * dtype.itemsize > held:
        promised = f"{key or 'its array'}, {shape} of {dtype}, takes {prod(shape) * dtype.itemsize:,} bytes"
        rule = f"is cut off: {promised}, and {held:,} are there."
        raise Wrong("file", name, rule)

    def load():
        with opened() as file:
            return np.load(file, allow_pickle=False)

    return Stored(key, shape, dtype.name, load)


def _torch(name, data, mmap):
    import torch

    source = io.BytesIO(data) if isinstance(data, bytes) else data
    with reading(name):
        return _torch_tensors(torch.load(source, map_location="cpu", weights_only=True, mmap=mmap))


def _torch_tensors(held):
    tensors = dict(_flat(held))
    for key in tensors:
        key.encode()  # a pickle may hold text that is none, and no page could show it
    return {
        key: Stored(key, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), lambda tensor=tensor: tensor)
        for key, tensor in tensors.items()
    }


def _flat(held, name=""):
    """(name, tensor) of all tensors in nested dicts, lists and tuples, names joined by dots: checkpoints nest their state dict."""
    import torch

    if isinstance(held, torch.Tensor):
        yield name, held
        return
    inside = held.items() if isinstance(held, Mapping) else enumerate(held) if isinstance(held, list | tuple) else ()
    for key, value in inside:
        yield from _flat(value, f"{name}.{key}" if name else str(key))


def _text(name, data, size):
    suffix = Path(str(name)).suffix.lower()
    if suffix in BINARY:
        raise Wrong(
            "file",
            name,
            f"is named {suffix} and does not begin as such a file does: it may be cut off, or another kind of file.",
        )
    if size > LARGEST_TEXT:
        raise Wrong(
            "file", name, f"has {size:,} bytes; token lists may have {LARGEST_TEXT:,}. Else what can be opened is {OPENED}."
        )
    with reading(name):
        data = data if isinstance(data, bytes) else data.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        rule = f"is not UTF-8 text (byte {error.start} is {data[error.start]:#04x}), and of no other kind that can be opened: {OPENED}."
        raise Wrong("file", name, rule) from None
    if "\0" in text:
        raise Wrong("file", name, f"is no text, and of no other kind that can be opened: {OPENED}.")
    return text


def shape_of(stored):
    """ "[2, 3] float32"."""
    return f"{list(stored.shape)} {stored.dtype}"
