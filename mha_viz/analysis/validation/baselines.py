"""Something simpler beside the result: uniform attention, one head."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.validation.check import Cannot, Measured, question_of_finite, relative, rounding
from mha_viz.core.decimals import prose
from mha_viz.core.intervention import Intervention, changed

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.analysis.validation.subject import Subject
    from mha_viz.core.call import Call
    from mha_viz.core.intervention import Way
    from mha_viz.core.trace import Trace


UNJUDGED = "Which is better, only a task can say."


@question_of_finite("uniform", "Attention does more than an average (baseline: uniform)")
def uniform(s: Subject) -> Measured:
    call = _whole_call(s)
    full = s.rerun(call)
    everywhere: dict[int, Way] = {head: "uniform" for head in range(call.num_heads)}
    beside = changed(full, Intervention(everywhere))
    return _beside(
        s,
        full,
        beside,
        "the same layer with equal weight on every key that a query may see",
        "The output is that of a plain average: the heads choose nothing here.",
    )


@question_of_finite("one_head", "Several heads do what one does not (baseline: one head)")
def one_head(s: Subject) -> Measured:
    call = _whole_call(s)
    H = call.num_heads
    if H == 1:
        raise Cannot("The layer has one head.")
    if any(mask is not None and mask.shape[1] > 1 for mask in (call.mask.dense, call.mask.bias)):
        raise Cannot("Each head has a mask of its own here, and one head could have but one.")
    q, k, v = (_joined(x.repeat(H // x.shape[1], axis=1)) for x in (call.q, call.k, s.values))
    single = s.rerun(replace(call, q=q, k=k, v=v, scale=q.shape[3] ** -0.5))
    return _beside(
        s,
        s.rerun(call),
        single,
        f"the same weights as one head of {q.shape[3]} numbers",
        "One head gives the same: nothing is gained by several here.",
    )


def _joined(heads: Float[np.ndarray, "N H L D"]) -> Float[np.ndarray, "N 1 L H*D"]:
    """[N, H, L, D] → [N, 1, L, H·D]."""
    N, H, L, D = heads.shape
    return heads.swapaxes(1, 2).reshape(N, 1, L, H * D)


def _whole_call(s: Subject) -> Call:
    call = s.whole_call
    if (~s.trace.mask).sum(axis=-1).max() <= 1:
        raise Cannot("No query sees more than one key: there is nothing to choose, for any head.")
    return call


def _beside(s: Subject, full: Trace, beside: Trace, what: str, same: str) -> Measured:
    name = "output" if full.has("output") else "concat"
    one, other = getattr(full, name), getattr(beside, name)
    rows = s.real & ~np.isnan(one).any(axis=-1) & ~np.isnan(other).any(axis=-1)
    if not rows.any():
        raise Cannot("No real query is defined.")
    moved = float(np.linalg.norm(one[rows] - other[rows], axis=-1).mean() / np.linalg.norm(one[rows], axis=-1).mean())
    off = relative(other[rows], one[rows])
    said = f"The {name} moves by {prose(100 * moved, '.3g')} % of its length. {UNJUDGED}"
    return Measured(f"the {name} against that of {what}, relative to the largest", off, said, same, least=10 * rounding(full))
