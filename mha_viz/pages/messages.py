"""What a page says when something is wrong, with the nearest right values one click away."""

import streamlit as st

from mha_viz.pages.draft import change
from mha_viz.settings import spell


def say_wrong(wrong):
    """The rule that is broken, and a button for each change that would keep it."""
    with st.container(key="wrong"):
        st.error(f"**{wrong.argument} = {plain(wrong.value)}**: {plain(wrong.rule)}", icon=":material/error:")
        with st.container(horizontal=True):
            for number, choice in enumerate(wrong.nearest):
                label = ", ".join(f"{name} = {spell(value) or 'none'}" for name, value in choice.items())
                st.button(label, key=f"nearest_{number}", on_click=change, kwargs=choice)


def say_not_current(settings):
    """That the picture is the last good one, and of what; it steps back while it is."""
    kept = f"embed_dim {settings.embed_dim}, num_heads {settings.num_heads}"
    st.html(f"<p class='not-current'><b>Not current.</b> The picture shows the last settings that keep the rules: {kept}.</p>")
    st.html("<style>.st-key-stage { opacity: 0.45; }</style>")


def say_notes(notes):
    """Values of the address that fell back to their defaults, each by name."""
    if notes:
        lines = [f"{plain(note.argument)} = {plain(note.value)}: {plain(note.rule)}" for note in notes]
        st.warning("Left out of the address: " + "  \n".join(lines), icon=":material/link_off:")


def plain(value):
    """``value`` as text in which Markdown finds nothing to do."""
    text = "none" if value is None else str(value)
    for mark in "\\`*_{}[]<>()#+-.!|~$:":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ⏎ ")
