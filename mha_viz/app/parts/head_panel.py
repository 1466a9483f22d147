"""One head more closely: heads of all layers that do as it does, and where it shows itself most."""

import streamlit as st

from mha_viz.app.drawing import WHOLE, draw, heard
from mha_viz.app.parts.changes import cell_in_words
from mha_viz.app.parts.toolbar import change
from mha_viz.export.markdown import plain

COUNT = 8


def head_panel(looked, choice):
    """What the chosen head has in common with others, and its strongest examples; computed while it is open."""
    from mha_viz.analysis.layers import layer_names

    traces, layer = looked.of.traces, looked.index
    name = layer_names(traces)[layer].capitalize()
    folded = st.expander(
        f"{name} head {choice.head}: heads like it, its strongest examples", key="head_panel", on_change="rerun"
    )
    if not folded.open:
        return
    with folded:
        if sum(trace.weights.shape[1] for trace in traces) > 1:
            alike(traces, layer, choice)
        examples(looked, choice.head)


def alike(traces, layer, choice):
    from mha_viz.analysis.layers import layer_names
    from mha_viz.analysis.similarity import heads_like

    found, names = heads_like(traces, layer, choice.head, choice.item, COUNT), layer_names(traces)
    st.markdown("**Heads like this one**, by Jensen–Shannon divergence of their rows in % of ln 2 (0 %: the same maps)")
    with st.container(horizontal=True, key="alike"):
        for number, one in enumerate(found.heads):
            st.button(
                f"{names[one.trace]} head {one.head} · {100 * one.distance:.1f} %",
                key=f"alike_{number}",
                on_click=heard(change_and_draw),
                kwargs={"layer": one.trace, "head": one.head},
            )
    for note in found.notes:
        st.caption(plain(note))


def examples(looked, head):
    """The cells in which this head is strongest over more inputs than the one that is shown."""
    from mha_viz.analysis.examples import strongest

    traces = looked.panel.inputs(looked)
    count = sum(len(trace.weights) for trace in traces)
    st.markdown(
        f"**Its strongest examples** over {count} sequence{'' if count == 1 else 's'}, one of a query, the first token left aside as a key"
    )
    with st.container(horizontal=True, key="examples"):
        for number, one in enumerate(strongest(traces, head, COUNT, sink=False)):
            words = cell_in_words(traces[one.trace], one.item, one)
            item = traces[one.trace].tokens.item_name(one.item).removeprefix("batch ")
            st.button(
                plain(f"{item} · {words} · {one.weight:.3f}"),
                key=f"example_{number}",
                on_click=heard(show_example),
                args=(looked, one),
            )


def show_example(looked, one):
    change(**looked.panel.go_to(looked, one), item=one.item, cell=(one.query, one.key))
    draw(WHOLE)


def change_and_draw(**values):
    change(**values)
    draw(WHOLE)
