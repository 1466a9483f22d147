"""Pictures in which nothing is chosen, and the theme of all pictures."""

import streamlit as st


def theme():
    return st.context.theme.type or "light"


def picture(figure, alt, key, **config):
    """Draw a Plotly ``figure`` as it is, with its text alternative; ``config`` is Plotly's, which shows no bar."""
    bare = {"displayModeBar": False} | config
    st.plotly_chart(figure, key=key, theme=None, alt=alt, width="content", config=bare)
