"""The page from light to dark and back."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

# Python cannot set a theme: the browser has to.
_turn = st.components.v2.component("mha_theme", js=Path(__file__).with_name("theme.js").read_text("utf-8"))


def turn() -> None:
    """Load the page again at its address, dark where it is light, and light where it is dark."""
    _turn(key="turn_theme", data={"theme": "Light" if st.context.theme.type == "dark" else "Dark"})
