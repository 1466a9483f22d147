"""The Streamlit entry: it lists the pages and nothing else. ``streamlit run app.py``, or ``make run``."""

import streamlit as st

from mha_viz.app.page_list import FIRST, LISTED

st.set_page_config(page_title="MHA Explorer", page_icon="mha_viz/app/icon.svg", layout="wide")
pages = [st.Page(f"mha_viz/app/pages/{page.name}.py", title=page.title, default=page.name == FIRST) for page in LISTED]
st.navigation(pages, position="hidden").run()  # the pages draw their own links, which keep addresses
