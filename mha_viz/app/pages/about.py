"""About: when multi-head attention is the thing to use, what to know before, where to read on, and what this app is not."""

from pathlib import Path

import streamlit as st

from mha_viz.app.session import enter


def page():
    enter("about")
    st.markdown(Path(__file__).with_suffix(".md").read_text(encoding="utf-8"))


page()
