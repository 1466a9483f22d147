"""What is odd about a call, as sentences that name the cause and say what it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from mha_viz.analysis.hiding import UNNAMED, leaving_no_key
from mha_viz.core.cells import NUMBERS, WORDS
from mha_viz.core.decimals import prose
from mha_viz.core.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Shaped

    from mha_viz.core.batch import Batch
    from mha_viz.core.trace import Trace


Kind = Literal["not_finite", "all_padded", "left_padding", "no_key", "inverted_mask", "float_mask", "dropout", "layout"]
Numbers: TypeAlias = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Finding:
    """One thing that a person should know, and where it happens: ``items``, ``heads`` and ``queries`` by index, () for all."""

    kind: Kind
    sentence: str
    items: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    queries: tuple[int, ...] = ()


def findings(trace: Trace, sizes_chosen: bool = False) -> list[Finding]:
    """All Findings about a Trace: what is not finite first, since no mask is to blame for that, then what leaves no distribution; [] where
    nothing is odd.

    ``sizes_chosen``: somebody chose batch size and length by name, so that a layout cannot be swapped by mistake.
    """
    found = [
        *_not_finite(trace),
        *_all_padded(trace),
        *_no_key(trace),
        *_inverted_mask(trace),
        *_float_masks(trace),
        *_dropout(trace),
    ]
    if trace.batch is not None and not sizes_chosen:
        found += _layout(trace.batch)
    return found


def origin_of_nonfinite(trace: Trace) -> str | None:
    """Where the first number that is not finite came in, as a sentence: the layer's weights, its input, or q, k and v as they were
    recorded. None where all of that is finite; what then is not finite was made on the way."""
    named: list[tuple[str, np.ndarray | None, tuple[str, ...] | None]]
    named = [(name, getattr(trace, name), HEAD_AXES) for name in ("q", "k", "v") if trace.has(name)]
    projected = trace.out_proj or ()
    if all(np.isfinite(array).all() for array in (*(array for _, array, _ in named), *projected) if array is not None):
        return None
    if trace.layer is not None and trace.batch is not None:
        batch = trace.batch
        named = [(name, weight, None) for name, weight in trace.layer.weights.items()]
        named += [
            (name, getattr(batch, name), TOKEN_AXES) for name in ("query", "key", "value") if getattr(batch, name) is not None
        ]
    else:
        named += [(name, array, None) for name, array in zip(("out_proj.weight", "out_proj.bias"), projected, strict=False)]
    for name, array, axes in named:
        if array is not None and not np.isfinite(array).all():
            return _first_nonfinite(name, array, axes)
    return None


HEAD_AXES = ("item", "head", "token", "dimension")
TOKEN_AXES = ("item", "token", "dimension")


def _first_nonfinite(name: str, array: Float[np.ndarray, ...], axes: Sequence[str] | None) -> str:
    """ "query holds 1 NaN: the first at item 0, token 1, dimension 0." """
    held = [(int(holds(array).sum()), WORDS[kind]) for kind, holds in NUMBERS.items()]
    first = np.argwhere(~np.isfinite(array))[0].tolist()
    place = str(first) if axes is None else ", ".join(f"{axis} {i}" for axis, i in zip(axes, first, strict=True))
    which = "the first at" if sum(count for count, _ in held) > 1 else "at"
    return f"{name} holds {_and([f'{count:,} {kind}' for count, kind in held if count])}, {which} {place}"


def _not_finite(trace: Trace) -> Iterator[Finding]:
    """What came in that is not finite, or was made so on the way, and which rows of weights it reaches."""
    came, rows = origin_of_nonfinite(trace), trace.nonfinite  # [N, H, L]
    if came is None and not rows.any():
        return
    items, heads, queries = (np.flatnonzero(rows.any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1)))
    reached = ""
    if rows.any():
        where = f"{_named('item', items)}, {_named('head', heads)}, {_named('query', queries)}"
        verb = "is" if rows.sum() == 1 else "are"
        reached = f"{_count(int(rows.sum()), 'row')} of weights {verb} not finite ({where}), though keys are left"
    if came is not None:
        then = f": {reached}. No mask made that." if reached else ". The weights are finite, the output is not."
        sentence = f"{came}{then}"
    elif not trace.has("q", "k"):
        sentence = f"The maps hold numbers that are not finite beside others: {reached}."
    else:
        most = np.abs(np.float64(trace.q)).max() * np.abs(np.float64(trace.k)).max()
        reach = f"|q| · |k| reaches {prose(most, '.2g')} a product"
        sentence = f"{reached[0].upper()}{reached[1:]}, and q and k are finite: scores overflow ({reach})."
    yield Finding("not_finite", sentence, *map(_whole, (items, heads, queries)))


def _fully_padded(trace: Trace) -> Bool[np.ndarray, " N"]:
    """[N] bool: items whose every key is padding."""
    batch, rules = trace.batch, trace.rules
    padding = batch.key_padding_mask if batch is not None else None if rules is None else rules.padded  # [N, S]
    if padding is None:
        return np.zeros(len(trace.undefined), bool)
    full: Bool[np.ndarray, " N"] = np.all(padding if padding.dtype == bool else np.isneginf(padding), axis=1)
    return full


def _all_padded(trace: Trace) -> Iterator[Finding]:
    items = np.flatnonzero(_fully_padded(trace))
    if len(items) == 0:
        return
    extra = trace.key_tokens[0][trace.num_positions :]
    left = f"only {_and(extra)} can be read, no token" if extra else "no query has a distribution: every row is undefined (NaN)"
    sentence = (
        f"{_named('item', items).capitalize()}: key padding hides all {_count(trace.num_positions, 'key')}, so that {left}."
    )
    yield Finding("all_padded", sentence, _whole(items))


def _no_key(trace: Trace) -> Iterator[Finding]:
    """One Finding for all items that lack keys in the same heads and rows for the same reason."""
    H, L = trace.undefined.shape[1:]
    places: dict[tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]], list[int]] = {}  # (rules, heads, queries) → items
    for item in np.flatnonzero(trace.undefined.any(axis=(1, 2)) & ~_fully_padded(trace)).tolist():
        for rules, rows in leaving_no_key(trace, item).items():
            for pattern in np.unique(rows[rows.any(axis=1)], axis=0):  # [L] each
                alike = np.flatnonzero((rows == pattern).all(axis=1))  # heads
                place = rules, _whole(alike, H), _whole(np.flatnonzero(pattern))
                places.setdefault(place, []).append(item)
    for (rules, heads, queries), items in places.items():
        where = [_named("item", items), *([_named("head", heads)] if heads else []), _named("query", queries)]
        together = f"{_and(rules)} together leave" if len(rules) > 1 else f"{rules[0]} leaves"
        if rules == UNNAMED and not trace.has("q"):  # maps alone: nobody masked anything that we know of
            yield Finding(
                "no_key",
                f"{', '.join(where).capitalize()}: the maps hold no numbers there (NaN): undefined.",
                tuple(items),
                heads,
                queries if len(queries) < L else (),
            )
            continue
        sentence = f"{', '.join(where).capitalize()}: {together} no key, so there is no distribution: undefined (NaN)."
        kind: Kind = "no_key"
        if trace.query_padding[np.ix_(items, queries)].all():
            sentence += (
                " They are padding themselves: no real row is harmed here, but a next layer would spread it (0 · NaN is NaN)."
            )
            if set(rules) == {"causal", "key padding"}:
                kind = "left_padding"
                sentence += " Padding on the right avoids it."
        yield Finding(kind, sentence, tuple(items), heads, queries if len(queries) < L else ())


def _masks(trace: Trace) -> list[tuple[str, Shaped[np.ndarray, ...]]]:
    """(name, mask) of each mask that came as an array; of a recorded call what it hides, and what it adds to the scores."""
    batch, rules = trace.batch, trace.rules
    if batch is not None:
        found = [("attn_mask", batch.attn_mask), ("key_padding_mask", batch.key_padding_mask)]
    else:
        found = [] if rules is None else [("attn_mask", rules.dense)]
        if rules is not None and rules.bias is not None:
            found.append(("attn_mask", rules.bias[..., : rules.num_keys]))  # without what an extra column adds
    return [(name, mask) for name, mask in found if mask is not None]


def _inverted_mask(trace: Trace) -> Iterator[Finding]:
    L, S = trace.undefined.shape[2], trace.num_positions
    bottom_right, top_left = ~Mask(L, S, causal=True).hidden()[0, 0], np.tri(L, S, dtype=bool)  # [L, S]
    for name, mask in _masks(trace):
        if name != "attn_mask" or L < 2:  # a single row that hides everything is inverted from nothing
            continue
        hides = mask if mask.dtype == bool else np.isneginf(mask)  # [..., L, S]
        if (hides == bottom_right).all() or (hides == top_left).all():
            meant = "the opposite" if trace.batch is None else "~attn_mask"
            meant = meant if mask.dtype == bool else "−∞ above the diagonal and 0 elsewhere"
            yield Finding(
                "inverted_mask",
                "attn_mask hides exactly what a causal mask shows: each query sees later keys only. In nn.MultiheadAttention True means "
                f"“may not attend”, in scaled_dot_product_attention “may attend”. Is {meant} meant?",
            )


def _float_masks(trace: Trace) -> Iterator[Finding]:
    for name, mask in _masks(trace):
        if mask.dtype != bool and np.isin(mask, (0, 1)).all() and mask.any():
            remedy = f"To hide keys give bools: {name} == 1 where 1 was to hide, {name} == 0 where 1 was to keep."
            yield Finding(
                "float_mask",
                f"{name} holds the numbers 0 and 1 only, as a mask of yes and no would. Numbers are added to the scores: 1 hides "
                "nothing and multiplies a weight by e = 2.718 before its row is made to sum to 1. "
                f"{'To hide keys give bools.' if trace.batch is None else remedy}",
            )


def _dropout(trace: Trace) -> Iterator[Finding]:
    if not trace.has("dropped") or trace.dropped is None:
        return
    sums = trace.weights.sum(axis=-1, dtype=np.float64)  # [N, H, L]
    nothing = trace.undefined | trace.nonfinite | trace.query_padding[:, None]  # [N, H, L] no row, or one that means nothing
    sums[nothing] = 1
    off = np.abs(sums - 1)  # [N, H, L]
    count, rows = int((off > 1e-5).sum()), int((~nothing).sum())
    if count == 0:
        return
    item, head, query = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
    p = "" if trace.layer is None else f", p = {prose(trace.layer.dropout, 'g')}"
    yield Finding(
        "dropout",
        f"Dropout is on (train mode{p}): {count} of {_count(rows, 'row')} of weights {'does' if count == 1 else 'do'} not sum to 1. "
        f"The furthest, item {item}, head {head}, query {query}, sums to {prose(sums[item, head, query], '.2f')}.",
    )


def _layout(batch: Batch) -> Iterator[Finding]:
    """More items than tokens, and nothing that says so on purpose: no other sequence, no mask that fits, no names of tokens."""
    N, L, E = batch.query.shape
    unnamed = batch.query_tokens == (tuple(map(str, range(L))),) * N
    if N > L > 1 and unnamed and batch.key is None and batch.key_padding_mask is None and batch.attn_mask is None:
        yield Finding(
            "layout",
            f"The query is read as [N, L, E] = [{N}, {L}, {E}]: {N} items of {L} tokens. If it holds {L} items of {N} tokens, it is "
            "sequence first: check batch_first, or swap the first two axes with transpose(0, 1).",
        )


MOST_SPANS = 6  # of numbers that a sentence names one by one


def spans(numbers: Numbers) -> str:
    """Ascending whole numbers in words, runs made short: 0, 1, 2, 5 is "0–2 and 5"; after six runs "and 12 more"."""
    numbers = np.asarray(numbers)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    if len(runs) > MOST_SPANS:
        texts[MOST_SPANS - 1 :] = [f"{sum(map(len, runs[MOST_SPANS - 1 :]))} more"]
    return _and(texts)


def _named(what: str, numbers: Numbers) -> str:
    """ "query 5", "queries 0–2 and 5"."""
    plural = {"query": "queries"}.get(what, f"{what}s")
    return f"{what if len(numbers) == 1 else plural} {spans(numbers)}"


def _and(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _whole(numbers: Numbers, count: int | None = None) -> tuple[int, ...]:
    """Indices as a tuple of ints, () where they are all ``count`` of them."""
    return () if len(numbers) == count else tuple(map(int, numbers))
