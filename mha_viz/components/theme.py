"""The page from light to dark and back."""

from __future__ import annotations

import streamlit as st

# Streamlit 1.67 keeps what a person chose in its menu under this name, by the path that the page was loaded from, and reads it there
# when it loads: Python cannot set a theme, and nothing but loading takes one over.
_turn = st.components.v2.component(
    "mha_theme",
    js="""
    export default function ({ data }) {
      localStorage.setItem(`stActiveTheme-${location.pathname}-v2`, JSON.stringify(data.theme));
      location.reload();
    }
    """,
)


def turn() -> None:
    """Load the page again at its address, dark where it is light, and light where it is dark."""
    _turn(key="turn_theme", data={"theme": "Light" if st.context.theme.type == "dark" else "Dark"})
