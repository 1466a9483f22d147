"""A bare page with one live picture; its query parameters are the case: heads, queries, keys, causal, arrangement, scale,
compare, typed, undefined, theme ("system": that of the window), busy (ms that a run takes longer). Each ``visit`` begins anew.
"""

import time
from dataclasses import replace

import numpy as np
import streamlit as st

from mha_viz.components import live, measured_width
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.figures.compare import difference_spec
from mha_viz.figures.heads import describe, spec
from mha_viz.settings import View
from tests.components.visit import begin_anew

st.set_page_config(layout="wide")
visit = begin_anew()
TYPED = [
    "<s>",
    "the",
    "the",
    "7",
    "$5",
    "$x$",
    "<pad>",
    "a-very-long-word-that-goes-on-and-on-and-on",
    "注意力",
    "👩‍👩‍👧",
    "שלום",
    "two\nlines",
    "<b>bold</b>",
    "<img src=x onerror=alert(1)>",
    "&amp;",
    "",
    " ",
    "%{x}",
]
case = {name: int(value) for name, value in st.query_params.items() if value.isdigit()}
H, L, S = case.get("heads", 4), case.get("queries", 5), case.get("keys", case.get("queries", 5))
if "typed" in case:
    L = S = len(TYPED)
START = View(arrangement=st.query_params.get("arrangement", "pair"), scale=st.query_params.get("scale", "linear"))
seed = st.number_input("seed", value=0)
rng = np.random.default_rng(seed)
query, key = (rng.normal(size=(1, length, 4 * H)).astype("float32") for length in (L, S))
trace = attend(
    Layer.random(4 * H, H, seed=1),
    Batch(
        query,
        key,
        causal=bool(case.get("causal")),
        attn_mask=np.arange(L)[:, None] == np.full(S, case.get("undefined", -1)),
        query_tokens=[TYPED if "typed" in case else [f"q{i}" for i in range(L)]],
        key_tokens=[TYPED if "typed" in case else [f"k<{i}>" for i in range(S)]],
    ),
)
other = attend(trace.layer, Batch(query + 1, key))


@st.fragment
def picture():
    def choose(choices):
        head, query, key, _ = choices[-1].values()
        st.session_state["view"] = replace(START, head=head, cell=(query, key))
        st.session_state["said"] = f"head {head} query {query} key {key}"
        st.session_state.setdefault("pressed", []).extend((c["query"], c["key"]) for c in choices if c["pressed"])

    def let_go():
        st.session_state["view"] = START
        st.session_state["said"] = "let go"

    def ask(wanted):
        serial = st.session_state.get("save", {}).get("serial", 0) + 1
        st.session_state["save"] = wanted | {"name": "maps of a test", "serial": serial}

    wishes = {
        "png": {"format": "png", "scale": 2},
        "svg": {"format": "svg"},
        "other": {"format": "svg", "figure": spec(trace, View(arrangement="one"), "dark", 800), "size": (100, "mm")},
        "huge": {"format": "png", "size": (200, "in"), "scale": 4},
    }
    with st.container(horizontal=True):
        for name, wish in wishes.items():
            st.button(name, on_click=ask, args=(wish,))
    view = st.session_state.get("view", START)
    theme = st.query_params.get("theme", "light")
    look = st.context.theme.type if theme == "system" else theme, measured_width(visit)
    live(
        difference_spec(trace, other, view, *look) if "compare" in case else spec(trace, view, *look),
        key=visit,
        alt=describe(trace, view),
        on_choose=choose,
        on_reset=let_go,
        save=st.session_state.get("save"),
    )
    st.write("chosen:", st.session_state.get("said", "nothing"))
    st.write("pressed:", str(st.session_state.get("pressed", [])))
    time.sleep(case.get("busy", 0) / 1000)


picture()
