"""The statistics of every head of a model, as a table to sort; a row opens its head."""

import streamlit as st

from mha_viz.pages.draft import CHOICES, draw
from mha_viz.pages.toolbar import change


def statistics_table(traces, view):
    folded = st.expander("Statistics of all heads", key="statistics", on_change="rerun")
    if not folded.open:
        return
    from mha_viz.analysis.statistics import STATISTICS, statistic

    rows = {"layer": [], "head": []} | {name: [] for name in STATISTICS}
    for index, trace in enumerate(traces):
        if view.item >= len(trace.weights):
            continue
        H = trace.weights.shape[1]
        rows["layer"] += [index] * H
        rows["head"] += list(range(H))
        for name in STATISTICS:
            rows[name] += statistic(trace, view.item, name).tolist()
    columns = {
        name: st.column_config.NumberColumn(one.label, help=one.meaning, format="percent" if one.unit == "%" else "%.1f")
        for name, one in STATISTICS.items()
    }

    def go_to():
        chosen = st.session_state.statistics_chosen["selection"]["rows"]
        if chosen:
            change(layer=rows["layer"][chosen[0]], head=rows["head"][chosen[0]], cell=None)
            draw(CHOICES)

    folded.dataframe(
        rows, hide_index=True, column_config=columns, key="statistics_chosen", on_select=go_to, selection_mode="single-row"
    )
