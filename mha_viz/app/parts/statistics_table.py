"""The statistics of every head of a model, as a table to sort; a row opens its head."""

import math

import streamlit as st

from mha_viz.app.drawing import WHOLE, draw, heard
from mha_viz.app.parts.toolbar import change
from mha_viz.export.markdown import plain


def statistics_table(given, view):
    """A folded table: a row per head of the Traces that are ``given()``, a column per statistic; computed while it is open."""
    folded = st.expander("Statistics of all heads", key="statistics", on_change="rerun")
    if not folded.open:
        return
    from mha_viz.analysis.statistics import STATISTICS
    from mha_viz.analysis.table import head_table

    traces = given()
    table = head_table(traces, view.item)
    columns = _places(traces, table.rows) | {"head": [row.head for row in table.rows]}
    for name in STATISTICS:
        values = [row.values[name] for row in table.rows]
        columns[name] = [None if math.isnan(value) else value for value in values]  # an empty cell: no meaning here
    config = {
        name: st.column_config.NumberColumn(one.label, help=one.meaning, format="percent" if one.unit == "%" else "%.1f")
        for name, one in STATISTICS.items()
    }

    def go_to(held):
        chosen = held["selection"]["rows"]
        if chosen:
            row = table.rows[chosen[0]]
            change(layer=row.trace, head=row.head, cell=None)
            draw(WHOLE)

    folded.caption("Of the batch item that is shown. Click a column's name to sort, a row's left edge to see the head.")
    folded.dataframe(
        columns,
        hide_index=True,
        column_config=config,
        key="statistics_chosen",
        on_select=heard(go_to, "statistics_chosen"),
        selection_mode="single-row",
        placeholder="n/a",
    )
    for note in (*table.notes, *reasons(traces, view)):
        folded.caption(plain(note))


def _places(traces, rows):
    """The columns that tell which layer a row is of, and of a run of several steps in which of them."""
    from mha_viz.analysis.layers import layer_places

    places = layer_places(traces)
    layer, step = ([places[row.trace][which] for row in rows] for which in (0, 1))
    return {"layer": layer} if all(one is None for one in step) else {"layer": layer, "step": step}


def reasons(traces, view):
    """Why a statistic has no meaning for a whole layer, each reason once."""
    from mha_viz.analysis.statistics import STATISTICS, why_not

    found = {}
    for trace in traces:
        for name in STATISTICS:
            reason = why_not(trace, view.item, name) if view.item < len(trace.weights) else None
            if reason:
                found.setdefault(f"{STATISTICS[name].label}: {reason}", None)
    return list(found)
