"""Whether the figures of a document are still what they say: a record of what each was made of, kept beside the list of them.

Numbers are compared to a tolerance, since another machine's last digits differ; all else exactly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict, TypeGuard

import numpy as np

from mha_viz.core.json_text import parse_json
from mha_viz.core.rules import Wrong
from mha_viz.core.whole_file import whole_file
from mha_viz.export.figure import Figure, specification
from mha_viz.figures.piece import Spec

CLOSE = 1e-4  # of the size of the numbers


class Record(TypedDict):
    """What a figure was made of: what was ``asked`` for, digests of its ``words`` and its ``file``, and its ``numbers``."""

    asked: dict[str, object]
    words: str
    numbers: list[float]
    file: str


UNSEEN = ("meta", "uirevision", "hoverlabel", "hovermode", "dragmode")  # of a layout: what no file shows


def lock_of(batch: str | Path) -> Path:
    """The file beside the list ``batch`` that holds the record."""
    return Path(batch).with_suffix(".lock.json")


def recorded(figure: Figure, spec: Spec, folder: str | Path) -> Record:
    """What a Figure of a ``folder`` was made of: what was asked for, the words and numbers of its picture, and its file."""
    seen = {name: value for name, value in spec["layout"].items() if name not in UNSEEN}
    words, numbers = _apart({"data": spec["data"], "layout": seen})
    told, file = json.dumps(words, sort_keys=True, ensure_ascii=False), Path(folder, figure.out).read_bytes()
    asked = json.loads(json.dumps(specification(figure)))  # as JSON gives it back
    return {"asked": asked, "words": _digest(told.encode()), "numbers": numbers, "file": _digest(file)}


def write_lock(batch: str | Path, records: Mapping[str, Record]) -> None:
    """Keep the ``records``, by the names of their files as the list has them."""
    with whole_file(lock_of(batch), "batch") as path:
        path.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def kept_lock(batch: str | Path, figures: Iterable[Figure]) -> dict[str, Record]:
    """The records that there are of these Figures, whatever of them cannot be read left out."""
    try:
        held = read_lock(batch)
    except Wrong:
        return {}
    return {figure.out: held[figure.out] for figure in figures if figure.out in held}


def read_lock(batch: str | Path) -> dict[str, Record]:
    """The records beside the list ``batch``, by the names of their files. Raises Wrong where there are none to read."""
    path, again = lock_of(batch), "Make the figures again."
    try:
        records = parse_json("batch", path.read_text(encoding="utf-8"), path.name)
    except OSError:
        rule = "has no record of its figures yet: python -m mha_viz export --batch makes them, and it."
        raise Wrong("batch", str(batch), rule) from None
    except UnicodeDecodeError:
        raise Wrong("batch", path.name, f"must be UTF-8 text. {again}") from None
    if not isinstance(records, dict) or not all(_is_record(one) for one in records.values()):
        raise Wrong("batch", path.name, f"must hold a record for each figure, by the name of its file. {again}")
    return records


def _is_record(record: object) -> TypeGuard[Record]:
    parts = {"asked": object, "words": str, "numbers": list, "file": str}
    if not isinstance(record, dict) or not all(isinstance(record.get(name), kind) for name, kind in parts.items()):
        return False
    return all(isinstance(number, int | float) for number in record["numbers"])


def stale(figure: Figure, spec: Spec, record: Record | None, folder: str | Path) -> str | None:
    """Why the file of a Figure is not what its record says that it was made of, in a few words; None where it is."""
    if record is None:
        return "was never made"
    if not Path(folder, figure.out).is_file():
        return "is not there"
    now = recorded(figure, spec, folder)
    if now["asked"] != record["asked"]:
        return "is asked for differently now"
    if now["file"] != record["file"]:
        return "was changed since it was made"
    if now["words"] != record["words"] or len(now["numbers"]) != len(record["numbers"]):
        return "would say something else now"
    if not np.allclose(now["numbers"], record["numbers"], rtol=CLOSE, atol=CLOSE, equal_nan=True):
        return "would show other numbers now"
    return None


def _apart(value: object) -> tuple[object, list[float]]:
    """A figure without its numbers, and those: of an array the mean, the spread, and where its weight lies."""
    if isinstance(value, dict):
        named = {key: _apart(one) for key, one in value.items()}
        return {key: words for key, (words, _) in named.items()}, [number for _, found in named.values() for number in found]
    if isinstance(value, list | tuple):
        parts = [_apart(one) for one in value]
        return [words for words, _ in parts], [number for _, found in parts for number in found]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        flat = value[np.isfinite(value)].astype(np.float64).ravel()  # [K]
        place = np.linspace(0, 1, len(flat))  # [K]
        summary = [float(flat.mean()), float(flat.std()), float(flat @ place / len(flat))] if len(flat) else [0.0] * 3
        return ["array", *value.shape, len(flat)], summary
    if isinstance(value, np.ndarray):
        return value.tolist(), []
    if isinstance(value, float) and np.isfinite(value):
        return "number", [value]
    return (str(value), []) if isinstance(value, float) else (value, [])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
