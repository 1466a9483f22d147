"""A bare page with one live picture; its query parameters are the case: heads, queries, keys, causal."""

import numpy as np
import streamlit as st

from mha_viz.components import live, measured_width
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.figures.heads import describe, spec
from mha_viz.settings import View

st.set_page_config(layout="wide")
case = {name: int(value) for name, value in st.query_params.items() if value.isdigit()}
H, L, S = case.get("heads", 4), case.get("queries", 5), case.get("keys", case.get("queries", 5))
seed = st.number_input("seed", value=0)
rng = np.random.default_rng(seed)
query, key = (rng.normal(size=(1, length, 4 * H)).astype("float32") for length in (L, S))
trace = attend(
    Layer.random(4 * H, H, seed=1),
    Batch(
        query, key, causal=bool(case.get("causal")),
        attn_mask=np.arange(L)[:, None] == np.full(S, case.get("undefined", -1)),
        query_tokens=[[f"q{i}" for i in range(L)]], key_tokens=[[f"k<{i}>" for i in range(S)]],
    ),
)  # fmt: skip


@st.fragment
def picture():
    def choose(head, query, key):
        st.session_state["view"] = View(head=head, cell=(query, key))
        st.session_state["said"] = f"head {head} query {query} key {key}"

    def let_go():
        st.session_state["view"] = View()
        st.session_state["said"] = "let go"

    def ask(format):
        serial = st.session_state.get("save", {}).get("serial", 0) + 1
        st.session_state["save"] = {"format": format, "name": "maps of a test", "serial": serial}

    for format in ("png", "svg"):
        st.button(format, on_click=ask, args=(format,))
    view = st.session_state.get("view", View())
    live(
        spec(trace, view, st.query_params.get("theme", "light"), measured_width("maps")),
        key="maps", alt=describe(trace, view), on_choose=choose, on_reset=let_go, save=st.session_state.get("save"),
    )  # fmt: skip
    st.write("chosen:", st.session_state.get("said", "nothing"))


picture()
