"""The sidebar: every control that shapes the picture, grouped as a person thinks."""

import streamlit as st

from mha_viz.app.draft import change_case, change_input, control, prepare_mask, put
from mha_viz.app.drawing import CHOICES, SIZES, WHOLE, draw, give, heard
from mha_viz.app.fragment import fragment
from mha_viz.app.number_field import number_field
from mha_viz.app.parts.toolbar import show
from mha_viz.core.rules import Wrong, divisors, head_dim
from mha_viz.export.markdown import plain
from mha_viz.settings.rules import LONGEST


def controls():
    """Draw every control; the draft holds what they say."""
    with st.sidebar:
        every_control()


@fragment(key="controls")
def every_control():
    source()
    sizes()
    layer()
    tokens()
    masks()


def source():
    cases = {"random": "untrained layer, random weights", "tiny": "tiny case, worked by hand"}
    control(
        "case", st.selectbox, "weights from", options=list(cases), format_func=cases.get, take_all=change_case,
        label_visibility="collapsed", help="Where the weights come from. The tiny case (E 4, H 2, L 3) fits on a blackboard.",
    )  # fmt: skip


@fragment(key="sizes")
def sizes():
    """embed_dim, num_heads, and the rule that binds them."""
    left, right = st.columns(2)
    E = number("embed_dim", "embed_dim", "Numbers per token, E. A multiple of num_heads.", left, rerun=SIZES)
    with right:
        H = num_heads(E)
    st.html(f"<p class='head-dim' role='status'>{head_dim_in_words(E, H)}</p>")
    divisors_only = st.session_state.view.divisors
    about = "Offer no other num_heads."
    show("divisors", st.checkbox, "only heads that divide", divisors_only, "visible", rerun=SIZES, help=about)


def layer():
    either(
        "batch_first", "layout", {True: "batch first", False: "sequence first"}, "The order of axes: every shape, no number."
    )
    either("training", "mode", {False: "eval", True: "train"}, "In train mode dropout falls on the weights that are shown.")
    rare()


@fragment(key="rare")
def rare():
    """What is rarely set of a layer. Drawn while it is unfolded: six widgets that nobody sees would cost every visit."""
    folded = st.expander("dropout, bias, extra keys, widths", key="rare_open", on_change="rerun")
    if folded.open:
        with folded:
            extras()


def extras():
    left, right = st.columns(2)
    control(
        "dropout",
        number_field,
        "dropout",
        column=left,
        help="The share of weights dropped in train mode.",
    )
    with right:
        flag("bias", "bias", "The projections' and the output's bias.")
    flag("add_bias_kv", "add_bias_kv", "One learned key and value after the real ones.")
    flag("add_zero_attn", "add_zero_attn", "One key and value of zeros after the real ones: a query may attend to nothing.")
    left, right = st.columns(2)
    number(
        "kdim",
        "kdim",
        "Width of the keys where it is not embed_dim; they then are no queries.",
        left,
        placeholder="embed_dim",
    )
    number("vdim", "vdim", "Width of the values where it is not embed_dim.", right, placeholder="embed_dim")


def num_heads(E):
    """The number of heads, any or only one that divides ``E``."""
    about = "Attention heads, H. It has to divide embed_dim."
    if not st.session_state.view.divisors or not isinstance(E, int) or not 1 <= E <= LONGEST:
        wanted = st.session_state.wanted = number("num_heads", "num_heads", about, rerun=SIZES)
        return wanted
    fitting, wanted = divisors(E), st.session_state.setdefault("wanted", st.session_state.draft["num_heads"])
    used = wanted if wanted in fitting else max([d for d in fitting if d <= (wanted or 1)], default=1)
    st.session_state.draft["num_heads"] = used
    give("divisor", used)
    st.selectbox("num_heads", fitting, key="divisor", help=about, on_change=heard(take_divisor, "divisor"))
    if used != wanted:
        st.caption(f"{plain(wanted)} does not divide {E}: {used} is used")
    return used


def take_divisor(divisor):
    put("num_heads", divisor)
    draw(SIZES)


def head_dim_in_words(E, H):
    """The divisibility rule, beside the two numbers that it binds."""
    try:
        size = head_dim(E, H)
    except Wrong as wrong:
        return f"<b class='broken'>head_dim is not whole:</b> {wrong.rule.split(', but ')[-1]}"
    return f"head_dim = {E} / {H} = <b>{size}</b><small> Each head reads all {E}, no slice.</small>"


def tokens():
    own = sequence()
    left, right = st.columns(2)
    with left:
        flag(
            "positions",
            "positions",
            "Adds the sinusoidal positional encoding, so that equal tokens at different places differ.",
        )
    with right:
        cross = flag(
            "cross", "cross-att.", "Cross-attention: keys and values are a sequence of their own, the source.", rerun=WHOLE
        )
    if cross:
        if own:
            text("source_words", "The source: a line for each batch item.")
        left, right = st.columns(2)
        padding("source_padding", "padding of the source", right if not own else st)
        if not own:
            number("source_len", "source S", "Tokens in the source, S, padding included.", left)


def sequence():
    """What the queries are: random tokens or a person's own words. Returns whether they are words."""
    st.markdown("**Input**")
    inputs = {False: "random tokens", True: "your words"}
    own = either("own_words", "input", inputs, "Equal words get equal embeddings.", take_all=change_input)
    if own:
        text("words", "Words: each line is one batch item.", rerun=CHOICES)
        number("seed", "seed", "Draws the layer, then the dropout. A word's embedding depends on the word alone.")
    else:
        columns = st.columns(3)
        number("batch_size", "batch N", "Sequences in the batch, N.", columns[0], rerun=CHOICES)
        number("seq_len", "length L", "Tokens in each sequence, L, padding included.", columns[1])
        number("seed", "seed", "Draws the layer, then the tokens, then the dropout.", columns[2])
    return own


def masks():
    st.markdown("**Masks**")
    left, right = st.columns([2, 3])
    padding("padding", "padding", left)
    with right:
        either(
            "padding_side",
            "side",
            {"left": "left", "right": "right"},
            "Left, with causal, leaves queries without a key.",
            visible=True,
        )
    left, right = st.columns(2)
    with left:
        flag("causal", "causal", "A query sees itself and what came before.")
    with right:
        windowed = flag("windowed", "window", "A query sees the keys near itself only.", rerun=WHOLE)
    masked = flag("masked", "own mask", "An attn_mask of your own, L × S, typed or painted on the map.", take_all=prepare_mask)
    if windowed:
        number("window", "keys in the window", "Itself included, backwards; as far forwards too when not causal.")
    if masked:
        text(
            "attn_mask",
            "A line per query, an entry per key: 0 may attend, 1 may not. Numbers such as 0.5 or -inf are added instead.",
            disabled=st.session_state.get("paint", False),
        )
        about = "A click on a cell hides it, or shows it again. To type, take the tick away."
        st.checkbox("paint it on the map", key="paint", help=about)


# Kinds of control


def number(name, label, help, column=st, **options):
    """A whole number. One that is cleared is None, which breaks a rule and says so, and not silently 0."""
    return control(name, number_field, label, column=column, help=help, **options)


def padding(name, label, column):
    return control(
        name, column.text_input, label, help="Padded tokens of item 0, item 1, …, as in “3, 0, 0”. Nobody may attend to them."
    )


def flag(name, label, help, **options):
    return control(name, st.checkbox, label, help=help, **options)


def text(name, help, **options):
    return control(name, st.text_area, help, height=88, help=help, label_visibility="collapsed", **options)


def either(name, label, words, help, visible=False, **change):
    """One of a few values, each shown by its ``words``."""
    shown = "visible" if visible else "collapsed"
    return control(
        name, st.segmented_control, label, options=list(words), format_func=words.get, required=True, help=help,
        label_visibility=shown, width="stretch", **change,
    )  # fmt: skip
