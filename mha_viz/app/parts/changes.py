"""A beside B: what can be compared, and the largest changes, each one click away."""

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.parts.messages import assigned
from mha_viz.app.parts.toolbar import change
from mha_viz.core.decimals import prose
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain
from mha_viz.settings.interventions import read_interventions, told

COUNT = 10


def changes(a, b, from_a, from_b, choice):
    """What differs between ``from_a`` and ``from_b``, by name what A and B were made from; the output's change, and the largest changes
    of weights over the heads shown."""
    from mha_viz.analysis.compare import common, largest_changes, output_change

    st.markdown(f"**A**: {in_words(from_a, from_b)}  \n**B**: {in_words(from_b, from_a)}")
    moved = output_change(a, b, choice.item)
    if moved is not None:
        by = f"each query's vector moves by {prose(moved[0], '.4g')} on average, where it is {prose(moved[1], '.4g')} long in A"
        st.markdown(f"**Output**: {by if moved[0] else 'unchanged, bit for bit'}.")
    shared = common(a, b)  # what it notes is said on the picture
    same_heads = a.weights.shape[1] == b.weights.shape[1]
    heads = [head for head in choice.order if head in shared.heads] if same_heads else []
    try:
        found = largest_changes(a, b, min(choice.item, shared.items - 1), heads or None, COUNT)
    except Wrong:
        return  # said in the notes: there are no cells to compare
    if not found:
        st.markdown("No weight of a real query changed.")
        return
    st.markdown(f"**Largest changes**, B − A, in {len(heads)} heads" if heads else "**Largest changes**, B − A, in the average")
    with st.container(horizontal=True, key="changes"):
        for number, found_at in enumerate(found):
            where = "average" if found_at.head is None else f"head {found_at.head}"
            words = f"{prose(found_at.change, '+.4f')} {where} · {cell_in_words(b, choice.item, found_at)}"
            about = f"A {found_at.a:.6f}, B {found_at.b:.6f}"
            cell = b.tokens.place(0, found_at.query), b.tokens.place(1, found_at.key)
            chosen = {"head": choice.head if found_at.head is None else found_at.head, "cell": cell}
            st.button(plain(words), key=f"change_{number}", help=about, on_click=heard(change), kwargs=chosen)


def in_words(settings, other):
    """What these have that the others have not."""
    mine = {name: value for name, value in settings.items() if value != other.get(name)}
    return plain(", ".join(said(name, value) for name, value in mine.items()) or "the same settings")


def said(name, value):
    """ "seed = 8"; of interventions, sentences."""
    if name in ("what if", "interventions"):
        return " ".join(told(read_interventions(value))).removesuffix(".") or "nothing changed in it"
    return assigned(name, value)


def cell_in_words(trace, item, cell):
    from mha_viz.figures.labels import name_of

    return " → ".join(name_of(trace.tokens, side, item, i) for side, i in enumerate((cell.query, cell.key)))
