"""A beside B: what can be compared, and the largest changes, each one click away."""

import streamlit as st

from mha_viz.core.rules import Wrong
from mha_viz.pages.draft import unspelled
from mha_viz.pages.messages import plain
from mha_viz.pages.shapes import token
from mha_viz.pages.toolbar import change
from mha_viz.settings import to_address

COUNT = 10


def changes(a, b, settings, view, choice):
    """What differs between the Settings of A and B, what cannot be compared, and the largest changes over the heads shown."""
    from mha_viz.analysis.compare import common, largest_changes

    st.markdown(f"**A**: {in_words(unspelled(view.pinned), settings)}  \n**B**: {in_words(settings, unspelled(view.pinned))}")
    shared = common(a, b)
    for note in shared.notes:
        st.info(plain(note), icon=":material/compare:")
    heads = [head for head in choice.order if head in shared.heads]
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
            words = f"{found_at.change:+.4f} head {found_at.head} · {cell_in_words(b, choice.item, found_at)}"
            about = f"A {found_at.a:.6f}, B {found_at.b:.6f}"
            where = {"head": found_at.head, "cell": (found_at.query, found_at.key)}
            st.button(plain(words), key=f"change_{number}", help=about, on_click=change, kwargs=where)


def in_words(settings, other):
    """What these Settings have that the others have not."""
    spelled = [to_address(**vars(s)) for s in (settings, other)]
    mine = {name: value for name, value in vars(settings).items() if value != getattr(other, name)}
    if not mine:
        return "the same settings" if spelled[0] else "the default settings"
    return plain(", ".join(f"{name} = {value}" for name, value in mine.items()))


def cell_in_words(trace, item, cell):
    asks = token("query", cell.query, trace.query_tokens[item])
    return f"{asks} → {token('key', cell.key, trace.key_tokens[item])}"
