"""``.safetensors``: a JSON header that says where each tensor's bytes are, and the bytes."""

from __future__ import annotations

from math import prod
from typing import Any, TypeGuard

import numpy as np

from mha_viz.core.json_text import parse_json
from mha_viz.core.rules import Wrong
from mha_viz.stored.stored import Data, Stored, check_tensors, from_bfloat16, reading

LONGEST_HEADER = 100_000_000  # bytes: safetensors' own limit
TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}


def begins_as_safetensors(start: bytes) -> bool:
    """True for the first 16 bytes of such a file."""
    return start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= LONGEST_HEADER


def stored_safetensors(name: str, data: Data, size: int) -> tuple[dict[str, Stored], dict[str, Any] | None]:
    """(the Stored by name, the metadata) of a file of ``size`` bytes. Raises Wrong where it is damaged."""
    with reading(name):
        length = int.from_bytes(_part(data, 0, 8), "little")
        if not 2 <= length <= min(LONGEST_HEADER, size - 8):
            raise Wrong("file", name, f"is cut off: its header takes {length:,} bytes, and {size - 8:,} are there.")
        text = bytes(_part(data, 8, 8 + length)).decode()
    check_tensors(name, text.count('"data_offsets"'))  # told before the header is parsed; within a text quotes are escaped
    header = parse_json("file", text, name)
    if not isinstance(header, dict):
        raise Wrong("file", name, "is damaged: its header is no JSON object.")
    metadata = header.pop("__metadata__", None)
    if metadata is not None and not isinstance(metadata, dict):
        raise Wrong("file", name, "is damaged: its metadata are no JSON object.")
    stored, spans = dict[str, Stored](), list[tuple[int, int]]()
    for key, about in header.items():
        stored[key], span = _stored(name, key, about, data, 8 + length)
        spans.append(span)
    end = 0
    for first, last in sorted(spans):
        if first != end:
            raise Wrong(
                "file", name, f"is damaged: two tensors share bytes, or some belong to none (at byte {8 + length + end:,})."
            )
        end = last
    if 8 + length + end != size:
        rule = f"is cut off or damaged: its tensors take {end:,} bytes, and {size - 8 - length:,} are there."
        raise Wrong("file", name, rule)
    return stored, metadata


def _stored(name: str, key: str, about: object, data: Data, start: int) -> tuple[Stored, tuple[int, int]]:
    """The Stored of one entry of the header, and (first, last) byte after the header."""
    told = about if isinstance(about, dict) else {}
    code, shape, span = told.get("dtype"), told.get("shape"), told.get("data_offsets")
    if not (isinstance(code, str) and _counts(shape) and _counts(span) and len(span) == 2 and span[0] <= span[1]):
        raise Wrong("file", name, f"is damaged: its header describes {key!r} by no dtype, shape and data_offsets.")
    dtype = TYPES.get(code, code.lower())
    if code in TYPES:
        held = np.dtype("uint16" if dtype == "bfloat16" else dtype).newbyteorder("<")
        if prod(shape) * held.itemsize != span[1] - span[0]:
            rule = f"is damaged: {key!r}, {shape} of {dtype}, takes {prod(shape) * held.itemsize:,} bytes, not {span[1] - span[0]:,}."
            raise Wrong("file", name, rule)

    def load() -> np.ndarray:
        if code not in TYPES:
            raise Wrong(key, code, f"must be of one of the types {', '.join(TYPES)}.")
        array = np.frombuffer(_part(data, start + span[0], start + span[1]), held).reshape(shape)
        return from_bfloat16(array) if dtype == "bfloat16" else array

    return Stored(key, tuple(shape), dtype, load), (span[0], span[1])


def _counts(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(number) is int and 0 <= number <= 2**62 for number in value)


def _part(data: Data, first: int, last: int) -> bytes | memoryview:
    """The bytes from ``first`` to ``last`` of a file: of one in memory a view."""
    if isinstance(data, bytes):
        return memoryview(data)[first:last]
    with open(data, "rb") as file:
        file.seek(first)
        return file.read(last - first)
