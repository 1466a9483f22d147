"""Bytes or a path in, named tensors, a text or a Recording out: nothing in a file is run, and nothing larger than stated is read."""

from os import PathLike
from pathlib import Path
from typing import TypeAlias

from mha_viz.core.rules import Wrong
from mha_viz.recording import HELD, Recording, is_recording, recording_of, recording_of_npz
from mha_viz.stored.numpy_files import stored_npy, stored_npz, zip_of
from mha_viz.stored.safetensors_files import begins_as_safetensors, stored_safetensors
from mha_viz.stored.stored import Stored, check_size, reading
from mha_viz.stored.torch_files import stored_stream, stored_zip

LARGEST_TEXT = 4 * 2**20  # bytes
OPENED = "a recording, .safetensors, .npy, .npz, .pt (saved by torch.save), or tokens as text or JSON"
Data: TypeAlias = bytes | str | PathLike[str]  # a file's bytes, or its path
Content: TypeAlias = Recording | dict[str, Stored] | str
BINARY = (".safetensors", ".npy", ".npz", ".pt", ".pth", ".bin", ".ckpt")


def read_file(name: str, data: Data) -> Content:
    """The content of a file: a Recording, its tensors as {name: Stored}, or a text.

    ``data`` are bytes or a path. Raises Wrong, with ``name``, for whatever cannot be read.
    """
    data = data if isinstance(data, bytes) else Path(data)
    with reading(name):
        size = len(data) if isinstance(data, bytes) else data.stat().st_size
        start = data[:16] if isinstance(data, bytes) else _start(name, data)
    if not size:
        raise Wrong("file", name, "is empty.")
    if begins_as_safetensors(start):
        if isinstance(data, bytes):
            check_size(name, size)
        tensors, metadata = stored_safetensors(name, data, size)
        if not is_recording(metadata):
            return tensors
        return recording_of(name, tensors, metadata, size)
    if start.startswith(b"\x93NUMPY"):
        return {"": stored_npy(name, data, size)}
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # with members, and without
        return _zip(name, data, size)
    if start.startswith(b"\x80"):  # a pickle, as torch.save wrote before 1.6
        return stored_stream(name, data, size)
    return _text(name, data, size)


def _start(name: str, path: Path) -> bytes:
    if not path.is_file():
        raise Wrong("file", name, "is no file.")
    with open(path, "rb") as file:
        return file.read(16)


def _zip(name: str, data: bytes | Path, size: int) -> Content:
    """A Recording or the tensors of an ``.npz``, or those of what ``torch.save`` wrote."""
    archive = zip_of(name, data)  # open as long as its tensors are at hand
    members = archive.namelist()
    if any(member.rpartition("/")[2] == "data.pkl" for member in members):
        if isinstance(data, bytes):
            check_size(name, size)
        return stored_zip(name, data, archive, size)
    if any(not member.endswith(".npy") for member in members):
        raise Wrong("file", name, f"is a zip archive of something else. What can be opened is {OPENED}.")
    if f"{HELD}.npy" in members:
        return recording_of_npz(name, archive, size)
    return stored_npz(name, archive, size)


def _text(name: str, data: bytes | Path, size: int) -> str:
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


def shape_of(stored: Stored) -> str:
    """ "[2, 3] float32"."""
    return f"{list(stored.shape)} {stored.dtype}"
