"""Finished attention maps, from wherever: a Trace of weights alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.arrays import Dtype, as_array, own, read_only
from mha_viz.core.decimals import prose
from mha_viz.core.rules import Shape, Wrong, fraction, of_kind, one_of
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Maker, Tensor, Trace

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.arrays import Numbers

# How far from 1 a row's sum may be, by the type that was computed in: maps are often saved rounded.
CLOSE: dict[Dtype, float] = {"bfloat16": 1e-2, "float16": 1e-2, "float32": 1e-3, "float64": 1e-3}


def trace_of_maps(
    weights: Numbers,
    tokens: Tokens | None = None,
    name: str = "attention",
    close: float | None = None,
    dtype: str | None = None,
    used: Numbers | None = None,
    step: int | None = None,
) -> Trace:
    """A Trace of ``weights`` [N, H, L, S] after softmax, whose rows sum to 1 or are not finite; Tokens where None are numbers.

    Softmax is never applied: rows that do not sum to 1 are refused, with what they look like. What the rows do not say stays
    unknown. A key with weight exactly 0 in every head of a query is taken for hidden from it, as a mask leaves it: the softmax of
    finite scores is never 0, unless it is more than 100 below the largest. A row that is all NaN is undefined; one that holds NaN or an
    infinite number beside numbers is kept as it is, see ``Trace.nonfinite``. ``dtype`` is the type that they were computed in, by
    name, their own where None; ``close`` how far from 1 a row's sum may be, ``CLOSE`` of that type where None. ``used``
    [N, H, L, S] is what multiplied the values where a model changed its weights after softmax: the Trace's ``weights``, of which
    rows may have any sum, beside its ``probabilities``. ``step`` is as in a Trace.

    >>> trace = trace_of_maps([[[[1.0, 0.0], [0.25, 0.75]]]])
    >>> trace.shape, trace.mask[0, 0].tolist(), trace.has("q")
    ((1, 1, 2, 2), [[False, True], [False, False]], False)
    """
    half = str(getattr(weights, "dtype", "")) == "torch.bfloat16"
    weights = own(as_array("weights", weights))
    if tokens is not None:
        of_kind("tokens", tokens, Tokens)
    dtype = one_of("dtype", ("bfloat16" if half else weights.dtype.name) if dtype is None else dtype, tuple(CLOSE))
    if weights.ndim != 4 or 0 in weights.shape:
        raise Wrong("weights", Shape(weights.shape), "must be [N, H, L, S], and no axis empty.")
    check_rows(weights, CLOSE[dtype] if close is None else fraction("close", close))
    N, _, L, S = weights.shape
    used = weights if used is None else own(as_array("used", used))
    if used.shape != weights.shape:
        raise Wrong("used", Shape(used.shape), f"must be as large as the weights, {weights.shape}.")
    undefined = np.isnan(weights).all(axis=-1)  # [N, H, L]
    hidden = ((weights == 0) | undefined[..., None]).all(axis=1, keepdims=True)  # [N, 1, L, S]
    fields: dict[str, Tensor | Maker] = {
        "probabilities": weights,
        "weights": used,
        "mean_weights": lambda _: read_only(used.mean(axis=1)),  # [N, L, S]
        "mask": read_only(np.broadcast_to(hidden, weights.shape) | undefined[..., None]),
        "mask_bias": None,
        "keep_scale": None,
        "dropped": None,
        "undefined": read_only(undefined),
    }
    return Trace(fields, tokens=tokens or Tokens.of(N, L, S, one_sequence=L == S), name=name, dtype=dtype, step=step)


def check_rows(weights: Float[np.ndarray, "... S"], close: float) -> None:
    """Raises Wrong where a row of ``weights`` is no distribution, and is not one that went wrong.

    It may hold no negative number, and has to sum to 1 within ``close`` where it is finite; where no row is, none may be infinite.

    >>> check_rows(np.array([[0.5, 0.5], [0.5, 0.25]]), close=1e-3)
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: weights of shape (2, 2): 1 of 2 rows; the first, [1], sums to 0.75: it does not sum to 1 along ...
    """
    finite = np.isfinite(weights)
    whole = finite.all(axis=-1)
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        sums = weights.sum(axis=-1, dtype=np.float64)
    for bad, rule in (
        (
            np.isinf(weights).any(axis=-1) & ~whole.any(),
            "holds infinite numbers, and no row is finite: these may be scores from before the softmax, which is not applied here.",
        ),
        (
            ((weights < 0) & finite).any(axis=-1),
            "holds negative numbers: these may be scores from before the softmax, which is not applied here.",
        ),
        (
            whole & (np.abs(sums - 1) > close),
            "does not sum to 1 along the last axis, the keys. Is another axis the keys', or is this after dropout or before softmax?",
        ),
    ):
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            share = f"{int(bad.sum())} of {bad.size} rows; the first, {list(where)}, sums to {prose(sums[where], '.4g')}"
            raise Wrong("weights", Shape(weights.shape), f"{share}: it {rule}")
