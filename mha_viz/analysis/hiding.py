"""Which of a call's rules hides what: the causes of a mask, by name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.batch import Batch

if TYPE_CHECKING:
    from jaxtyping import Bool

    from mha_viz.core.mask import Mask
    from mha_viz.core.trace import Trace


UNNAMED = ("mask",)  # all that can be said of a mask whose rules its source does not know


def rules_of(trace: Trace) -> tuple[str, ...]:
    """The rules that this call has, of "causal", "window", "key padding" and "attn_mask"; ("mask",) where none is known."""
    batch, mask = trace.batch, trace.rules
    if batch is not None:  # it still tells two masks of numbers apart, which the Mask adds up
        has = {
            "causal": batch.causal,
            "window": batch.window is not None,
            "key padding": batch.key_padding_mask is not None,
            "attn_mask": batch.attn_mask is not None,
        }
    elif mask is not None:
        has = {
            "causal": mask.causal,
            "window": mask.window is not None,
            "key padding": mask.padded is not None,
            "attn_mask": mask.dense is not None,
        }
    else:
        return UNNAMED
    return tuple(name for name, there in has.items() if there) or UNNAMED


def hidden(trace: Trace, item: int, rules: Collection[str]) -> Bool[np.ndarray, "H L S"]:
    """What these of the call's rules hide in one batch item, without the others."""
    whole: Bool[np.ndarray, "H L S"] = trace.mask[item]
    if set(rules) == set(rules_of(trace)):
        return whole
    mask = _of_rules(trace.rules, item, rules) if trace.batch is None else _of_batch(trace, trace.batch, item, rules)
    return np.broadcast_to(mask.hidden()[0], whole.shape)


def _of_rules(mask: Mask | None, item: int, rules: Collection[str]) -> Mask:
    assert mask is not None  # what of no rules is known has UNNAMED alone
    return replace(
        mask,
        causal="causal" in rules,
        window=mask.window if "window" in rules else None,
        padded=mask.padded[[item]] if mask.padded is not None and "key padding" in rules else None,
        dense=mask.dense[[min(item, len(mask.dense) - 1)]] if mask.dense is not None and "attn_mask" in rules else None,
    )


def _of_batch(trace: Trace, batch: Batch, item: int, rules: Collection[str]) -> Mask:
    """The Batch itself combines them, since together they may hide more than each alone: two float masks can add up to −∞."""
    H, L, S = trace.mask[item].shape
    padding, attn_mask = batch.key_padding_mask, batch.attn_mask
    if attn_mask is not None and attn_mask.ndim == 3:
        attn_mask = attn_mask[item * H : (item + 1) * H]  # [N·H, L, S] → [H, L, S]
    alone = Batch(
        np.zeros((1, L, 1)),
        np.zeros((1, batch.S, 1)),
        key_padding_mask=padding[[item]] if padding is not None and "key padding" in rules else None,
        attn_mask=attn_mask if "attn_mask" in rules else None,
        causal="causal" in rules,
        window=batch.window if "window" in rules else None,
    )
    return alone.mask(H, S - batch.S, trace.dtype)


def hidden_by(trace: Trace, item: int, head: int, query: int, key: int) -> tuple[str, ...]:
    """The names of the rules that hide this cell, each by itself; of the float masks that do so by their sum; () if it is seen."""
    cell = (head, query, key)
    if not trace.mask[item][cell]:
        return ()
    alone = tuple(rule for rule in rules_of(trace) if hidden(trace, item, (rule,))[cell])
    return alone or tuple(rule for rule in rules_of(trace) if rule in ("key padding", "attn_mask"))


def rules_hiding(mask: Mask, query: int, key: int) -> tuple[str, ...]:
    """The same of a cell in a Mask of one item and head, of which no other row is made."""

    def hides(one: Mask) -> bool:
        return bool(one.hidden(query, query + 1)[0, 0, 0, key])

    if not hides(mask):
        return ()
    nothing = replace(mask, causal=False, window=None, padded=None, dense=None)
    alone = {
        "causal": replace(nothing, causal=mask.causal),
        "window": replace(nothing, window=mask.window),
        "key padding": replace(nothing, padded=mask.padded),
        "attn_mask": replace(nothing, dense=mask.dense),
    }
    return tuple(name for name, one in alone.items() if hides(one))


def leaving_no_key(trace: Trace, item: int) -> dict[tuple[str, ...], Bool[np.ndarray, "H L"]]:
    """The rows of one item that have no key left, by the smallest set of rules that takes all their keys.

    Every rule of a set is needed: without it the row has a key. Of several smallest sets the first in the order of ``rules_of``.
    """
    unexplained = trace.undefined[item]  # [H, L]
    rules, found = rules_of(trace), {}
    for some in (some for count in range(1, len(rules) + 1) for some in combinations(rules, count)):
        if not unexplained.any():
            break
        rows = unexplained & hidden(trace, item, some).all(axis=-1)  # [H, L]
        if rows.any():
            found[some], unexplained = rows, unexplained & ~rows
    return found
