"""The Streamlit entry: the list of pages and nothing else. ``streamlit run app.py``, or ``make run``."""

import os

import streamlit as st

from mha_viz.settings.environment import FILE

st.set_page_config(page_title="MHA Explorer", page_icon="mha_viz/app/icon.svg", layout="wide")
named = FILE in os.environ  # a file on the command line is what somebody wants to see
pages = [
    st.Page("mha_viz/app/pages/explore.py", title="Explore", default=not named),
    st.Page("mha_viz/app/pages/lessons.py", title="Start here"),
    st.Page("mha_viz/app/pages/models.py", title="Models", default=named),
    st.Page("mha_viz/app/pages/steps.py", title="Step by step"),
    st.Page("mha_viz/app/pages/decode.py", title="Decode"),
    st.Page("mha_viz/app/pages/pitfalls.py", title="Pitfalls"),
    st.Page("mha_viz/app/pages/validate.py", title="Validate"),
    st.Page("mha_viz/app/pages/profile.py", title="Profile"),
    st.Page("mha_viz/app/pages/about.py", title="About"),
]
st.navigation(pages, position="hidden").run()  # the pages draw their own links, which keep addresses
