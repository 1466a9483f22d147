"""What has to hold of one query that is followed through a layer, and what each head brings to its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.norms import out_weight
from mha_viz.core.maps import CLOSE

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.trace import Trace


@dataclass(frozen=True, eq=False)
class Check:
    """Something that has to hold of the followed query: what was compared, the ``figure``, the ``limit`` that it keeps, and whether it
    does; ``holds`` is None where there is nothing to check, and ``words`` say why."""

    name: str
    words: str
    figure: float | None
    limit: float | None
    holds: bool | None


def head_parts(trace: Trace, item: int, query: int) -> Float[np.ndarray, "parts E"]:
    """What each head brings to the output row of ``query``, [H, E] in float64; [H + 1, E] with the bias of the output projection last.

    Concat(head_0, …) W^O = Σ head_h W^O_h, with W^O_h the D rows of W^O that meet head h: to concatenate and mix is to sum."""
    assert trace.out_proj is not None  # an output is known
    weight, bias = trace.out_proj  # [E, H·D], [E] or None
    H, D = trace.head_outputs.shape[1], trace.head_outputs.shape[3]
    by_head = weight.astype(np.float64).reshape(len(weight), H, D)  # [E, H, D]
    parts = np.einsum("hd,ehd->he", trace.head_outputs[item, :, query].astype(np.float64), by_head)  # [H, E]
    return parts if bias is None else np.vstack([parts, bias])  # [H + 1, E]


def checks_of(trace: Trace, item: int, query: int) -> tuple[Check, ...]:
    """A Check for each thing that has to hold of this query: the tutorial's list, as far as one row shows it and it is known."""
    N, _, L, _ = trace.weights.shape
    limit = CLOSE[trace.dtype] if not trace.has("q") or trace.dtype in ("float16", "bfloat16") else 1e-5
    checks = []
    if trace.has("output"):
        found, wanted = trace.output.shape, (N, L, len(out_weight(trace)))
        checks.append(Check("shape", f"output {list(found)}, wanted [N, L, E] = {list(wanted)}", None, None, found == wanted))
    if trace.batch is not None:
        finite = bool(np.isfinite(trace.batch.query[item]).all())
        said = "no missing and no infinite value in X" if finite else "X holds missing or infinite values"
        checks.append(Check("input", said, None, None, finite))
    undefined = trace.undefined[item, :, query]  # [H]
    if undefined.any():
        words = f"no key is left in {undefined.sum()} heads: the row has no distribution and the output is undefined"
        return (*checks, Check("keys left", words, None, None, False))
    nonfinite = trace.nonfinite[item, :, query]  # [H]
    if nonfinite.any():
        words = f"the row of weights holds numbers that are not finite in {nonfinite.sum()} heads, and no mask made them"
        return (*checks, Check("finite", words, None, None, False))
    rows = trace.probabilities[item, :, query].astype(np.float64)  # [H, S]
    off = float(np.abs(rows.sum(axis=1) - 1).max())
    words = "the weights before dropout and 1: how far their sum is from it, in the head where it is farthest"
    checks.append(Check("row sums", words, off, limit, off <= limit))
    checks.append(_mask_check(trace, rows, trace.mask[item, :, query]))
    if trace.has("output"):
        parts, output = head_parts(trace, item, query), trace.output[item, query]  # [H + 1, E], [E]
        scale, gap = max(float(np.abs(parts).max()), 1.0), float(np.abs(parts.sum(axis=0) - output).max())
        words = "sum over heads + bias, made in float64, and the output: the largest difference of a number"
        checks.append(Check("output is a sum", words, gap, limit * scale, gap <= limit * scale))
    return tuple(checks)


def _mask_check(trace: Trace, rows: Float[np.ndarray, "H S"], hidden: Bool[np.ndarray, "H S"]) -> Check:
    """Whether the keys that are ``hidden`` [H, S] from a query have no weight in its ``rows`` [H, S]."""
    name = "padding and masks"
    if not trace.has("q"):
        return Check(name, "the weights alone are known here: which keys a mask hid, they do not say", None, None, None)
    if not hidden.any():
        return Check(name, "no key is hidden from this query: nothing to check", None, None, None)
    most = float(rows[hidden].max())
    return Check(name, f"the largest weight of {hidden.sum()} hidden cells, exactly 0", most, 0.0, most == 0)
