"""How far a head is from the average of them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.information import jensen_shannon
from mha_viz.analysis.parts import in_parts

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.trace import Trace


def real_queries(trace: Trace, item: int) -> Bool[np.ndarray, " L"]:
    """Which queries count: those that are not padding and have a distribution, of finite numbers, in every head."""
    lost = (trace.undefined | trace.nonfinite)[item].any(axis=0)  # [L]
    real: Bool[np.ndarray, " L"] = ~(trace.query_padding[item] | lost)
    return real


def difference_from_average(trace: Trace, item: int) -> Float[np.ndarray, " H"]:
    """How much each head differs from the average of the heads, from 0 (equal) to 1 (no key in common).

    The Jensen–Shannon divergence of a head's row from the average's row, in parts of ln 2; its mean over the real queries of one
    batch item. NaN where the item has no real query.
    """
    _, H, _, S = trace.probabilities.shape
    queries = np.flatnonzero(real_queries(trace, item))  # [R]
    if len(queries) == 0:
        return np.full(H, np.nan)
    total = np.zeros(H)
    for some in in_parts(queries, H * S):
        rows = trace.probabilities[item][:, some]  # [H, some of R, S]
        total += jensen_shannon(rows, rows.mean(axis=0)).sum(axis=1, dtype=np.float64)
    return np.clip(total / len(queries), 0, 1)  # [H]
