"""Which of a call's rules hides what: the causes of a mask, by name."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from mha_viz.core.batch import Batch

UNNAMED = ("mask",)  # all that can be said of a mask whose rules its source does not know


def rules_of(trace):
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


def hidden(trace, item, rules):
    """[H, L, S] bool: what these of the call's rules hide in one batch item, without the others."""
    whole = trace.mask[item]  # [H, L, S]
    if set(rules) == set(rules_of(trace)):
        return whole
    mask = _of_call(trace, item, rules) if trace.batch is None else _of_batch(trace, item, rules)
    return np.broadcast_to(mask.hidden()[0], whole.shape)


def _of_call(trace, item, rules):
    mask = trace.rules
    return replace(
        mask,
        causal="causal" in rules,
        window=mask.window if "window" in rules else None,
        padded=mask.padded[[item]] if "key padding" in rules else None,
        dense=mask.dense[[item if len(mask.dense) > 1 else 0]] if "attn_mask" in rules else None,
    )


def _of_batch(trace, item, rules):
    """The Batch itself combines them, since together they may hide more than each alone: two float masks can add up to −∞."""
    (H, L, S), batch = trace.mask[item].shape, trace.batch
    padding, attn_mask = batch.key_padding_mask, batch.attn_mask
    if attn_mask is not None and attn_mask.ndim == 3:
        attn_mask = attn_mask[item * H : (item + 1) * H]  # [N·H, L, S] → [H, L, S]
    alone = Batch(
        np.zeros((1, L, 1)),
        np.zeros((1, batch.S, 1)),
        key_padding_mask=padding[[item]] if "key padding" in rules else None,
        attn_mask=attn_mask if "attn_mask" in rules else None,
        causal="causal" in rules,
        window=batch.window if "window" in rules else None,
    )
    return alone.mask(H, S - batch.S, trace.dtype)


def hidden_by(trace, item, head, query, key):
    """The names of the rules that hide this cell, each by itself; of the float masks that do so by their sum; () if it is seen."""
    cell = (head, query, key)
    if not trace.mask[item][cell]:
        return ()
    alone = tuple(rule for rule in rules_of(trace) if hidden(trace, item, (rule,))[cell])
    return alone or tuple(rule for rule in rules_of(trace) if rule in ("key padding", "attn_mask"))


def rules_hiding(mask, query, key):
    """The same of a cell in a Mask of one item and head, of which no other row is made."""
    rules = {
        "causal": {"causal": False},
        "window": {"window": None},
        "key padding": {"padded": None},
        "attn_mask": {"dense": None},
    }

    def hides(one):
        return bool(one.hidden(query, query + 1)[0, 0, 0, key])

    if not hides(mask):
        return ()
    nothing = replace(mask, **{field: value for rule in rules.values() for field, value in rule.items()})
    return tuple(name for name, (field,) in rules.items() if hides(replace(nothing, **{field: getattr(mask, field)})))


def leaving_no_key(trace, item):
    """{rules: [H, L] bool}: the rows of one item that have no key left, by the smallest set of rules that takes all their keys.

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
