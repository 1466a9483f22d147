"""Checks of one way to compute against another: NumPy, PyTorch and its paths, layouts, items alone, a cache, twice the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.analysis.layout import mask_tensors
from mha_viz.analysis.validation.check import (
    Cannot,
    Measured,
    apart,
    gap,
    number,
    question,
    question_of_finite,
    relative,
    rounding,
)
from mha_viz.analysis.validation.subject import result
from mha_viz.core.attend import attend
from mha_viz.core.decimals import fill, prose
from mha_viz.core.decode import share_kv
from mha_viz.core.reference import softmax

if TYPE_CHECKING:
    from jaxtyping import Bool

    from mha_viz.analysis.validation.subject import Subject
    from mha_viz.core.arrays import Dtype
    from mha_viz.core.batch import Batch


Pair: TypeAlias = tuple[np.ndarray, np.ndarray]


@question("numpy", "PyTorch and NumPy from scratch agree on this layer and input")
def numpy_reference(s: Subject) -> Measured:
    if s.has_layer:
        layer, batch = s.attended
        right = attend(layer, batch, engine="numpy", dtype="float64")
        output, weights = s.run_module(dtype="float64")
        off, tolerance = _apart(s, (output, right.output), (weights, right.weights), dtype="float64")
        shown = s.before()
        far, within = _apart(s, (shown.output, right.output), (shown.weights, right.weights))
        said = f" What is shown, in {s.dtype}, is {prose(far, '.2g')} from it."
        bad = f"nn.MultiheadAttention gives other numbers.{said}"
        if far > within:  # what is shown has a tolerance of its own
            off, bad = float("inf") if off <= within else off, f"The numbers that are shown are not the reference's.{said}"
        return Measured(
            "nn.MultiheadAttention against the reference, output and weights in float64",
            off,
            f"They agree.{said}",
            bad,
            tolerance=tolerance,
        )
    call = s.call
    groups = call.num_heads // call.k.shape[1]
    k = call.k.repeat(groups, axis=1).astype(np.float64)  # [N, H, S, D]
    scores = call.q.astype(np.float64) @ k.swapaxes(2, 3) * call.scale  # [N, H, L, S]
    with np.errstate(invalid="ignore"):
        weights = softmax(scores + s.added())
    pairs, what = [(s.trace.probabilities, weights)], "weights"
    if call.v is not None:
        mixed = weights @ call.v.repeat(groups, axis=1).astype(np.float64)  # [N, H, L, Dv]
        if call.without_key == "zero":
            mixed[s.trace.undefined] = 0
        pairs, what = [*pairs, (s.trace.head_outputs, mixed)], "weights and head outputs"
    off, tolerance = _apart(s, *pairs, among=np.ones_like(s.trace.undefined))
    return Measured(
        f"{what}, against softmax(scale · q kᵀ + mask) v in NumPy, float64",
        off,
        "They agree.",
        "They follow from other numbers.",
        tolerance=tolerance,
    )


@question("layouts", "Batch first and sequence first give the same")
def layouts(s: Subject) -> Measured:
    first, second = (s.run_module(batch_first=batch_first) for batch_first in (True, False))
    shapes = first[1].shape == second[1].shape
    off, tolerance = _apart(s, *zip(first, second, strict=True), dtype="float32") if shapes else (float("inf"), 0)
    return Measured(
        "nn.MultiheadAttention with batch_first=True against the same tokens transposed, with batch_first=False, output and weights",
        off,
        "The layout changes shapes and no number.",
        "They differ: one of them takes items for tokens.",
        tolerance=tolerance,
    )


@question("items", "Batch items do not touch each other")
def items(s: Subject) -> Measured:
    before = result(s.before())
    N, most = len(before), None
    if N == 1:
        raise Cannot("There is one batch item.")
    for item in range(min(N, 8)):
        where = np.zeros((N, s.trace.weights.shape[3]), bool)
        where[item] = True
        after, _ = s.replaced(where)
        rows = np.arange(N) != item
        if not np.isnan(before[rows]).all():
            most = max(most or 0.0, gap(result(after)[rows], before[rows]))
    if most is None:
        raise Cannot("Every output is undefined (NaN): none is left to compare.")
    return Measured(
        f"all other items, before and after one was replaced, for {number(min(N, 8), 'item')}",
        most,
        "Not one moved.",
        "Items leak into each other. Is the layout right: batch_first?",
        tolerance=0,
    )


@question("item_alone", "An item alone gives what it gives in the batch")
def item_alone(s: Subject) -> Measured:
    layer, batch = s.attended
    if batch.N == 1:
        raise Cannot("There is one batch item: it is alone.")
    together, most, counted = s.before(), None, range(min(batch.N, 8))
    for item in counted:
        alone = s.attend(layer, _only(batch, item, layer.num_heads), dtype=s.dtype)
        if not np.isnan(together.output[item]).all():
            most = max(most or 0.0, relative(alone.output[0], together.output[item]))
    if most is None:
        raise Cannot("Every output is undefined (NaN): none is left to compare.")
    return Measured(
        f"each of {number(len(counted), 'item')} by itself, against the batch",
        most,
        "They agree.",
        "What an item gives depends on its company.",
        tolerance=rounding(s.trace),
    )


def _only(batch: Batch, item: int, num_heads: int) -> Batch:
    one = slice(item, item + 1)
    names = ("query", "key", "value", "key_padding_mask", "query_padding_mask")
    kept = {name: getattr(batch, name)[one] for name in names if getattr(batch, name) is not None}
    mask = batch.attn_mask
    if mask is not None and mask.ndim == 3:
        kept["attn_mask"] = mask[item * num_heads : (item + 1) * num_heads]
    return replace(batch, **kept, query_tokens=batch.query_tokens[one], key_tokens=batch.key_tokens[one])


@question_of_finite("no_weights", "need_weights=False gives the output that is shown")
def no_weights(s: Subject) -> Measured:
    if not s.has_layer:
        return _fused(s)
    output, weights = s.run_module(dtype=_module_dtype(s), need_weights=False)
    if weights is not None:
        return Measured("the weights that come back, against none", 1, "", "Weights come back.", tolerance=0)
    off, tolerance = _apart(s, (output, s.before().output))
    return Measured(
        "nn.MultiheadAttention with need_weights=False, which runs scaled_dot_product_attention, against the output shown",
        off,
        f"They agree.{_undefined(s)}",
        "Asking for the weights changes the output.",
        tolerance=tolerance,
    )


def _fused(s: Subject) -> Measured:
    """The recorded q, k and v through PyTorch's fused attention, which makes no weights."""
    import torch

    call, shown = s.whole_call, s.trace.head_outputs
    q, k, v = (torch.tensor(x, dtype=torch.float64) for x in (call.q, call.k, s.values))
    groups = call.num_heads // k.shape[1]
    k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))  # [N, H, S, D]
    fused = torch.nn.functional.scaled_dot_product_attention(q, k, v, torch.tensor(s.added()), scale=call.scale)
    zero = call.without_key == "zero"  # so the model had it from this operator
    rows = ~s.trace.undefined | zero
    _some_defined(rows)
    off, tolerance = _apart(s, (shown, fused.numpy()), among=rows)
    return Measured(
        "scaled_dot_product_attention of the recorded q, k and v, in float64, against the head outputs shown",
        off,
        f"They agree.{'' if zero else _undefined(s)}",
        "Asking for the weights changes the output.",
        tolerance=tolerance,
    )


@question_of_finite("fast_path", "The fused fast path gives the output that is shown")
def fast_path(s: Subject) -> Measured:
    layer, batch = s.attended
    padding, attn_mask = mask_tensors(batch)
    dtype = _module_dtype(s)
    why = {
        "num_heads is odd": layer.num_heads % 2,
        "query, key and value are not one tensor": batch.key is not None,
        "the input projections are not packed into one weight": "in_proj_weight" not in layer.weights,
        "the layer has no bias": "in_proj_bias" not in layer.weights,
        "there are extra keys (add_bias_kv, add_zero_attn)": bool(layer.extra_keys),
        "a mask holds floats": any(mask is not None and mask.is_floating_point() for mask in (padding, attn_mask)),
    }
    against = [reason for reason, holds in why.items() if holds]
    if against:
        raise Cannot(f"PyTorch does not take the fast path here: {'; '.join(against)}.")
    output, weights = s.run_module(dtype=dtype, fast=True)
    without, _ = s.run_module(dtype=dtype, fast=True, need_weights=False)
    shown = s.before()
    off, tolerance = _apart(s, (output, shown.output), (weights, shown.weights), (without, shown.output))
    return Measured(
        "nn.MultiheadAttention in eval mode without gradients, with and without weights, against what is shown",
        off,
        f"They agree.{_undefined(s)}",
        "The fast path gives other numbers: in production, without gradients, that is what runs.",
        tolerance=tolerance,
    )


@question_of_finite("decoding", "One token at a time with a cache gives what the full pass gives")
def decoding(s: Subject) -> Measured:
    """What the page Decode shows, by the same Decoder: token by token; and with the first half read at once and one key and value head
    for all query heads. Causal, whatever the layer is here."""
    if not s.has_layer:
        return _decoded_call(s)
    layer, batch = s.attended
    if batch.key is not None:
        raise Cannot("Cross-attention: keys and values come from another sequence, whole, and nothing is decoded from them.")
    batch = replace(batch, causal=True)
    off = tolerance = 0.0
    for prompt, num_kv_heads in ((1, layer.num_heads), (max(batch.L // 2, 1), 1)):
        shared = share_kv(layer, num_kv_heads)
        full = s.attend(shared, batch, dtype=s.dtype)
        found = s.decode(shared, batch, prompt=prompt, num_kv_heads=num_kv_heads, dtype=s.dtype)
        rows: Bool[np.ndarray, "N L"] = ~np.any(full.undefined, axis=1)
        _some_defined(rows)
        off, tolerance = max(off, relative(found.output[rows], full.output[rows])), max(tolerance, rounding(full))
    added = "" if s.attended[1].causal else ", with a causal mask added to this layer"
    return Measured(
        f"{number(batch.L, 'step')} with a KV cache against the full pass{added}, relative to the largest output; again with half of the "
        "tokens as a prompt and one key and value head for all",
        off,
        "They agree.",
        "Decoding gives other numbers. The causal hint at one query is aligned top-left and shows it the first key only.",
        tolerance=tolerance,
    )


def _decoded_call(s: Subject) -> Measured:
    """The recorded keys and values step by step: each query reads those that are there by then."""
    call, positions = s.whole_call, s.trace.tokens.positions
    L, S = call.q.shape[2], call.mask.num_keys
    if positions is None or L != S or call.mask.dense is not None or call.mask.bias is not None:
        raise Cannot(
            "Decoding needs one sequence that reads itself, under rules that say how they go on: causal, a window, padding."
        )
    full = s.rerun(replace(call, mask=replace(call.mask, causal=True)))
    groups = call.num_heads // call.k.shape[1]
    q, k, v = (x.astype(full.dtype) for x in (call.q, call.k, s.values))  # what was recorded in 16 bits is shown in 32
    k, v = (x.repeat(groups, axis=1) for x in (k, v))  # [N, H, S, D]
    outputs, places = [], np.arange(k.shape[2])
    for t in range(L):
        there = (places <= t) | (places >= S)  # the extra columns are always there
        hidden = call.mask.hidden(t, t + 1)[..., there]  # [1|N, 1, 1, t + 1 + extra]
        scores = q[:, :, t : t + 1] @ k[:, :, there].swapaxes(2, 3) * call.scale  # [N, H, 1, t + 1 + extra]
        outputs.append(softmax(np.where(hidden, -np.inf, scores)) @ v[:, :, there])  # [N, H, 1, D]
    assert full.rules is not None  # as what is made of a Call has them
    spared = full.rules.spared()[
        ..., 0
    ]  # [1|N, 1|H, L]: a number hides every key of theirs, so that they see those to come as well
    rows = ~(full.undefined | spared)
    _some_defined(rows)
    added = "" if call.mask.causal else ", with a causal mask added to this layer"
    return Measured(
        f"{number(L, 'step')} that read the recorded keys and values as they come, against the full pass{added}, head outputs",
        relative(np.concatenate(outputs, axis=2)[rows], full.head_outputs[rows]),
        "They agree.",
        "Decoding gives other numbers.",
        tolerance=rounding(full),
    )


@question("dropout_off", "Dropout is off")
def dropout_off(s: Subject) -> Measured:
    layer, dropped = s.trace.layer, s.trace.dropped if s.trace.has("dropped") else None
    if layer is None and dropped is None:
        raise Cannot("Dropout is not known here: a recording keeps the weights from before it, and maps do not say.")
    p = 0.0 if dropped is None else float(dropped.mean()) if layer is None else layer.dropout
    return Measured(
        "the share of weights that is dropped, against 0",
        p,
        "Eval mode: no weight is dropped.",
        fill(
            "Train mode: a share of {:.3g} of the weights is dropped, and others are larger for it. Call .eval() before evaluating.",
            p,
        ),
        tolerance=0,
    )


@question("deterministic", "The same input gives the same output, twice")
def deterministic(s: Subject) -> Measured:
    import torch

    layer, batch = s.attended
    one, two = (
        s.attend(layer, batch, dtype=s.dtype, training=s.trace.training, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 2)
    )
    moved = max(gap(one.output, two.output), gap(one.weights, two.weights))
    mode = "train" if s.trace.training else "eval"
    return Measured(
        f"two runs in {mode} mode, from two states of the random generator",
        moved,
        "Equal to the last bit.",
        "Two runs differ: dropout is drawn anew each time, or something else is.",
        tolerance=0,
    )


def _module_dtype(s: Subject) -> Dtype:
    return "float64" if s.dtype == "float64" else "float32"


def _apart(
    s: Subject, *pairs: Pair, among: Bool[np.ndarray, "N H L"] | None = None, dtype: Dtype | None = None
) -> tuple[float, float]:
    """``apart`` of the arrays of each pair, [N, L, E] or [N, H, L, …], ``among`` these rows [N, H, L], by default those that are
    defined."""
    among = ~s.trace.undefined if among is None else among
    _some_defined(among)

    def measure(rows: Bool[np.ndarray, "N H L"]) -> float | None:
        found = [relative(one[own], other[own]) for one, other in pairs if (own := of(rows, one)).any()]
        return max(found) if found else None

    def of(
        rows: Bool[np.ndarray, "N H L"], array: np.ndarray
    ) -> np.ndarray:  # an output is made of all heads, and as far off as the farthest
        return rows if array.ndim == 4 else np.all(among, axis=1) & np.any(rows, axis=1)

    return apart(s.trace, measure, among, dtype)


def _some_defined(rows: Bool[np.ndarray, "N ..."]) -> None:
    if not rows.any():
        raise Cannot("Every query is undefined in some head: no row is left to compare.")


def _undefined(s: Subject) -> str:
    rows = int(s.trace.undefined.any(axis=1).sum())
    left = (
        f" {number(rows, 'row')} without a key left out: PyTorch gives NaN there on one path and the output's bias on another."
    )
    return left if rows else ""
