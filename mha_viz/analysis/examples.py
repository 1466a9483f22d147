"""Where a head shows itself most, over many inputs: the cells that are strongest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mha_viz.analysis.layers import Traces, traces_of
from mha_viz.analysis.norms import value_lengths, why_no_norms
from mha_viz.analysis.rows import Rows
from mha_viz.core.rules import Wrong, one_of, whole

Measure = Literal["weight", "contribution"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


@dataclass(frozen=True)
class Example:
    """A cell: of which ``trace``, by its place among the inputs, of which batch ``item``, ``query`` and ``key``; its ``weight``, and
    its ``contribution``, None where that is not known."""

    trace: int
    item: int
    query: int
    key: int
    weight: float
    contribution: float | None


def strongest(traces: Traces, head: int, count: int = 10, *, by: Measure = "weight", sink: bool = True) -> list[Example]:
    """The ``count`` strongest cells of one head over all batch items of ``traces``, Traces of one layer for one input each: a list of
    Example, the strongest first; of equal ones the first by input, item and query.

    ``by`` "weight": p, before dropout. ``by`` "contribution": p · ‖v · Wᴼ_h‖, the length of what the cell adds to the output (Kobayashi
    et al., Attention Is Not Only a Weight, 2020, equation 5), which tells a large weight on a value that says nothing from one that
    matters. A query gives one cell at most, its strongest, so that a few rows do not fill the list.

    What would be strong whatever the head does is left aside: queries that are padding or lack a distribution, rows that see one key
    only, and columns that are no position. Not so rows that see few keys, as the first ones of causal attention do: a weight of 0.5
    is no choice between two keys. Without ``sink`` the first token that any real query of the item may see is left aside as a key as
    well: many heads rest there (Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023).

    Raises Wrong for a head that a Trace does not have, and where contributions are asked for and a Trace lacks v or Wᴼ.
    """
    one_of("by", by, MEASURES)
    whole("count", count, 1)
    found = []  # (strength, Example)
    for i, trace in enumerate(trace.plain for trace in traces_of(traces)):
        N, H = trace.undefined.shape[:2]
        whole("head", head, 0, H - 1)
        reason = why_no_norms(trace)
        if reason and by == "contribution":
            raise Wrong("by", by, f"cannot be told of {trace.name} ({i}): {reason}.", [{"by": "weight"}])
        for item in range(N):
            rows = Rows.of(trace, item, slice(head, head + 1))
            p = rows.p[0, :, : rows.num_keys].astype(np.float64)  # [R, S without extra]
            added = None if reason else p * value_lengths(trace, item)[head, : rows.num_keys]  # [R, S without extra]
            counts = rows.seen[0, :, : rows.num_keys] & rows.choice[0][:, None]  # [R, S without extra]
            if not sink:
                counts[:, rows.reachable.argmax()] = False
            strength = p if by == "weight" or added is None else added
            strength = np.where(counts & np.isfinite(strength), strength, 0)  # [R, S without extra]
            key = strength.argmax(axis=1)  # [R]
            strength = strength[np.arange(len(key)), key]  # [R]
            for row in np.argsort(-strength, kind="stable")[:count].tolist():
                if strength[row] > 0:
                    cell = row, int(key[row])
                    example = Example(
                        i, item, int(rows.queries[row]), cell[1], float(p[cell]), None if added is None else float(added[cell])
                    )
                    found.append((float(strength[row]), example))
    found.sort(key=lambda pair: -pair[0])  # stable: equal ones stay in order
    return [example for _, example in found[:count]]
