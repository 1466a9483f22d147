"""``.pt`` files: tensors are views of the bytes that are there. Neither torch nor pickle reads them, so nothing in them can run."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Callable, Iterator
from math import prod
from typing import Literal, TypeAlias

import numpy as np

from mha_viz.core.rules import Wrong
from mha_viz.stored.pickles import Claim, Refused, Storage, Unread, read_pickle
from mha_viz.stored.stored import MOST_TENSORS, Data, Stored, check_expansion, check_size, from_bfloat16, reading

SIZES = {"bfloat16": 2, "bool": 1}  # bytes of a number whose type NumPy calls otherwise
LEGACY = 0x1950A86A20F9469CFC6C  # the first number in what torch.save wrote before 1.6
DEEPEST, NAMED = 64, 2**23  # levels of containers, characters in the names of all tensors
LOCAL_HEADER = 30  # bytes of a zip's local header before a member's name

Container: TypeAlias = dict[object, object] | list[object] | tuple[object, ...]
Place: TypeAlias = Callable[[Storage], tuple[int, int]]  # (first byte, bytes) of a storage in the file


def stored_zip(name: str, data: Data, archive: zipfile.ZipFile, size: int) -> dict[str, Stored]:
    """By name, the Stored of an open zip ``archive`` that ``torch.save`` wrote; ``data`` are its bytes or its path."""
    members = {member.filename: member for member in archive.infolist()}
    with reading(name):
        # mapped once, however many tensors it holds
        whole: bytes | np.ndarray = data if isinstance(data, bytes) else np.memmap(data, mode="r")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
        raise Wrong("file", name, "is compressed, which torch.save never does: it is not read.")
    pickled = next(key for key in members if key.rpartition("/")[2] == "data.pkl")
    root = pickled.removesuffix("data.pkl")
    with _reading_pickle(name):
        held = read_pickle(io.BytesIO(archive.read(pickled)))
        order = archive.read(f"{root}byteorder") if f"{root}byteorder" in members else b"little"

    def place(storage: Storage) -> tuple[int, int]:
        member = members[f"{root}data/{storage.key}"]
        return _begin(whole, member), member.file_size

    return _stored(name, held, place, whole, size, ">" if order == b"big" else "<")


def stored_stream(name: str, data: Data, size: int) -> dict[str, Stored]:
    """By name, the Stored of a file as ``torch.save`` wrote it before 1.6: pickles one after the other, then the storages."""
    check_size(name, size)
    data = data if isinstance(data, bytes) else data.read_bytes()
    file = io.BytesIO(data)
    with _reading_pickle(name):
        if read_pickle(file) != LEGACY:
            raise Refused("a pickle that torch.save did not write")
        read_pickle(file)  # the protocol
        order = read_pickle(file)
        storages, places = dict[str, Storage](), dict[str, tuple[int, int]]()
        held, keys = read_pickle(file, storages), read_pickle(file)
        for key in keys:
            count = int.from_bytes(file.read(8), "little")
            bytes_ = count * _itemsize(storages[key].dtype or "uint8") if key in storages else None
            if bytes_ is None or file.tell() + bytes_ > size:
                raise Wrong("file", name, f"is cut off or damaged: storage {key} is not there as a whole.")
            places[key] = file.tell(), bytes_
            file.seek(bytes_, io.SEEK_CUR)
    little = not isinstance(order, dict) or order.get("little_endian", True)
    return _stored(name, held, lambda storage: places[storage.key], data, size, "<" if little else ">")


def flat(name: str, held: object) -> dict[str, Claim]:
    """By name, the Claims of all tensors in nested containers, names joined by dots: checkpoints nest their state dict.

    What leads to no tensor is looked through once, wherever it stands. Raises Wrong, with the file's ``name``, where containers nest
    deeper than DEEPEST, or more than MOST_TENSORS tensors or NAMED characters would come of it.
    """
    leading: dict[int, list[tuple[object, Container | Claim]]] = {}
    found, characters = dict[str, Claim](), 0

    def parts(container: Container, depth: int) -> list[tuple[object, Container | Claim]]:
        """[(key, tensor or container)] of what leads to a tensor."""
        if depth > DEEPEST:
            raise Wrong("file", name, f"nests its tensors more than {DEEPEST} containers deep: save the state_dict alone.")
        if id(container) not in leading:
            items = container.items() if isinstance(container, dict) else enumerate(container)
            inner = [(key, value) for key, value in items if isinstance(value, Claim | dict | list | tuple)]
            leading[id(container)] = []  # what holds itself adds nothing
            leading[id(container)] = [
                (key, value) for key, value in inner if isinstance(value, Claim) or parts(value, depth + 1)
            ]
        return leading[id(container)]

    def walk(value: Container | Claim, path: str, depth: int) -> None:
        nonlocal characters
        if isinstance(value, Claim):
            characters += len(path)
            if len(found) == MOST_TENSORS or characters > NAMED:
                rule = (
                    f"holds more than {MOST_TENSORS:,} tensors, or the same ones in as many places: save the state_dict alone."
                )
                raise Wrong("file", name, rule)
            found[path] = value
        else:
            for key, inner in parts(value, depth):
                walk(inner, f"{path}.{key}" if path else str(key), depth + 1)

    if isinstance(held, Claim | dict | list | tuple):
        walk(held, "", 0)
    return found


@contextlib.contextmanager
def _reading_pickle(name: str) -> Iterator[None]:
    with reading(name):
        try:
            yield
        except Unread as unread:
            raise Wrong("file", name, f"{unread}.") from None
        except Refused as refused:
            what = str(refused).encode("ascii", "backslashreplace").decode()[:80]
            rule = (
                f"holds something else than tensors ({what}), which is not read: that could run code from the file. "
                "Save tensors alone: torch.save(model.state_dict(), …)."
            )
            raise Wrong("file", name, rule) from None


def _stored(
    name: str, held: object, place: Place, data: bytes | np.ndarray, size: int, order: Literal["<", ">"]
) -> dict[str, Stored]:
    with reading(name):
        claims = flat(name, held)
        stored = {}
        for key, claim in claims.items():
            key.encode()  # a pickle may hold text that is none, and no page could show it
            stored[key] = Stored(key, claim.shape, claim.dtype, _loader(name, key, claim, place, data, order))
    check_expansion(name, sum(_itemsize(s.dtype) * prod(s.shape) for s in stored.values() if s.floating), size)
    return stored


def _loader(
    name: str, key: str, claim: Claim, place: Place, data: bytes | np.ndarray, order: Literal["<", ">"]
) -> Callable[[], np.ndarray]:
    """A function that makes the tensor, after its place in the file was checked."""
    begin, held = place(claim.storage)
    itemsize = _itemsize(claim.dtype)
    reach = 0 if 0 in claim.shape else 1 + sum((n - 1) * step for n, step in zip(claim.shape, claim.stride, strict=True))
    if (claim.offset + reach) * itemsize > held:
        what = f"{key or 'its tensor'}, {list(claim.shape)} of {claim.dtype}"
        rule = f"is cut off or damaged: {what}, reaches beyond the {held:,} bytes kept for it."
        raise Wrong("file", name, rule)

    def load() -> np.ndarray:
        if not reach:
            return np.empty(claim.shape, np.float32)
        dtype = np.dtype("uint16" if claim.dtype == "bfloat16" else claim.dtype).newbyteorder(order)
        first = begin + claim.offset * itemsize
        numbers = np.frombuffer(data, dtype, reach, first)
        strides = tuple(step * itemsize for step in claim.stride)
        array = np.lib.stride_tricks.as_strided(numbers, claim.shape, strides, writeable=False)
        return from_bfloat16(array) if claim.dtype == "bfloat16" else array

    return load


def _itemsize(dtype: str) -> int:
    if dtype in SIZES:
        return SIZES[dtype]
    if dtype.startswith("float8"):
        return 1
    return np.dtype(dtype).itemsize


def _begin(data: bytes | np.ndarray, member: zipfile.ZipInfo) -> int:
    """Where the bytes of a stored zip member begin."""
    header = bytes(data[member.header_offset : member.header_offset + LOCAL_HEADER])
    if header[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"{member.filename} is not where the directory says")
    return (
        member.header_offset + LOCAL_HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    )
