"""Checks of what goes in: shape, type, range, values, and what order means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.validation.check import Cannot, Measured, number, question, question_of_finite, relative, rounding
from mha_viz.analysis.validation.subject import result
from mha_viz.core.decimals import fill

if TYPE_CHECKING:
    from mha_viz.analysis.validation.subject import Subject


@question("input_shape", "The input has the layer's shape and type")
def input_shape(s: Subject) -> Measured:
    layer, batch = s.attended
    key = batch.query if batch.key is None else batch.key
    value = key if batch.value is None else batch.value
    N, L, S = batch.N, batch.L, batch.S
    right = {
        "query": (batch.query, (N, L, layer.embed_dim)),
        "key": (key, (N, S, layer.kdim)),
        "value": (value, (N, S, layer.vdim)),
        "key_padding_mask": (batch.key_padding_mask, (N, S)),
    }
    if batch.attn_mask is not None:
        right["attn_mask"] = batch.attn_mask, (L, S) if batch.attn_mask.ndim == 2 else (N * layer.num_heads, L, S)
    bad = [
        f"{name} is {list(array.shape)} of {array.dtype}, and has to be {list(shape)}"
        for name, (array, shape) in right.items()
        if array is not None and (array.shape != shape or array.dtype.kind not in ("bf" if "mask" in name else "f"))
    ]
    good = f"query {list(batch.query.shape)}, key {list(key.shape)}, value {list(value.shape)}, of {batch.query.dtype}, batch first."
    return Measured(
        "query, key, value and masks, against embed_dim, kdim, vdim, N, L and S",
        len(bad),
        good,
        f"{'; '.join(bad)}.",
        tolerance=0,
    )


@question("input_values", "No number of the input or of the weights is missing or infinite")
def input_values(s: Subject) -> Measured:
    arrays, what = _numbers(s)
    weights = (
        list(s.trace.layer.weights.values())
        if s.trace.layer is not None
        else [x for x in s.trace.out_proj or () if x is not None]
    )
    arrays, what = arrays + weights, f"{what}{' and of the weights' if weights else ''}"
    missing = sum(int(np.isnan(array).sum()) for array in arrays)
    infinite = sum(int(np.isinf(array).sum()) for array in arrays)
    total = sum(array.size for array in arrays)
    bad = f"{missing:,} of them are missing (NaN) and {infinite:,} infinite: {s.origin}. One is enough to make a whole row NaN."
    return Measured(f"{total:,} numbers of {what}", missing + infinite, "All of them are finite.", bad, tolerance=0)


@question("input_range", "The input's numbers leave room for their products")
def input_range(s: Subject) -> Measured:
    import torch

    arrays, what = _numbers(s)
    flat = np.concatenate([array.ravel() for array in arrays]).astype(np.float64)
    infinite, flat = int(np.isinf(flat).sum()), flat[np.isfinite(flat)]
    if not flat.size and not infinite:
        raise Cannot("No number of the input is finite: all are NaN.")
    most = torch.finfo(getattr(torch, s.dtype)).max ** 0.5
    if infinite:
        many = f"{number(infinite, 'number')} of {what} {'is' if infinite == 1 else 'are'} infinite"
        beyond = f"{many}: {s.origin}. No product has room there."
        return Measured(f"the largest of {what}, against √(largest {s.dtype})", float("inf"), "", beyond, tolerance=most)
    numbers = flat.min(), flat.max(), flat.mean(), flat.std()
    said = fill("From {:.4g} to {:.4g}, mean {:.4g}, standard deviation {:.4g}.", *numbers)
    return Measured(
        f"the largest of {what}, against √(largest {s.dtype}): a score multiplies two of such numbers",
        float(np.abs(flat).max()),
        said,
        f"{said} A score multiplies two of such numbers, and the product is beyond {s.dtype}: normalise the input.",
        tolerance=most,
    )


@question_of_finite("order", "Order counts only where the input or a mask holds it")
def order(s: Subject) -> Measured:
    """Attention has no order of its own: permuted tokens, under a mask that is permuted alike, come out permuted."""
    rng, rows = np.random.default_rng(0), s.trace.undefined
    N, H, L, _ = s.trace.weights.shape
    if L == 1 and s.trace.num_positions == 1:
        raise Cannot("There is one token, and so no order.")
    here, there = rng.permutation(L), rng.permutation(s.trace.num_positions)
    if s.trace.batch is not None:
        layer, batch = s.attended
        there = here if batch.key is None else there
        hidden, added = s.mask[..., : batch.S], s.trace.mask_bias
        attn_mask = hidden if added is None else np.where(hidden, -np.inf, added[..., : batch.S].astype(np.float32))
        permuted = replace(
            batch,
            query=batch.query[:, here],
            key=None if batch.key is None else batch.key[:, there],
            value=None if batch.value is None else batch.value[:, there],
            attn_mask=attn_mask[:, :, here][..., there].reshape(N * H, L, batch.S),  # [N, H, L, S] → [N·H, L, S]
            key_padding_mask=None,
            causal=False,
            window=None,
        )
        before, after = s.before(), s.attend(layer, permuted, dtype=s.dtype)
    else:
        call = s.call
        there = np.concatenate([there, np.arange(s.trace.num_positions, call.k.shape[2])])  # extra columns stay the last
        mask = call.mask.settled()  # rows whose keys a number hides, all of them, are told as they come out
        dense = mask.hidden()
        dense = np.broadcast_to(dense, (*dense.shape[:2], L, dense.shape[3]))[:, :, here][..., there][..., : mask.num_keys]
        bias = mask.added()
        if bias is not None:
            bias = np.broadcast_to(bias, (*bias.shape[:2], L, bias.shape[3]))[:, :, here][..., there]
        mask = replace(mask, causal=False, window=None, padded=None, dense=dense, bias=bias)
        v = None if call.v is None else call.v[:, :, there]
        before, after = s.before(), s.rerun(replace(call, q=call.q[:, :, here], k=call.k[:, :, there], v=v, mask=mask))
    seen, come = result(before)[:, here], result(after)
    if not before.has("output") and not before.has("concat"):
        seen = seen[..., there]  # the weights themselves: their columns are permuted as well
    seen = seen[~rows[:, :, here].any(axis=1)]
    come = come[~rows[:, :, here].any(axis=1)]
    return Measured(
        "what comes out of permuted tokens, with the masks permuted alike, against what came out before, permuted",
        relative(come, seen),
        "The layer itself knows no order: it is in positions that the input carries, and in the masks.",
        "The layer mixes up tokens: were heads split or joined by reshape without transpose?",
        tolerance=rounding(s.trace),
    )


def _numbers(s: Subject) -> tuple[list[np.ndarray], str]:
    """The arrays that went in as far as they are known, and what they are called."""
    if s.trace.batch is not None:
        batch = s.trace.batch
        return [x for x in (batch.query, batch.key, batch.value) if x is not None], "the input"
    call = s.call
    return [
        x for x in (call.q, call.k, call.v) if x is not None
    ], f"q, k{'' if call.v is None else ' and v'} (the input is not known)"
