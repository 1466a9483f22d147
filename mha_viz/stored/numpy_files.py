"""``.npy`` and ``.npz``: the header of each array is checked against the bytes behind it before the array is made."""

from __future__ import annotations

import io
import zipfile
from math import prod
from typing import IO

import numpy as np

from mha_viz.core.rules import Wrong
from mha_viz.stored.stored import MOST_TENSORS, Data, Stored, check_expansion, check_size, check_tensors, reading

# what ZipFile itself reads first of a file; the module's types do not have them
end_of_directory, COUNT, SIZE = (getattr(zipfile, name) for name in ("_EndRecData", "_ECD_ENTRIES_TOTAL", "_ECD_SIZE"))
ENTRY = 160  # bytes of a zip's directory for each of its members, the name among them


def stored_npy(name: str, data: Data, size: int) -> Stored:
    """The Stored of an ``.npy`` of ``size`` bytes; ``data`` are its bytes or its path."""
    check_size(name, size)

    def opened() -> IO[bytes]:
        return io.BytesIO(data) if isinstance(data, bytes) else open(data, "rb")

    with reading(name), opened() as file:
        shape, fortran, dtype, start = _header(name, "", file, size)

    def load() -> np.ndarray:
        if isinstance(data, bytes):  # a view of the file's own bytes
            flat = np.frombuffer(data, dtype, prod(shape), start)
        else:
            flat = np.fromfile(data, dtype, prod(shape), offset=start)
            flat.flags.writeable = False  # nobody else's, so that whoever owns it need not copy it
        return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)

    return Stored("", shape, dtype.name, load)


def zip_of(name: str, data: Data) -> zipfile.ZipFile:
    """The open zip archive in a file; ``data`` are its bytes or its path. Raises Wrong where it is none, or has too many members."""
    with reading(name):
        with io.BytesIO(data) if isinstance(data, bytes) else open(data, "rb") as file:
            end = end_of_directory(file)  # the directory itself takes seconds where it is large
        if end is not None:
            check_tensors(name, end[COUNT])
            if end[SIZE] > ENTRY * MOST_TENSORS:
                raise Wrong("file", name, f"has a directory of {end[SIZE]:,} bytes: its names are too long to be read.")
        return zipfile.ZipFile(io.BytesIO(data) if isinstance(data, bytes) else data)


def stored_npz(name: str, archive: zipfile.ZipFile, held: int, only: str | None = None) -> dict[str, Stored]:
    """By name, the Stored of the arrays in an open zip ``archive`` of ``held`` bytes; it stays open while they can be read.

    It is the one called ``only`` where that is not None, if it is there.
    """
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    check_tensors(name, len(members))
    size = sum(member.file_size for member in members.values())
    check_size(name, size)
    check_expansion(name, size, held)
    if only is not None:
        members = {only: members[only]} if only in members else {}
    with reading(name):
        return {key: _member(name, key, archive, member) for key, member in members.items()}


def _member(name: str, key: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Stored:
    with archive.open(member) as file:  # inflates the header alone
        shape, _, dtype, _ = _header(name, key, file, member.file_size)

    def load() -> np.ndarray:
        with archive.open(member) as file:
            array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
            if file.read(1):  # read to its end, the member is compared with its checksum
                raise zipfile.BadZipFile(f"{key} holds more than its header says")
            return array

    return Stored(key, shape, dtype.name, load)


def _header(name: str, key: str, file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """(shape, Fortran order, dtype, where the numbers begin) of an ``.npy`` of ``size`` bytes."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    held = size - file.tell()
    called = key or "its array"
    if dtype.hasobject:
        rule = f"holds Python objects ({called}), and to read them could run code from the file. Save numbers alone."
        raise Wrong("file", name, rule)
    if any(length < 0 for length in shape):
        raise Wrong("file", name, f"is damaged: {called} has the shape {shape}.")
    if prod(shape) * dtype.itemsize > held:
        promised = f"{called}, {shape} of {dtype}, takes {prod(shape) * dtype.itemsize:,} bytes"
        raise Wrong("file", name, f"is cut off: {promised}, and {held:,} are there.")
    return tuple(map(int, shape)), fortran, dtype, file.tell()
