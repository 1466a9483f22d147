"""Numbers as tables: CSV, a line per cell or per head, every number in full."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from mha_viz.analysis.compare import same_cells
from mha_viz.analysis.layers import layer_places
from mha_viz.analysis.statistics import STATISTICS
from mha_viz.analysis.table import head_table
from mha_viz.core.trace import Trace

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

FORMULA = re.compile(r"[=+@\t\r-]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def weights_table(trace: Trace, item: int, heads: Sequence[int | Literal["mean"]], pinned: Trace | None = None) -> str:
    """CSV of the weights of one batch ``item``, one line per cell of these ``heads``.

    "mean" among them is their average, called "average". Columns: batch item, head, query and key by number and name, weight, which is
    empty where no key is left, and nan, inf or -inf where no mask made it so. Of a block the number is that of its first token.

    Beside a ``pinned`` Trace of the same heads and cells, A, also A's weight and the difference, weight − A's.
    """
    a = pinned if pinned is not None and pinned.weights.shape == trace.weights.shape and same_cells(pinned, trace) else None
    text = io.StringIO()
    lines = csv.writer(text)
    what = trace.quantity.replace(" ", "_").replace("-", "_")
    names = ["item", "head", "query", "key", "query_token", "key_token", what, "masked", "padded_query"]
    lines.writerow(names + [f"{what}_a", "difference"] * (a is not None))
    sight = trace.tokens.sight
    counts = trace.weights.shape[2:]
    numbers = list(map(range, counts)) if sight is None else [sight.starts(side).tolist() for side in (0, 1)]
    for head in heads:
        weights, masked = _map(trace, item, head), trace.mask[item].all(axis=0) if head == "mean" else trace.mask[item, head]
        lost = _lost(trace, item, head)  # [L]
        before = None if a is None else (_map(a, item, head).tolist(), _lost(a, item, head))
        for query, (row, hidden, name) in enumerate(
            zip(weights.tolist(), masked.tolist(), trace.query_tokens[item], strict=True)
        ):
            padded = int(trace.query_padding[item][query])
            for key, (weight, is_hidden) in enumerate(zip(row, hidden, strict=True)):
                head_name = "average" if head == "mean" else head
                place = numbers[0][query], numbers[1][key], quoted(name), quoted(trace.key_tokens[item][key])
                line = [item, head_name, *place, written(weight, lost[query]), int(is_hidden), padded]
                if before is not None:
                    was, was_lost = before[0][query][key], before[1][query]
                    line += [written(was, was_lost), written(weight - was, lost[query] or was_lost)]
                lines.writerow(line)
    return text.getvalue()


def statistics_table(traces: Sequence[Trace], item: int, places: Sequence[tuple[int, int | None]] | None = None) -> str:
    """CSV of what each of STATISTICS says of the heads of all ``traces``, one line per head of one batch ``item``.

    Columns: layer, of a run of several steps the step, the layer's name, head, and the statistics, empty where one has no meaning.
    ``places`` are the (layer, step) of the traces, as ``layer_places`` gives them, where they are some of a run.
    """
    places = layer_places(traces) if places is None else places
    stepped = any(step is not None for _, step in places)
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(["layer", *["step"] * stepped, "name", "head", *STATISTICS])
    for row in head_table(traces, item).rows:
        layer, step = places[row.trace]
        values = (written(row.values[name]) for name in STATISTICS)
        lines.writerow([layer, *[step] * stepped, quoted(row.name), row.head, *values])
    return text.getvalue()


def results_table(rows: Iterable[Sequence[object]]) -> str:
    """CSV of what was measured, whose first row has the names."""
    text = io.StringIO()
    csv.writer(text).writerows([quoted(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue()


def _map(trace: Trace, item: int, head: int | Literal["mean"]) -> Float[np.ndarray, "L S"]:
    weights: Float[np.ndarray, "L S"] = trace.mean_weights[item] if head == "mean" else trace.weights[item, head]
    return weights


def _lost(trace: Trace, item: int, head: int | Literal["mean"]) -> Bool[np.ndarray, " L"]:
    """[L] bool: queries without a key left in this head, of the average in some head."""
    lost: Bool[np.ndarray, " L"] = np.any(trace.undefined[item], axis=0) if head == "mean" else trace.undefined[item, head]
    return lost


def quoted(text: str) -> str:
    """``text`` as a cell that a spreadsheet takes for a text too: what it would take for a formula, and is no number, begins with '."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def written(number: float, undefined: bool | np.bool_ = True) -> str:
    """A number in full; nothing for NaN that is ``undefined``: of a query without a key, or a statistic without a meaning."""
    return "" if undefined and number != number else repr(number)
