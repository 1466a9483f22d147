"""How far a head is from the average of them all."""

import numpy as np


def real_queries(trace, item):
    """[L] bool: queries that are not padding and have a distribution in every head."""
    return ~(trace.query_padding[item] | trace.undefined[item].any(axis=0))


def difference_from_average(trace, item):
    """[H]: how much each head differs from the average of the heads, from 0 (equal) to 1 (no key in common).

    The Jensen–Shannon divergence of a head's row p from the average's row m, in nats, is H((p + m) / 2) − (H(p) + H(m)) / 2
    with entropy H and 0 · log 0 = 0; here its mean over the real queries of one batch item, divided by its upper bound ln 2.
    NaN where the item has no real query. J. Lin, Divergence measures based on the Shannon entropy, IEEE Transactions on
    Information Theory 37 (1991), equations 4.1 and 4.2 and theorem 3 with equal weights.
    """
    rows = trace.probabilities[item][:, real_queries(trace, item)]  # [H, R, S], R real queries
    if rows.shape[1] == 0:
        return np.full(len(rows), np.nan)
    average = rows.mean(axis=0)  # [R, S]
    divergence = _entropy((rows + average) / 2) - (_entropy(rows) + _entropy(average)) / 2  # [H, R]
    return np.clip(divergence.mean(axis=1, dtype=np.float64) / np.log(2), 0, 1)  # [H]


def _entropy(p):
    """[…, S] probabilities → […] nats."""
    logarithm = np.zeros_like(p)
    np.log(p, out=logarithm, where=p > 0)
    return -(p * logarithm).sum(axis=-1)
