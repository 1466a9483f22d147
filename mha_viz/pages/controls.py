"""The sidebar: every control that shapes the picture, grouped as a person thinks."""

import streamlit as st

from mha_viz.core.rules import Wrong, head_dim
from mha_viz.pages.draft import control


def controls():
    """Draw every control; the draft holds what they say."""
    with st.sidebar:
        st.markdown("#### MHA Explorer")
        layer()
        tokens()
        masks()


def layer():
    st.markdown("**Layer** · untrained, random weights")
    left, right = st.columns(2)
    with left:
        E = control(
            "embed_dim", st.number_input, "embed_dim", step=1, help="Numbers per token, E. Must be a multiple of num_heads."
        )
    with right:
        H = control("num_heads", st.number_input, "num_heads", step=1, help="Attention heads, H. Must divide embed_dim.")
    st.html(f"<p class='head-dim' role='status'>{head_dim_in_words(E, H)}</p>")
    left, right = st.columns(2)
    with left:
        control(
            "batch_first", st.segmented_control, "layout", options=[True, False], required=True, label_visibility="collapsed",
            format_func={True: "N, L, E", False: "L, N, E"}.get,
            help="batch_first: the order of axes. It changes every shape and no number.",
        )  # fmt: skip
    with right:
        control(
            "training", st.segmented_control, "mode", options=[False, True], required=True, label_visibility="collapsed",
            format_func={False: "eval", True: "train"}.get,
            help="train applies dropout to the weights that are shown, as PyTorch does; eval does not.",
        )  # fmt: skip
    with st.expander("bias, dropout, extra keys, widths"):
        left, right = st.columns(2)
        with left:
            control(
                "dropout",
                st.number_input,
                "dropout",
                step=0.05,
                format="%.2f",
                help="Probability that a weight is dropped, in train mode only.",
            )
        with right:
            control(
                "seed",
                st.number_input,
                "seed",
                step=1,
                help="Draws the layer, the random tokens and the dropout, in that order.",
            )


def head_dim_in_words(E, H):
    """The divisibility rule, beside the two numbers that it binds."""
    try:
        size = head_dim(E, H)
    except Wrong as wrong:
        return (
            f"<b class='broken'>head_dim is not whole</b> {wrong.rule.split(', but ')[-1]}"
            if ", but " in wrong.rule
            else str(wrong)
        )
    return f"head_dim = {E} / {H} = <b>{size}</b><br><small>Each head reads all {E} numbers, not a slice of {size}.</small>"


def tokens():
    st.markdown("**Input**")
    own = control(
        "own_words", st.segmented_control, "input", options=[False, True], required=True, label_visibility="collapsed",
        format_func={False: "random tokens", True: "your words"}.get,
        help="Random tokens as in the tutorial, or words of your own: equal words get equal embeddings.",
    )  # fmt: skip
    if own:
        control("words", st.text_area, "words", height=90, label_visibility="collapsed", help="Each line is one batch item.")
    else:
        left, right = st.columns(2)
        with left:
            control("batch_size", st.number_input, "batch size N", step=1, help="Sequences in the batch, N.")
        with right:
            control("seq_len", st.number_input, "length L", step=1, help="Tokens in each sequence, L, padding included.")
    control(
        "positions",
        st.checkbox,
        "positional encoding",
        help="Adds the sinusoidal encoding, so that equal tokens at different places differ.",
    )


def masks():
    st.markdown("**Masks**")
    left, right = st.columns([3, 2])
    with left:
        control(
            "padding",
            st.text_input,
            "padding per item",
            help="Padded tokens of item 0, item 1, …: “3, 0, 0”. Their keys are masked.",
        )
    with right:
        control(
            "padding_side", st.segmented_control, "side", options=["left", "right"], required=True,
            help="Where the padding stands. Left padding with a causal mask leaves rows without any key.",
        )  # fmt: skip
    control("causal", st.checkbox, "causal", help="A query sees itself and what came before it, nothing after.")
