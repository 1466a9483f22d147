"""What a View leaves open, decided in one place for every picture and every number beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.analysis.difference import real_queries
from mha_viz.analysis.parts import in_parts
from mha_viz.analysis.statistics import is_known, statistic
from mha_viz.settings.view import UNSORTED

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.trace import Trace
    from mha_viz.settings.view import View


Cell: TypeAlias = tuple[int | None, int | None]


@dataclass(frozen=True, eq=False)
class Choice:
    """What is looked at: one batch ``item``, the shown heads in their ``order``, all heads' ``differences`` [H] from the average
    (0 to 1, NaN where there is no real query; None where they were not read yet), one ``head``, and one cell, at row ``query`` and
    column ``key``.

    ``statistic`` names the one of STATISTICS that the heads are ordered by, "difference" where they stand by their number, and
    ``values`` [H] are what it says of each head, NaN where it has no meaning; ``known`` is False where it was not read yet.
    """

    item: int
    order: tuple[int, ...]
    differences: Float[np.ndarray, " H"] | None
    head: int
    query: int
    key: int
    statistic: str
    values: Float[np.ndarray, " H"]
    known: bool


def choose(trace: Trace, view: View) -> Choice:
    """The Choice that ``view`` makes of ``trace``.

    Heads stand by their number, as the View lists them, or by a statistic, the largest first and those without a value last.
    What the Trace does not have gives way, since settings change under a view and it stays usable: a batch item to the first,
    a head to the first of those shown, a cell to the real one where the chosen head and the average differ most; of a chosen
    token, to the one in its row or column. ``query`` and ``key`` are places in its maps: of what is in sight of a longer one,
    the cell or block of the View's, or the largest weight of the middle row, since its average comes last.
    """
    N, H, _, _ = trace.probabilities.shape
    item = view.item if view.item < N else 0
    values = statistic(trace, item, view.statistic)
    shown = [head for head in view.heads or range(H) if head < H] or list(range(H))
    if view.order != "listed":
        shown.sort()
    if view.order not in UNSORTED:
        shown.sort(key=lambda head: -values[head] if np.isfinite(values[head]) else np.inf)
    head = view.head if view.head in shown else shown[0]
    query, key = cell_of(trace, view)
    if query is None or key is None:
        find = _most_different_cell if trace.tokens.sight is None else _striking_cell
        query, key = find(trace, item, head, query, key)
    known = is_known(trace, item, view.statistic)
    differences = statistic(trace, item, "difference") if is_known(trace, item, "difference") else None
    return Choice(item, tuple(shown), differences, head, query, key, view.statistic, values, known)


def cell_of(trace: Trace, view: View) -> Cell:
    """Where in its maps the cell is that a View has chosen, (row, column): one None where a token is chosen, both where nothing is."""
    query, key = view.cell or (None, None)
    sight, (L, S) = trace.tokens.sight, trace.probabilities.shape[2:]
    if sight is not None:
        row, column = (None if place is None else sight.block(side, place) for side, place in enumerate((query, key)))
        beyond = (query is not None and row is None) or (key is not None and column is None)
        return (None, None) if beyond else (row, column)
    return (None, None) if (query or 0) >= L or (key or 0) >= S else (query, key)


def place_of(trace: Trace, view: View, choice: Choice) -> tuple[int, int]:
    """Where in the whole sequence the cell of a Choice is, (query, key): of a block the one that the View names, else its middle."""
    sight, (query, key) = trace.tokens.sight, view.cell or (None, None)

    def place(side: int, block: int, named: int | None) -> int:
        if sight is not None and named is not None and sight.block(side, named) == block:
            return named
        return trace.tokens.place(side, block)

    return place(0, choice.query, query), place(1, choice.key, key)


def _striking_cell(trace: Trace, item: int, head: int, query: int | None, key: int | None) -> tuple[int, int]:
    """(query, key) of the largest weight in the middle row, where causal rows see some keys, not one; or in the given row or column."""
    weights = trace.probabilities[item, head]  # [L, S]
    if key is not None:
        return int(np.nan_to_num(weights[:, key], nan=-1).argmax()), key
    row = len(weights) // 2 if query is None else query
    return row, int(np.nan_to_num(weights[row], nan=-1).argmax())


def _most_different_cell(trace: Trace, item: int, head: int, query: int | None, key: int | None) -> tuple[int, int]:
    """(query, key) of the largest |head − average| in real rows, or in the given row or column; of the largest weight where they
    are equal; the first without real rows."""
    queries = np.flatnonzero(real_queries(trace, item)) if query is None else np.array([query])  # [R]
    if len(queries) == 0:
        return 0, key or 0
    keys = np.arange(trace.probabilities.shape[3]) if key is None else np.array([key])  # [K]
    found, most = {}, {"gap": -1.0, "weight": -1.0}
    for some in in_parts(queries, trace.probabilities.shape[1] * len(keys)):
        rows = trace.probabilities[item][:, some]  # [H, some of R, S]
        rows = rows if key is None else rows[:, :, keys]  # [H, some of R, K]
        for name, cells in (("gap", np.abs(rows[head] - rows.mean(axis=0))), ("weight", rows[head])):  # [some of R, K]
            row, column = np.unravel_index(cells.argmax(), cells.shape)
            if cells[row, column] > most[name] or np.isnan(cells[row, column]) > np.isnan(
                most[name]
            ):  # of NaN the first, as argmax has it
                most[name], found[name] = cells[row, column], (int(some[row]), int(keys[column]))
    return found["gap" if most["gap"] != 0 else "weight"]
