"""A picture saved by the browser as PNG or SVG, for a page whose picture is no live one."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from mha_viz.components.live import Save
from mha_viz.figures.serial import to_json

_mount = st.components.v2.component(
    "mha_saver",
    html="<p class='mha-saver' role='status'></p>",
    css=".mha-saver { margin: 0; font-size: 0.875rem; } .mha-saver:empty { display: none; }",
    js=Path(__file__).with_name("saver.js").read_text("utf-8"),
)


def saver(save: Save, *, key: str) -> None:
    """Where this stands, what is saved is told. ``save`` is as ``live`` takes it, always with its "figure"; {"serial": 0} asks for nothing.

    A picture of Plotly's has to be on the page: it brings what draws this one.
    """
    _mount(key=key, data=to_json(save).encode())
