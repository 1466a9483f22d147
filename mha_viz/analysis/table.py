"""Every head of every layer in one table: what it does, by each statistic."""

from __future__ import annotations

from dataclasses import dataclass

from mha_viz.analysis.layers import Traces, traces_of
from mha_viz.analysis.statistics import STATISTICS, statistic
from mha_viz.core.rules import whole


@dataclass(frozen=True)
class HeadRow:
    """One head: its ``trace`` by its place among those that were given, the ``name`` of that, the ``head``, and its ``values``, what
    each of STATISTICS says of it by name, NaN where it has no meaning (``why_not`` says why)."""

    trace: int
    name: str
    head: int
    values: dict[str, float]


@dataclass(frozen=True)
class HeadTable:
    """``rows``, one HeadRow per head, by Trace and head; ``notes``, a sentence for each Trace that was passed over."""

    rows: tuple[HeadRow, ...]
    notes: tuple[str, ...]


def head_table(traces: Traces, item: int) -> HeadTable:
    """The HeadTable of batch item ``item`` in a Recording, or in any sequence of Traces.

    Traces without such an item are passed over and noted. Each statistic is computed once for each Trace, whoever asks for it.
    """
    whole("item", item, 0)
    rows, notes, traces = [], [], traces_of(traces)
    named = next((trace.tokens.item_name(item) for trace in traces if item < len(trace.undefined)), f"batch item {item}")
    for i, trace in enumerate(traces):
        N, H = trace.undefined.shape[:2]
        if item >= N:
            first, last = ("item 0", N - 1) if trace.tokens.parts is None else map(trace.tokens.item_name, (0, N - 1))
            notes.append(
                f"{trace.name} ({i}) has no {named}: {f'{first} alone' if N == 1 else f'its {N} are {first} to {last}'}."
            )
            continue
        values = {name: statistic(trace, item, name).tolist() for name in STATISTICS}  # [H] each
        rows += [HeadRow(i, trace.name, head, {name: found[head] for name, found in values.items()}) for head in range(H)]
    return HeadTable(tuple(rows), tuple(notes))
