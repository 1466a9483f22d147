"""A bare page with one live picture of lines; its query parameters are the case: heads, queries, arrangement, maps.

Each ``visit`` begins anew.
"""

import numpy as np
import streamlit as st

from mha_viz import Batch, Layer, View, attend
from mha_viz.components import live, measured_width
from mha_viz.figures import heads, lines
from mha_viz.figures.drawn_lines import describe_lines
from tests.components.visit import begin_anew

st.set_page_config(layout="wide")
visit = begin_anew()
H, L = (int(st.query_params.get(name, default)) for name, default in (("heads", 4), ("queries", 6)))
tokens = [[f"w<{i}>" for i in range(L)]]
vectors = np.random.default_rng(0).normal(size=(1, L, 4 * H)).astype("float32")
trace = attend(Layer.random(4 * H, H, seed=1), Batch(vectors, causal=True, query_tokens=tokens, key_tokens=tokens))
maps = st.checkbox("maps")


@st.fragment
def picture():
    def choose(choices):
        head, query, key, _ = choices[-1].values()
        st.session_state["view"] = View(head=head, cell=(query, key), arrangement=st.query_params.get("arrangement", "pair"))
        st.session_state["said"] = f"head {head} query {query} key {key}"

    def let_go():
        st.session_state["view"] = View(arrangement=st.query_params.get("arrangement", "pair"))
        st.session_state["said"] = "let go"

    view = st.session_state.get("view", View(arrangement=st.query_params.get("arrangement", "pair")))
    look = {"theme": st.query_params.get("theme", "light"), "width": measured_width(visit)}
    figure = heads.spec(trace, view, **look) if maps else lines.spec(trace, view, **look)
    live(figure, key=visit, alt=describe_lines(trace, view), on_choose=choose, on_reset=let_go)
    st.write("chosen:", st.session_state.get("said", "nothing"))


picture()
