"""Finished attention maps from any framework: which arrays, and which axis is which, is guessed, shown and asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from mha_viz.core.maps import CLOSE, check_rows, trace_of_maps
from mha_viz.core.rules import Shape, Wrong, one_of
from mha_viz.core.tokens import Tokens
from mha_viz.recording import Recording
from mha_viz.sources.axes import LETTERS, arranged, in_words, looks_like_a_grid
from mha_viz.sources.files.found import Question
from mha_viz.sources.files.read import shape_of
from mha_viz.stored.stored import FLOATING, check_count, check_size

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.arrays import Dtype
    from mha_viz.sources.files.found import Answers, TokenLists
    from mha_viz.stored.stored import Stored

ALL = "all"
AT_ONCE = 2**20  # numbers of a map that are looked at together
PADS = ("<pad>", "[PAD]", "<|pad|>")


@dataclass(frozen=True, eq=False)
class Map:
    """One array whose rows sum to 1 along each of ``axes``, as nearly as those of its ``dtype`` do, the type in the file."""

    array: np.ndarray
    axes: tuple[int, ...]
    dtype: Dtype


@dataclass(frozen=True, eq=False)
class Maps:
    """The content of a file with attention maps: ``maps`` by name, in their natural order."""

    maps: dict[str, Map]
    holds: tuple[str, ...]
    kind: ClassVar[Literal["maps"]] = "maps"

    def ask(self, answers: Mapping[str, object]) -> tuple[Question[str], ...]:
        asked: list[Question[str]] = []
        if len(self.maps) > 1:
            together = [ALL] if _together(self.maps.values()) else []
            text = "Which arrays? They can be opened together, each as one layer." if together else "Which array?"
            asked.append(Question("array", text, (*together, *self.maps), (*together, *self.maps)[0]))
        chosen = self._chosen(asked[0].answered(answers) if asked else ALL)
        choices = arrangements(list(chosen.values()))
        shape = list(next(iter(chosen.values())).array.shape)
        text = (
            f"What are the axes of {shape}? N items, H heads, L queries, S keys: each query's weights sum to 1 along S. "
            "Without H the maps are one head's or an average. L L are the two axes of a grid of queries."
        )
        return (*asked, Question("axes", text, choices, choices[0], _sums(chosen)))

    def open(self, name: str, answers: Answers, tokens: TokenLists | None, key_tokens: TokenLists | None) -> Recording:
        chosen = self._chosen(answers.get("array", ALL))
        traces, zeros = [], 0
        letters = answers["axes"].split()
        if "layer" in letters:
            layers = sum(given.array.shape[letters.index("layer")] for given in chosen.values())
            check_count(name, layers, "layers of attention maps", "Save those to look at in a file of their own.")
        for key, given in chosen.items():
            for layer, weights in enumerate(arranged(given.array, letters)):
                weights, count = undefined_where_zero(weights)
                zeros += count
                title = key or Path(name).stem
                title = f"{title} · layer {layer}" if "layer" in answers["axes"] else title
                traces.append(trace_of_maps(weights, _tokens(weights.shape, tokens, key_tokens), title, dtype=given.dtype))
        read = in_words(given.array.shape, letters)
        notes = [f"Maps from {name}, axes read as {answers['axes']}: {read}; softmax is not applied."]
        odd = sum(int(trace.nonfinite.sum()) for trace in traces)
        if odd:
            rows, them = ("1 row holds", "it") if odd == 1 else (f"{odd} rows hold", "them")
            notes.append(f"{rows} NaN or an infinite number beside others: no distribution, and no statistic counts {them}.")
        if zeros:
            notes.append(f"{zeros} rows hold nothing but 0: they are no distribution, and shown as undefined.")
        return Recording(tuple(traces), tuple(notes))

    def _chosen(self, array: str) -> dict[str, Map]:
        return self.maps if array == ALL else {array: self.maps[array]}


def look_at_maps(name: str, tensors: Mapping[str, Stored]) -> Maps:
    """The Maps among the Stored ``tensors``; raises Wrong where there are none, and says why not."""
    floating = {key: stored for key, stored in tensors.items() if stored.floating and 2 <= len(stored.shape) <= len(LETTERS)}
    if not floating:
        held = (
            ", ".join(f"{key or 'array'} {shape_of(stored)}" for key, stored in list(tensors.items())[:4]) or "no tensor at all"
        )
        rule = f"holds {held}: attention maps are of floating type ({', '.join(FLOATING)}) and have 2 to 5 axes."
        raise Wrong("file", name, rule)
    check_count(name, len(floating), "arrays that may be attention maps", "Save those to look at in a file of their own.")
    check_size(name, sum(4 * prod(stored.shape) for stored in floating.values()))
    maps: dict[str, Map] = {}
    left: list[str] = []
    first: Wrong | None = None
    for key in sorted(floating, key=natural):
        stored = floating[key]
        array, dtype = stored.read(), one_of(key or name, stored.dtype, tuple(CLOSE))
        axes = summing_axes(array, dtype)
        if axes:
            maps[key] = Map(array, axes, dtype)
            continue
        left.append(key)
        first = first or _why_none(name, key, array, dtype)
    if first is not None and not maps:
        raise first
    left += sorted(tensors.keys() - floating.keys(), key=natural)
    holds = [f"{key or 'One array'}: {shape_of(tensors[key])}, attention maps." for key in maps]
    if left:
        holds.append(f"Left out, since {'its' if len(left) == 1 else 'their'} rows are no distributions: {', '.join(left)}.")
    return Maps(maps, tuple(holds))


def summing_axes(array: np.ndarray, dtype: Dtype) -> tuple[int, ...]:
    """The axes along which ``array`` holds distributions: no finite number below 0, and sums of 1, where a row is finite
    and not all 0."""
    if 0 in array.shape:
        return ()
    return tuple(axis for axis in reversed(range(array.ndim)) if _sums_to_one(array, axis, CLOSE[dtype]))


@np.errstate(invalid="ignore")
def _sums_to_one(array: np.ndarray, axis: int, close: float) -> bool:
    """Looked at a part after the other: the sums along a short axis are as large as the array, and most axes fail at once."""
    rows = np.moveaxis(array, axis, -1).reshape(
        *(n for i, n in enumerate(array.shape) if n > 1 and i != axis), array.shape[axis]
    )
    rows = rows.reshape(-1, *rows.shape[-1:]) if rows.ndim == 1 else rows  # [..., rows, S]
    step, seen = max(1, AT_ONCE * len(rows) // rows.size), False
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        if ((part < 0) & (part > -np.inf)).any():
            return False
        sums = part.sum(axis=-1, dtype=np.float64)
        one = np.abs(sums - 1) <= close
        if not (one | ~np.isfinite(sums) | (sums == 0)).all():
            return False
        seen = seen or one.any()
    return bool(seen)


def arrangements(maps: Sequence[Map]) -> tuple[str, ...]:
    """All readings of the axes of these maps, "N H L S", the likeliest first.

    One axis is S, along which every map sums to 1; L and the rest are any of the others. L is likelier as long as S is, and as
    near to the usual order as can be; heads are likelier than items, and items than layers. L L, two axes side by side, are a grid of
    queries: likely where they are equal, and S is not.
    """
    shape = maps[0].array.shape
    common = set.intersection(*(set(given.axes) for given in maps))
    letters = [letter for letter in LETTERS if letter != "S" and (len(maps) == 1 or letter != "layer")]
    found: list[tuple[str, ...]] = []
    for axis in common:
        for others in permutations(letters, len(shape) - 1):
            if "L" in others:
                found.append((*others[:axis], "S", *others[axis:]))
        for others in permutations(letters, len(shape) - 2):
            if "L" in others:
                place = others.index("L")
                order = (*others[:place], "L", *others[place:])
                order = (*order[:axis], "S", *order[axis:])
                if order[order.index("L") + 1] == "L":
                    found.append(order)

    def unlikely(order: tuple[str, ...]) -> tuple[bool, bool, bool, int, list[int]]:
        places = [LETTERS.index(letter) for letter in order]
        inversions = sum(a > b for i, a in enumerate(places) for b in places[i + 1 :])
        rank = ("H", "N", "layer")
        absent = [rank.index(letter) for letter in rank if letter not in order]
        return (
            order[-1] != "S",
            (order.count("L") > 1) != looks_like_a_grid(shape),
            shape[order.index("L")] != shape[order.index("S")] and shape.count(shape[order.index("S")]) > 1,
            inversions,
            [-index for index in absent],
        )

    return tuple(" ".join(order) for order in sorted(found, key=unlikely))


def undefined_where_zero(weights: Float[np.ndarray, "*axes S"]) -> tuple[Float[np.ndarray, "*axes S"], int]:
    """(``weights`` with NaN in rows that hold nothing but 0, how many those are): some libraries leave 0 where a query has no key."""
    zero = (weights == 0).all(axis=-1)
    count = int(zero.sum())
    return (np.where(zero[..., None], np.nan, weights).astype(weights.dtype) if count else weights), count


def natural(name: str) -> tuple[str, list[tuple[int, str, str]]]:
    """A key that sorts "layer 2" before "layer 10"."""
    parts = re.split(r"(\d+)", name)  # every other one is a number, of any length
    numbers = [part.lstrip("0") for part in parts[1::2]]
    return parts[0], [(len(number), number, rest) for number, rest in zip(numbers, parts[2::2], strict=True)]


def _together(maps: Collection[Map]) -> bool:
    shapes = {given.array.shape for given in maps}
    deep = any(given.array.ndim == len(LETTERS) for given in maps)
    return len(shapes) == 1 and not deep and bool(set.intersection(*(set(given.axes) for given in maps)))


def _tokens(shape: Sequence[int], queries: TokenLists | None, keys: TokenLists | None) -> Tokens:
    N, _, L, S = shape
    padding = None if queries is None else _padding(queries, N, L)
    return Tokens.of(N, L, S, queries, keys, padding, one_sequence=L == S)


def _padding(queries: TokenLists, N: int, L: int) -> Bool[np.ndarray, "N L"] | None:
    """[N, L] True for tokens that say of themselves that they are padding; None where there is none, or the tokens do not fit."""
    padding = [[token in PADS for token in item] for item in queries]
    if [len(item) for item in padding] != [L] * N or not any(map(any, padding)):
        return None
    return np.array(padding)


def _sums(chosen: Mapping[str, Map]) -> str:
    common = sorted(set.intersection(*(set(given.axes) for given in chosen.values())))
    if len(common) == 1:
        return f"Every row sums to 1 along axis {common[0]} alone, so that axis is S. Nothing in the numbers tells the others apart."
    named = ", ".join(map(str, common))
    return (
        f"The numbers sum to 1 along each of the axes {named}: any of them could be S, and nothing in the numbers tells which."
    )


def _why_none(name: str, key: str, array: np.ndarray, dtype: Dtype) -> Wrong:
    try:
        if array.size == 0:
            raise Wrong("weights", Shape(array.shape), "must have no empty axis.")
        check_rows(undefined_where_zero(array)[0], CLOSE[dtype])
    except Wrong as wrong:
        return Wrong(key or str(name), wrong.value, wrong.rule)
    what = "nothing but NaN or 0" if not (np.isfinite(array) & (array != 0)).any() else "NaN in every row"
    return Wrong(key or str(name), Shape(array.shape), f"holds {what}: no row is a distribution.")
