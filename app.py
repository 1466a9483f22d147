"""The Streamlit entry: it lists the pages and nothing else. ``streamlit run app.py``, or ``make run``."""

import streamlit as st

from mha_viz.app.page_list import FIRST, ICON, LISTED, file_of

st.set_page_config(page_title="MHA Explorer", page_icon=str(ICON), layout="wide")
pages = [st.Page(file_of(page.name), title=page.title, default=page.name == FIRST) for page in LISTED]
st.navigation(pages, position="hidden").run()  # the pages draw their own links, which keep addresses
