"""How much room the browser has, for a figure that is no live picture."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from mha_viz.components.live import measured_width

_measure = st.components.v2.component(
    "mha_width",
    html="<div class='mha-width'></div>",
    css=".mha-width { height: 0; }",
    js=Path(__file__).with_name("width.js").read_text("utf-8"),
)


def room(key: str) -> int:
    """px that there are from side to side where this is called, a multiple of 8; the script, or the fragment around the call, runs
    again when that changes. Before the browser has told it is what a window of 1440 px has."""
    width = measured_width(key)
    _measure(key=key, data={"width": width}, on_width_change=lambda: None)
    return width
