"""The Streamlit entry: the list of pages and nothing else. ``streamlit run app.py``, or ``make run``."""

import streamlit as st

st.set_page_config(page_title="MHA Explorer", page_icon="mha_viz/app/icon.svg", layout="wide")
pages = [
    st.Page("mha_viz/app/pages/explore.py", title="Explore", default=True),
    st.Page("mha_viz/app/pages/lessons.py", title="Start here"),
    st.Page("mha_viz/app/pages/models.py", title="Models"),
    st.Page("mha_viz/app/pages/steps.py", title="Step by step"),
    st.Page("mha_viz/app/pages/decode.py", title="Decode"),
    st.Page("mha_viz/app/pages/pitfalls.py", title="Pitfalls"),
    st.Page("mha_viz/app/pages/validate.py", title="Validate"),
    st.Page("mha_viz/app/pages/profile.py", title="Profile"),
    st.Page("mha_viz/app/pages/about.py", title="About"),
]
st.navigation(pages, position="hidden").run()  # the pages draw their own links, which keep addresses
