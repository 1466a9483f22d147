"""Links from page to page, in the browser: what was typed just before one is clicked is sent first."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_mount = st.components.v2.component("mha_links", js=Path(__file__).with_name("links.js").read_text("utf-8"))


def hold_links() -> None:
    """Let every link of the page wait for what was typed before it; once a page."""
    _mount(key="hold_links")
