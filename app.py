"""The Streamlit entry: the list of pages and nothing else. ``streamlit run app.py``, or ``make run``."""

import streamlit as st

st.set_page_config(page_title="MHA Explorer", page_icon="mha_viz/pages/icon.svg", layout="wide")
st.navigation([st.Page("mha_viz/pages/explore.py", title="Explore", default=True)]).run()
