"""The Explore page as it is, or with one thing taken away, so that both can be served and compared. ``MHA_BENCH`` says what:

"unfrozen": the garbage collector walks over torch, plotly and all sessions after every change, as Streamlit has it by itself;
"chart": the picture is drawn by ``st.plotly_chart``; "bare": nothing but one live picture of the same kind, and a field for the seed;
"one figure": torch is imported, and one figure drawn by ``st.plotly_chart``.
"""

import gc
import os
import runpy
from pathlib import Path

import streamlit as st
from streamlit import config

PAGE = Path(__file__).parents[2] / "mha_viz" / "app" / "pages" / "explore.py"


def chart(figure, *, key, alt, **callbacks):
    """``live`` with Streamlit's own chart in its place."""
    from mha_viz.figures.serial import to_json

    st.session_state.drawn = figure
    import plotly.io

    st.plotly_chart(plotly.io.from_json(to_json(figure), skip_invalid=True), key=key, theme=None, alt=alt)


def bare():
    """One field and one picture in place."""
    from mha_viz.components import live, measured_width
    from mha_viz.figures.heads import describe, spec
    from mha_viz.settings import Settings, View
    from mha_viz.sources.synthetic import synthetic

    seed = st.number_input("seed", value=7, step=1, key="seed")
    trace, view = synthetic(Settings(seed=seed)), View()
    live(spec(trace, view, "light", measured_width("picture")), key="picture", alt=describe(trace, view))


def one_figure():
    import numpy as np
    import plotly.graph_objects as go
    import torch

    weights = torch.rand(20, 20, generator=torch.Generator().manual_seed(7)).numpy()
    st.plotly_chart(go.Figure(go.Heatmap(z=np.ascontiguousarray(weights))), theme=None)


st.set_page_config(layout="wide")
st.page_link = lambda *_, **__: None  # there is one page here, and no other to lead to
variant = os.environ.get("MHA_BENCH", "")
if variant == "unfrozen":
    gc.freeze = lambda: None
    config.set_option("runner.postScriptGC", True)
if variant == "chart":
    import mha_viz.components

    mha_viz.components.live = chart
if variant == "bare":
    from mha_viz.app.warm import warm_up

    warm_up()
    bare()
elif variant == "one figure":
    from mha_viz.app.warm import warm_up

    warm_up()
    one_figure()
else:
    runpy.run_path(str(PAGE), run_name="__main__")
