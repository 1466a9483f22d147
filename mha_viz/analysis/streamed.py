"""Statistics of heads whose maps are never there whole: totals and counts of their rows as these go by.

What they mean is said in ``mha_viz.analysis.statistics``. Two need more than rows of one head and are left out: the difference from the
average of all heads, and the contribution to the output.
"""

import numpy as np

from mha_viz.analysis.statistics import HIDING, STATISTICS, Rows, divided
from mha_viz.core.attend import call_of
from mha_viz.core.long import pooled

STREAMED = tuple(name for name, how in STATISTICS.items() if how.by_rows)
ROWS = 2**20  # masks are looked through so many cells at a time


def pooled_with_statistics(trace, heads=None, *, item=0, shape=(256, 256)):
    """(Pooled, {name of STREAMED: value}) head by head, in one pass over each; a value is NaN where it has no meaning.

    ``trace`` is a Trace with q and k; the rest is as in ``mha_viz.core.long.pooled``.
    """
    mask, sums = call_of(trace).mask.alone(item), {}
    reachable = _reachable(trace, item, mask)

    def read(head, block):
        rows = _rows(trace, item, head, block, mask, reachable)
        so_far = sums.setdefault(head, dict.fromkeys(STREAMED, np.zeros((2, 1))))
        for name in STREAMED:
            so_far[name] = so_far[name] + np.array(STATISTICS[name].function(rows))  # [2, 1], total and count

    for found in pooled(trace, heads, item=item, shape=shape, read=read):
        yield found, {name: float(divided(*total)[0]) for name, total in sums.pop(found.head).items()}


def _rows(trace, item, head, block, mask, reachable):
    """The Rows of one head that a Block holds."""
    allowed, real = _sight(trace, item, mask, block.start, block.start + len(block.p))  # [1|H, n, S], [n]
    real = np.flatnonzero(real & ~block.undefined)  # [R]
    p = np.zeros((1, len(real), allowed.shape[-1]), block.p.dtype)  # [1, R, S]
    for keys, part in block.parts():
        p[0, :, keys] = part[real]
    own = min(head, len(allowed) - 1)
    return Rows(trace.tokens, item, block.start + real, p, allowed[own : own + 1, real], reachable)


def _sight(trace, item, mask, start, stop):
    """[1|H, n, S] bool, the keys that these queries may see in each head, and [n] bool, which of them are real."""
    allowed = ~mask.hidden(start, stop)[0]  # [1|H, n, S]
    real = allowed.any(axis=-1).all(axis=0) & ~trace.query_padding[item, start:stop]
    if mask.bias is not None:
        allowed = allowed & (mask.added(start, stop)[0] > HIDING)
    return allowed, real


def _reachable(trace, item, mask):
    """[S without extra] bool: positions that any real query may see. From the last query on: of causal ones it sees the most."""
    found, L = np.zeros(mask.num_keys, bool), mask.num_queries
    most = np.ones(mask.num_keys, bool) if mask.padded is None else ~mask.padded[0]
    step = max(1, ROWS // max(mask.num_keys, 1))
    for stop in range(L, 0, -step):
        allowed, real = _sight(trace, item, mask, max(0, stop - step), stop)
        found |= allowed[:, real, : mask.num_keys].any(axis=(0, 1))
        if np.array_equal(found, most):
            break
    return found
