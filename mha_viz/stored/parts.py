"""The parts of a saved recording, checked against each other as they are read: nothing of a damaged one reaches a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mha_viz.core.rules import Shape, Wrong, one_of, whole

FARTHEST = 2**31  # of a position from key 0


def check_call(place: str, described: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Raises Wrong where what describes the call called ``place`` is not as ``Recording.save`` writes it, or does not fit its ``arrays``.

    Whether q, k, v and the output projection fit each other is checked by the Call that is made of them, and rows that are no
    distributions by ``trace_of_maps``.
    """
    if not isinstance(described, dict):
        raise Wrong(place, described, "must be a JSON object.")
    absent = [name for name in ("name", "queries", "keys", "extra", "positions") if name not in described]
    absent += ["query_padding"] * ("query_padding" not in arrays)
    if "weights" not in arrays:
        absent += [name for name in ("q", "k") if name not in arrays] + [n for n in ("scale", "mask") if n not in described]
    if absent:
        raise Wrong(place, absent[0], "must be there, and is not.")
    _check(f"{place}.name", described["name"], isinstance(described["name"], str), "must be a text.")
    N, H, L, S = _sizes(place, arrays)
    for side, letter, length in (("queries", "L", L), ("keys", "S", S)):
        _check_texts(f"{place}.{side}", described[side], N, length, letter)
    if described.get("step") is not None:
        whole(f"{place}.step", described["step"], 0)
    _check_parts(f"{place}.parts", described.get("parts"), N)
    extra = whole(f"{place}.extra", described["extra"], 0, min(2, S - 1))
    positions = described["positions"]
    fits = positions is None or (_list_of(positions, int, L) and all(abs(key) < FARTHEST for key in positions))
    _check(f"{place}.positions", positions, fits, f"must be {L} whole numbers, the key at which each query stands, or null.")
    off = described.get("off") or ()
    pairs = isinstance(off, list | tuple) and all(isinstance(pair, list) and len(pair) == 2 for pair in off)
    _check(f"{place}.off", off, pairs, "must pair heads with the way in which each is put off.")
    for head, _ in off:
        whole(f"{place}.off", head, 0, H - 1)
    _check_array(place, arrays, "query_padding", bool, (N, L))
    for name in ("keep_scale", "used"):
        _check_array(place, arrays, name, np.floating, (N, H, L, S))
    if "weights" not in arrays:
        scale = described["scale"]
        _check(f"{place}.scale", scale, _is_finite(scale) and abs(scale) <= 1e300, "must be a finite number.")
        one_of(f"{place}.without_key", described.get("without_key", "nan"), ("nan", "zero"))
        _check_mask(place, described["mask"], arrays, (N, H, L, S - extra), extra)


def check_recording(about: Mapping[str, Any], shapes: Sequence[tuple[int, int, int, int]]) -> None:
    """Raises Wrong where notes, cause or address are of another form than ``Recording.save`` writes.

    ``shapes`` are (N, H, L, S) of each Trace, where the cause must lead to.
    """
    notes, cause, address = about.get("notes"), about.get("cause"), about.get("address", "")
    _check(
        "notes", notes, isinstance(notes, list) and all(isinstance(note, str) for note in notes), "must be a list of sentences."
    )
    _check("address", address, isinstance(address, str), "must be a text.")
    if cause is None:
        return
    known = {"trace", "sentence", "item", "head", "query"}
    fits = isinstance(cause, dict) and {"trace", "sentence"} <= cause.keys() <= known and isinstance(cause["sentence"], str)
    _check("cause", cause, fits, f"must be a JSON object of {', '.join(sorted(known))}.")
    if cause["trace"] is None:
        return
    trace = whole("cause.trace", cause["trace"], 0, len(shapes) - 1)
    for name, count in zip(("item", "head", "query"), shapes[trace], strict=False):
        if cause.get(name) is not None:
            whole(f"cause.{name}", cause[name], 0, count - 1)


def _sizes(place: str, arrays: Mapping[str, np.ndarray]) -> tuple[int, int, int, int]:
    """(N, H, L, S) that the arrays of a call tell."""
    for name in ("weights",) if "weights" in arrays else ("q", "k"):
        shape = arrays[name].shape
        if len(shape) != 4 or 0 in shape:
            raise Wrong(f"{place}.{name}", Shape(shape), "must have four axes, none of them empty.")
    if "weights" in arrays:
        return arrays["weights"].shape
    return (*arrays["q"].shape[:3], arrays["k"].shape[2])


def _check_mask(
    place: str, described: Any, arrays: Mapping[str, np.ndarray], sizes: tuple[int, int, int, int], extra: int
) -> None:
    N, H, L, S = sizes
    where = f"{place}.mask"
    _check(where, described, isinstance(described, dict), "must be a JSON object.")
    right = {"num_queries": L, "num_keys": S, "extra": extra}
    if described.keys() - {"number"} != {*right, "causal", "window"}:
        raise Wrong(where, sorted(described), f"must hold {', '.join(right)}, causal and window.")
    for name, count in right.items():
        whole(f"{where}.{name}", described[name], count, count)
    number = described.get("number", -1.0)  # there where a finite one hides
    _check(f"{where}.number", number, _is_finite(number), "must be a finite number.")
    _check(f"{where}.causal", described["causal"], isinstance(described["causal"], bool), "must be true or false.")
    if described["window"] is not None:
        whole(f"{where}.window", described["window"], 1)
    _check_array(place, arrays, "padded", bool, (N, S))
    for name, kind in (("dense", bool), ("bias", np.floating)):
        if name in arrays:
            shape = arrays[name].shape
            pairs = zip(shape, (N, H, L), strict=False)
            widths = {S, S + extra} if name == "bias" else {S}
            if len(shape) != 4 or shape[3] not in widths or any(length not in (1, full) for length, full in pairs):
                raise Wrong(f"{place}.{name}", Shape(shape), f"must be [1|N, 1|H, 1|L, S] with [N, H, L, S] = {[N, H, L, S]}.")
            _check_array(place, arrays, name, kind, shape)


def _check_array(
    place: str, arrays: Mapping[str, np.ndarray], name: str, kind: type[bool | np.floating], shape: tuple[int, ...]
) -> None:
    """Raises Wrong where this array is there and of another type or shape."""
    if name not in arrays:
        return
    array = arrays[name]
    if not np.issubdtype(array.dtype, kind):
        raise Wrong(f"{place}.{name}", array.dtype, f"must be of {'bool' if kind is bool else 'floating'} type.")
    if array.shape != shape:
        raise Wrong(f"{place}.{name}", Shape(array.shape), f"must have shape {shape}.")


def _check_parts(place: str, value: Any, N: int) -> None:
    """Raises Wrong where what names batch items as parts is of another form, or not for N of them; None is right."""
    if value is None:
        return
    fits = isinstance(value, dict) and value.keys() == {"kind", "whole", "places"}
    fits = fits and isinstance(value["kind"], str) and isinstance(value["whole"], str) and _list_of(value["places"], list, N)
    widths = {len(at) for at in value["places"]} if fits else set()
    fits = (
        len(widths) == 1
        and min(widths) > 1
        and all(type(one) is int and 0 <= one < FARTHEST for at in value["places"] for one in at)
    )
    _check(place, value, fits, f"must hold kind, whole and {N} places of two whole numbers or more, or be null.")


def _check_texts(place: str, value: object, N: int, length: int, letter: str) -> None:
    fits = isinstance(value, list) and len(value) == N and all(_list_of(item, str, length) for item in value)
    _check(place, value, fits, f"must be {N} lists of {length} texts, [N, {letter}].")


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _list_of(value: object, kind: type, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(type(one) is kind for one in value)


def _check(argument: str, value: object, fits: bool, rule: str) -> None:
    if not fits:
        raise Wrong(argument, value, rule)
