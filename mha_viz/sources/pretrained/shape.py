"""What is left of a Trace when some of its positions are set aside, and what it becomes when several are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.attend import call_of, trace_of_call
from mha_viz.core.maps import CLOSE, trace_of_maps
from mha_viz.core.mask import Mask
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Trace

if TYPE_CHECKING:
    from jaxtyping import Int


def taken(trace: Trace, items: Sequence[int], places: Sequence[Int[np.ndarray, " P"]]) -> Trace:
    """The Trace of a self-attention between some of its positions alone: ``items`` [M] and, of each, ``places`` [M, P], ascending.

    Each row shares among them, and extra columns such as a sink, what it gave to the others, as if those had been hidden.
    """
    chosen, at = np.asarray(items), np.asarray(places)  # [M], [M, P]
    tokens, columns = _tokens(trace, chosen, at), _with_extra(trace, at)
    if not trace.has("q", "k"):
        weights = _at(_at(trace.probabilities[chosen], at, 2), columns, 3)  # [M, H, P, P + extra]
        with np.errstate(invalid="ignore"):
            shared = weights / weights.sum(axis=-1, keepdims=True)
        return trace_of_maps(shared, tokens, trace.name, dtype=trace.dtype)
    call = call_of(trace)
    q = _at(call.q[chosen], at, 2)  # [M, H, P, D]
    k = _at(call.k[chosen], columns, 2)  # [M, G, P + extra, D]
    v = None if call.v is None else _at(call.v[chosen], columns, 2)  # [M, G, P + extra, Dv]
    return trace_of_call(replace(call, q=q, k=k, v=v, mask=_mask(call.mask, chosen, at, columns), tokens=tokens))


def joined(trace: Trace, starts: Sequence[Int[np.ndarray, " _"]], texts: Sequence[Sequence[str]]) -> Trace:
    """The Trace of the words of a self-attention: rows averaged, columns summed; its maps alone, since a word has no q or k.

    ``texts`` are, per item, those of its W words, and ``starts`` the first positions of these and of what is left out after them.
    Nothing is computed before it is read.
    """
    W = len(texts[0])

    def words(array: np.ndarray, axis: int) -> np.ndarray:
        """``array`` [N, …] summed over the positions of each word along ``axis``."""
        summed = [np.add.reduceat(item, first, axis - 1) for item, first in zip(array, starts, strict=True)]
        return np.stack([item.take(range(W), axis - 1) for item in summed])

    counts = np.array(
        [np.diff([*first, length])[:W] for first, length in ((f, trace.undefined.shape[2]) for f in starts)]
    )  # [N, W]
    padding = np.array([trace.query_padding[n][list(first)[:W]] for n, first in enumerate(starts)])  # [N, W]
    tokens = with_extra(Tokens.of(len(texts), W, W, texts, texts, padding), trace)

    @cache
    def made() -> Trace:
        extra = trace.probabilities[..., trace.num_positions :]  # [N, H, L, extra]
        columns = words(trace.probabilities[..., : trace.num_positions], 3)  # [N, H, L, W]
        columns = np.concatenate([columns, extra], axis=3)  # [N, H, L, W + extra]
        rows = words(columns, 2) / counts[:, None, :, None]  # [N, H, W, W + extra]
        return trace_of_maps(rows.astype(columns.dtype), tokens, trace.name, max(CLOSE.values()), trace.dtype)

    names = ("probabilities", "weights", "mean_weights", "mask", "mask_bias", "keep_scale", "dropped", "undefined")
    return Trace(dict.fromkeys(names, lambda name: getattr(made(), name)), tokens=tokens, name=trace.name, dtype=trace.dtype)


def _at(array: np.ndarray, places: Int[np.ndarray, "M P"], axis: int) -> np.ndarray:
    """``array`` [M, …] with, along ``axis``, the ``places`` [M, P] of each item."""
    shape = [len(places)] + [1] * (array.ndim - 1)
    shape[axis] = places.shape[1]
    return np.take_along_axis(array, places.reshape(shape), axis)


def _tokens(trace: Trace, items: Int[np.ndarray, " M"], places: Int[np.ndarray, "M P"]) -> Tokens:
    queries, keys = (
        [[trace_side[n][p] for p in at] for n, at in zip(items, places, strict=True)]
        for trace_side in (trace.query_tokens, trace.key_tokens)
    )
    padding = _at(trace.query_padding[items], places, 1)  # [M, P]
    return with_extra(Tokens.of(len(items), places.shape[1], places.shape[1], queries, keys, padding), trace)


def with_extra(tokens: Tokens, trace: Trace) -> Tokens:
    """``tokens`` of positions alone with the extra columns that ``trace`` has, such as a sink, behind its keys."""
    names = trace.key_tokens[0][trace.num_positions :]
    return replace(tokens, keys=tuple(item + names for item in tokens.keys), extra=len(names))


def _with_extra(trace: Trace, places: Int[np.ndarray, "M P"]) -> Int[np.ndarray, "M P+extra"]:
    """[M, P + extra] these ``places`` [M, P] and those of the extra columns."""
    extra = np.arange(trace.num_positions, trace.shape[3])
    return np.concatenate([places, np.broadcast_to(extra, (len(places), len(extra)))], axis=1)


def _mask(
    mask: Mask, items: Int[np.ndarray, " M"], places: Int[np.ndarray, "M P"], columns: Int[np.ndarray, "M P+extra"]
) -> Mask:
    """The Mask between these places: causal stays causal, since their order stays; a window does not, and is told cell by cell."""
    P = places.shape[1]

    def part(array: np.ndarray | None, *axes: int, columns: Int[np.ndarray, "M columns"] = places) -> np.ndarray | None:
        if array is None:
            return None
        array = array if len(array) == 1 else array[items]
        array = np.broadcast_to(array, (len(items), *array.shape[1:]))
        for axis in axes:
            array = array if array.shape[axis] == 1 else _at(array, columns if axis == 3 else places, axis)
        return array

    dense = part(mask.dense, 2, 3)  # [M, 1|H, 1|P, P]
    if mask.window is not None:
        near = part(Mask(mask.num_queries, mask.num_keys, window=mask.window).hidden(), 2, 3)  # [M, 1, P, P]
        dense = near if dense is None else dense | near
    bias = part(mask.added() if mask.extra else mask.bias, 2, 3, columns=columns)  # [M, 1|H, 1|P, P + extra]
    padded = part(mask.padded, 1)  # [M, P]
    return Mask(P, P, mask.extra, causal=mask.causal, padded=padded, dense=dense, bias=bias, number=mask.number)
