"""Checks of the weights and of what hides keys: rows, padding, masks, what comes later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, overload

import numpy as np

from mha_viz.analysis.causes import spans
from mha_viz.analysis.validation.check import (
    ROUNDING,
    Cannot,
    Measured,
    gap,
    number,
    question,
    question_of_finite,
    relative,
    rounding,
)
from mha_viz.analysis.validation.subject import result, spread
from mha_viz.core.decimals import fill, prose
from mha_viz.core.maps import CLOSE

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

    from mha_viz.analysis.validation.subject import Changes, Subject
    from mha_viz.core.batch import Batch
    from mha_viz.core.trace import Trace


# How far from 1 a row may sum, twice what rounding each weight comes to in half precision; maps that were saved: maps.CLOSE.
SUMS = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3, "bfloat16": 4e-3}
LONGER = 3  # tokens of padding that are added


@question("row_sums", "Every row of weights sums to 1")
def row_sums(s: Subject) -> Measured:
    trace = s.trace
    rows = trace.probabilities[~(trace.undefined | s.nonfinite)].astype(np.float64)  # [R, S]
    if not len(rows):
        s.check_finite()
        raise Cannot("No query has a key: there is no row.")
    sums = rows.sum(axis=-1)
    off = float(np.abs(sums - 1).max())
    negative = float(rows.min())
    odd = int((~np.isfinite(rows)).any(axis=-1).sum())
    if odd:
        known = ", though all that came in is finite: do scores overflow?" if trace.has("q") else "."
        return Measured(
            f"{number(len(rows), 'row')} of probabilities over S, against 1",
            float("inf"),
            "",
            f"{number(odd, 'row')} of them {'hold' if odd > 1 else 'holds'} NaN or an infinite number{known}",
            tolerance=0,
        )
    tolerance = SUMS[s.dtype] if trace.has("q") else CLOSE[s.dtype]
    left = int(trace.undefined.sum())
    said = f" {number(left, 'undefined row')} left out." if left else ""
    said += f" {number(int(s.nonfinite.sum()), 'row')} left out that cannot be finite: {s.origin}." if s.nonfinite.any() else ""
    dropout = " Before dropout: after it they need not." if trace.has("dropped") and trace.dropped is not None else ""
    off = off if negative >= 0 else float("inf")
    return Measured(
        f"{number(len(rows), 'row')} of probabilities over S, against 1",
        off,
        f"All do.{dropout}{said}",
        fill("They run from {:.6g} to {:.6g}, the smallest weight is {:.3g}.", sums.min(), sums.max(), negative)
        + " Is the softmax over another axis than the keys, or is something applied after it?",
        tolerance=tolerance,
    )


@question("mean_weights", "The average is the mean of the heads")
def mean_weights(s: Subject) -> Measured:
    trace = s.trace
    if trace.plain is not trace:
        raise Cannot("Its cells are no attention weights.")
    with np.errstate(invalid="ignore"):
        mean = trace.weights.astype(np.float64).mean(axis=1)  # [N, L, S]
    heads = trace.weights.shape[1]
    return Measured(
        f"the average that is shown, against the sum over {number(heads, 'head')} divided by {heads}, relative to the largest",
        relative(trace.mean_weights, mean),
        "It is.",
        "It is another: a sum, an average over another axis, or one of other weights.",
        tolerance=ROUNDING[s.dtype],
    )


@question("no_key", "Every query has a key that it may see")
def no_key(s: Subject) -> Measured:
    real = np.broadcast_to(s.real[:, None], s.trace.undefined.shape)  # [N, H, L]
    here, padded = s.trace.undefined & real, s.trace.undefined & ~real
    why = (
        " have none and are undefined (NaN)" if s.trace.has("q") else ": the maps hold no number (NaN), and why they do not say"
    )
    said = [
        f"{number(int(rows.sum()), 'row')} of {what}{why}, in batch "
        f"{_items(np.flatnonzero(rows.any(axis=(1, 2))))}{_harm_of_no_key(s.trace, rows, rows is padded and s.trace.has('q'))}."
        for rows, what in ((here, "real queries"), (padded, "padded queries"))
        if rows.any()
    ]
    return Measured(
        "rows (batch item, head, query) whose every key is hidden, padded queries counted as well",
        int((here | padded).sum()),
        "Each has one.",
        " ".join(said),
        tolerance=0,
    )


def _harm_of_no_key(trace: Trace, rows: Bool[np.ndarray, "N H L"], padded: bool) -> str:
    """What rows [N, H, L] without a key do to what is made of them: nothing where the model gave numbers in their place, as SDPA does."""
    if trace.has("head_outputs") and np.isfinite(trace.head_outputs[rows]).all():
        return ": the model gives numbers in their place, and nothing that is made of them is NaN"
    return ": no real row shows it, and every gradient does" if padded else ""


def _items(numbers: Int[np.ndarray, " items"]) -> str:
    return f"{'item' if len(numbers) == 1 else 'items'} {spans(numbers)}"


@question("mask_weight", "A hidden key has weight exactly 0")
def mask_weight(s: Subject) -> Measured:
    hidden = s.mask & ~(s.trace.undefined | s.nonfinite)[..., None]  # [N, H, L, S]
    if not hidden.any():
        if (s.mask & s.nonfinite[..., None]).any():
            s.check_finite()
        none_left = "Keys are hidden from queries alone that have none left (undefined): there is no weight to look at."
        raise Cannot(none_left if s.mask.any() else "No key is hidden from any query here.")
    most = float(np.abs(s.trace.weights[hidden]).max())
    bad = "Weight leaks to keys that a mask hides. A large negative number is no −∞, and 0 and 1 as floats hide nothing."
    return Measured(f"{int(hidden.sum()):,} hidden cells, against 0", most, "Every one is 0.", bad, tolerance=0)


@question_of_finite("mask_content", "What a mask hides moves nothing")
def mask_content(s: Subject) -> Measured:
    mask = s.mask
    lost: Bool[np.ndarray, "N L"] = np.asarray(s.trace.undefined.all(axis=1))
    blind = np.asarray(mask.all(axis=1)) & ~lost[..., None]  # [N, L, S]
    keys = np.flatnonzero(blind[..., : s.trace.num_positions].any(axis=(0, 1)))
    if not keys.size:
        some = "No key is hidden in every head from a query that has others: each may move its output."
        raise Cannot(some if mask.any() else "No key is hidden from any query here.")
    keys = keys[spread(len(keys))]
    before, most = result(s.before()), 0.0
    for key in keys:
        where = np.zeros((len(before), mask.shape[3]), bool)
        where[:, key] = True
        after, stayed = s.replaced(where)
        rows = blind[:, :, key] & stayed
        if rows.any():
            most = max(most, gap(result(after)[rows], before[rows]))
    return Measured(
        f"rows of queries that may not see a key, before and after it was replaced, for {number(len(keys), 'key')}",
        most,
        "Not one moved.",
        "Queries are moved by a key that is hidden from them.",
        tolerance=0,
    )


@question("padding_weight", "A padded key has weight exactly 0")
def padding_weight(s: Subject) -> Measured:
    asked = s.mask | s.real[:, None, :, None]  # [N, H, L, S], all but padded queries that a number in place of −∞ lets see all
    padded = s.padded[:, None, None] & ~(s.trace.undefined | s.nonfinite)[..., None] & asked  # [N, H, L, S]
    if not padded.any():
        if s.nonfinite.any():
            s.check_finite()
        raise Cannot("Every query of the padded items is undefined: no weight is left to look at.")
    most = float(np.abs(s.trace.weights[padded]).max())
    bad = "Padding is read. Is True for “may not attend”, and was the mask given as key_padding_mask?"
    return Measured(
        f"{int(padded.sum()):,} cells over padded keys, in every head, against 0", most, "Every one is 0.", bad, tolerance=0
    )


@question_of_finite("padding_content", "What stands in the padding moves nothing")
def padding_content(s: Subject) -> Measured:
    padded = s.padded
    before = result(s.before())
    after, stayed = s.replaced(padded)
    rows = s.real & stayed
    _some(rows)
    moved = gap(result(after)[rows], before[rows])
    return Measured(
        f"{number(int(rows.sum()), 'real query', 'real queries')}, before and after {number(int(padded.sum()), 'padded token')} took other "
        "numbers, ten times as large",
        moved,
        "Not one moved.",
        "Real queries change with what stands in the padding.",
        tolerance=0,
    )


@question_of_finite("padding_length", "More padding moves nothing")
def padding_length(s: Subject) -> Measured:
    trace, before = s.trace, s.before()
    if trace.batch is not None and trace.layer is not None:
        _, batch = s.attended
        longer, skipped = s.again(**_longer(batch)), LONGER if batch.key is None else 0
    else:
        call = s.call
        mask = call.mask.settled()  # more padding is hidden from every query, also where a number hides all other keys
        N, S = len(call.k), mask.num_keys
        mask = replace(
            mask,
            num_keys=S + LONGER,
            padded=_in_front(_or(mask.padded, (N, S), False), True, 1),
            dense=_in_front(mask.dense, False, 3),
            bias=_in_front(mask.bias, 0, 3),
        )
        k, v = _in_front(call.k, 9, 2), _in_front(call.v, 9, 2)
        tokens = replace(call.tokens, keys=tuple(("+",) * LONGER + item for item in call.tokens.keys), positions=None)
        longer, skipped = s.rerun(replace(call, k=k, v=v, mask=mask, tokens=tokens)), 0
    rows = s.real
    _some(rows)
    there, here = result(longer)[:, skipped:], result(before)
    if not before.has("output") and not before.has("concat"):
        there = there[..., LONGER:]
    moved = relative(there[rows], here[rows])
    return Measured(
        f"{number(int(rows.sum()), 'real query', 'real queries')}, with and without {LONGER} more tokens of padding in front of every item",
        moved,
        "They stay as they were.",
        "Real queries change with the length of the padding: results would depend on the batch.",
        tolerance=rounding(trace),
    )


def _longer(batch: Batch) -> Changes:
    """The fields of a Batch with LONGER more tokens of padding in front of its keys; in self-attention they ask as well."""
    N, S = batch.N, batch.S
    padding = _or(batch.key_padding_mask, (N, S), False)
    more = ("+",) * LONGER
    changed: Changes = {
        "key_padding_mask": _in_front(padding, True if padding.dtype == bool else -np.inf, 1),
        "key_tokens": tuple(more + item for item in batch.key_tokens),
    }
    attn_mask = _in_front(batch.attn_mask, False if batch.attn_mask is None or batch.attn_mask.dtype == bool else 0, -1)
    if batch.key is None:
        attn_mask = _in_front(attn_mask, False if attn_mask is None or attn_mask.dtype == bool else 0, -2)
        padded = batch.query_padding_mask
        changed["query"] = _in_front(batch.query, 9, 1)
        changed["query_tokens"] = tuple(more + item for item in batch.query_tokens)
        changed["query_padding_mask"] = _in_front(_or(padded, (N, batch.L), False), True, 1)
    else:
        changed["key"], changed["value"] = _in_front(batch.key, 9, 1), _in_front(batch.value, 9, 1)
    changed["attn_mask"] = attn_mask
    return changed


@overload
def _in_front(array: np.ndarray, value: float, axis: int) -> np.ndarray: ...
@overload
def _in_front(array: np.ndarray | None, value: float, axis: int) -> np.ndarray | None: ...
def _in_front(array: np.ndarray | None, value: float, axis: int) -> np.ndarray | None:
    """``array`` with LONGER more along ``axis``, in front; None stays None."""
    if array is None:
        return None
    widths = [(0, 0)] * array.ndim
    widths[axis] = (LONGER, 0)
    return np.pad(array, widths, constant_values=value)


def _or(array: np.ndarray | None, shape: tuple[int, ...], value: bool) -> np.ndarray:
    return np.full(shape, value) if array is None else array


@question_of_finite("causality", "No query is moved by what comes later")
def causality(s: Subject) -> Measured:
    trace, positions = s.trace, s.trace.tokens.positions
    mask = s.mask
    S = trace.num_positions
    if positions is None:
        raise Cannot("Queries and keys are two sequences: no key comes later than a query.")
    later = np.arange(S) > positions[:, None]  # [L, S]
    if not later.any():
        raise Cannot("No key comes later than any query: there is nothing to hide.")
    before = result(s.before())
    seen = later & ~mask[..., :S].all(axis=(0, 1))  # [L, S]
    if seen.any():
        last = int(np.flatnonzero(seen.any(axis=0))[-1])
        where = np.zeros((len(before), mask.shape[3]), bool)
        where[:, last] = True
        after, stayed = s.replaced(where)
        rows = stayed & s.real & later[:, last] & ~np.isnan(before).any(axis=tuple(range(2, before.ndim)))
        moved = relative(result(after)[rows], before[rows]) if rows.any() else None
        by = "" if moved is None else prose(moved, ".3g")
        how = f" Replacing token {last} moves those before it by up to {by} times the largest number." if by else ""
        compared = f"the queries before token {last}, before and after it was replaced"
        raise Cannot(
            f"This layer is not causal: queries may see what comes later, and nothing is to hold.{how}", compared, moved
        )
    most, cuts = 0.0, [cut for cut in spread(S) if cut > 0]
    for cut in cuts:  # everything from here on is replaced
        where = np.zeros((len(before), mask.shape[3]), bool)
        where[:, cut:S] = True
        after, stayed = s.replaced(where)
        rows = stayed & (positions < cut) & ~trace.undefined.all(axis=1)
        if rows.any():
            most = max(most, gap(result(after)[rows], before[rows]))
    return Measured(
        f"all queries before a token, before and after it and all that follows were replaced, at {number(len(cuts), 'place')}",
        most,
        "Not one moved.",
        "Queries see what comes later. Is the mask the right way round (True = may not attend), or only hinted at?",
        tolerance=0,
    )


def _some(rows: Bool[np.ndarray, "N L"]) -> None:
    if not rows.any():
        raise Cannot("Every query is padding: no real row is left to compare.")
