"""How far a head is from the average of them all."""

import numpy as np

from mha_viz.analysis.information import jensen_shannon


def real_queries(trace, item):
    """[L] bool: queries that are not padding and have a distribution, of finite numbers, in every head."""
    return ~(trace.query_padding[item] | (trace.undefined | trace.nonfinite)[item].any(axis=0))


def difference_from_average(trace, item):
    """[H]: how much each head differs from the average of the heads, from 0 (equal) to 1 (no key in common).

    The Jensen–Shannon divergence of a head's row from the average's row, in parts of ln 2; its mean over the real queries of one
    batch item. NaN where the item has no real query.
    """
    rows = trace.probabilities[item][:, real_queries(trace, item)]  # [H, R, S], R real queries
    if rows.shape[1] == 0:
        return np.full(len(rows), np.nan)
    return np.clip(jensen_shannon(rows, rows.mean(axis=0)).mean(axis=1, dtype=np.float64), 0, 1)  # [H]
