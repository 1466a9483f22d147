"""The Streamlit entry: the list of pages and nothing else. ``streamlit run app.py``, or ``make run``."""

import os

import streamlit as st

from mha_viz.settings.environment import FILE

st.set_page_config(page_title="MHA Explorer", page_icon="mha_viz/pages/icon.svg", layout="wide")
named = FILE in os.environ  # a file on the command line is what somebody wants to see
pages = [
    st.Page("mha_viz/pages/explore.py", title="Explore", default=not named),
    st.Page("mha_viz/pages/lessons.py", title="Start here"),
    st.Page("mha_viz/pages/models.py", title="Models", default=named),
    st.Page("mha_viz/pages/steps.py", title="Step by step"),
    st.Page("mha_viz/pages/decode.py", title="Decode"),
    st.Page("mha_viz/pages/pitfalls.py", title="Pitfalls"),
    st.Page("mha_viz/pages/validate.py", title="Validate"),
    st.Page("mha_viz/pages/profile.py", title="Profile"),
    st.Page("mha_viz/pages/about.py", title="About"),
]
st.navigation(pages, position="hidden").run()  # the pages draw their own links, which keep addresses
