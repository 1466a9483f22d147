"""The sidebar of a layer of Settings, random or worked by hand: every control that shapes it, grouped as a person thinks."""

import math
from dataclasses import replace

import streamlit as st

from mha_viz.app import drawing
from mha_viz.app.drawing import CHOICES, SIZES, STAGE, WHOLE, draw
from mha_viz.app.fields import field, switch
from mha_viz.app.fragment import fragment
from mha_viz.app.number_field import number_field
from mha_viz.app.panels.panel import Panel
from mha_viz.app.parts.layout_demo import layout_demo
from mha_viz.app.parts.shapes import mode, shape_strip
from mha_viz.app.parts.toolbar import show
from mha_viz.app.session import looking
from mha_viz.app.warm import synthetic_trace
from mha_viz.core.rules import Wrong, divisors, head_dim
from mha_viz.export.markdown import plain
from mha_viz.settings import fit_mask, read_mask, write_mask
from mha_viz.settings.rules import LONGEST
from mha_viz.sources.base import Source
from mha_viz.sources.synthetic import check_size

TIMES = 4  # what is advised is changed so often for want of room: weights, projections and maps have a size each


class RandomPanel(Panel):
    kinds = ("random", "tiny")

    def sidebar(self):
        every_control()

    def layer_alone(self):
        """The controls of the layer and its tokens, without masks."""
        layer_controls()

    def open(self, settings):
        trace = synthetic_trace(replace(settings, batch_first=True))  # the layout changes no number
        return Source(self.kind.called(settings), (trace,), settings)

    def with_room(self, wrong):
        """``wrong``, and what it advises has room as well: 100,000 is a length that may be named, and may be more than memory holds."""
        found = [fitting for change in wrong.nearest if (fitting := _fitting(change))]
        nearest = [change for i, change in enumerate(found) if change not in found[:i]]
        return Wrong(wrong.argument, wrong.value, wrong.rule, nearest)

    def is_long(self):
        """Told by its size, before it is made."""
        form = looking().form
        try:
            return check_size(form.settings())
        except Wrong:
            return check_size(form.good)

    def told(self, looked):
        return mode(looked.settings)

    def above(self, looked):
        """The shapes on the way, and the button that tries the wrong layout."""
        settings = looked.settings
        shapes, demo = st.columns([5, 1], vertical_alignment="center")
        swapped = st.session_state.get("layout_shown", settings.batch_first) != settings.batch_first
        st.session_state.layout_shown = settings.batch_first
        shapes.html(shape_strip(looked.trace, settings, swapped) + mode(settings))
        with demo:
            layout_demo(looked.trace)

    def below(self, looked):
        """Nothing: all of it stands above."""

    def beside_wrong(self, wrong):
        if wrong.argument in ("embed_dim", "num_heads"):
            show("verbatim", st.toggle, "PyTorch's own error", looking().display.switches.verbatim, "visible", rerun=STAGE)

    def below_wrong(self, wrong):
        """What PyTorch says to embed_dim and num_heads as they are set."""
        from mha_viz.analysis.layout import pytorch_error

        if wrong.argument in ("embed_dim", "num_heads") and looking().display.switches.verbatim:
            E, H = (looking().form.value(name) for name in ("embed_dim", "num_heads"))
            said = pytorch_error(E, H) or "PyTorch says nothing."
            st.code(f">>> nn.MultiheadAttention(embed_dim={E}, num_heads={H})\n{said}", language=None, wrap_lines=True)

    def pressed(self, cells):
        """While painting, a cell that is pressed is masked as well."""
        if not (cells and looking().form.counts("attn_mask") and st.session_state.get("paint")):
            return False
        for query, key in cells:
            paint(looking().form, query, key)
        return True  # the mask's text stands in the sidebar


def _fitting(change):
    """``change``, or what is advised in its place where there is no room for it, of its own fields first; None where nothing has."""
    for _ in range(TIMES):
        try:
            check_size(looking().form.settings(**change))
            return change
        except Wrong as wrong:
            if not wrong.nearest:
                return None
            change = change | min(wrong.nearest, key=lambda other: not other.keys() <= change.keys())
    return None


# What a form of Settings becomes


def change_input(form, own):
    """Between random tokens and one's own words: each has a padding of its own, words at first none."""
    state = st.session_state
    first = "" if own else form.typed("padding", form.defaults["padding"])
    state.left_padding, padding = form.raw["padding"], state.get("left_padding", first)
    form.put("padding", padding)
    cross = is_cross(form)
    form.switch(own, "words")
    change_cross(form, cross)


def is_cross(form):
    """Whether keys and values are a sequence of their own by a switch."""
    return form.counts("source_len") or form.counts("source_words")


def change_cross(form, on):
    """Let keys and values be a sequence of their own, of words where the queries are words; or put it aside, its padding too."""
    own = form.counts("words")
    form.switch(on and own, "source_words")
    form.switch(on and not own, "source_len")
    form.switch(on, "source_padding")


def prepare_mask(form, masked):
    """Let a mask of one's own begin at the present size, with what it hid before, at first nothing."""
    form.switch(masked, "attn_mask")
    try:
        now = form.settings(attn_mask=None)
        form.put("attn_mask", lines(fit_mask(read_mask(form.raw["attn_mask"]), now.L, now.S)))
    except Wrong:
        pass  # something else is wrong and says so, or the mask is, which is there to be mended
    form.switch(masked, "attn_mask")


def paint(form, query, key):
    """Hide a cell of the map by one's own mask, or show it again. A mask that cannot be read says so itself and is left alone."""
    try:
        mask = read_mask(form.raw["attn_mask"])
    except Wrong:
        return
    if query < mask.shape[0] and key < mask.shape[1]:
        shown, hiding = (False, True) if mask.dtype == bool else (0, -math.inf)
        mask[query, key] = shown if mask[query, key] == hiding else hiding
        form.put("attn_mask", lines(mask))


def lines(mask):
    """``mask`` as text for a person to edit: a line per query."""
    return write_mask(mask).replace("/", "\n")


# The sidebar


@fragment(key="controls")
def every_control():
    sizes()
    layer()
    tokens()
    masks()


@fragment(key="controls")
def layer_controls():
    sizes()
    sequence()
    st.caption(
        "Experiments run on this layer and the first 8 tokens of its first 3 items; a few bring numbers of their own, and all their "
        "own masks."
    )


@fragment(key="sizes")
def sizes():
    """embed_dim, num_heads, and the rule that binds them."""
    left, right = st.columns(2)
    number("embed_dim", "embed_dim", "Numbers per token, E. A multiple of num_heads.", left, rerun=SIZES)
    E = looking().form.value("embed_dim")
    with right:
        H = num_heads(E)
    st.html(f"<p class='head-dim' role='status'>{head_dim_in_words(E, H)}</p>")
    about = "Offer no other num_heads."
    show(
        "divisors",
        st.checkbox,
        "only heads that divide",
        looking().display.switches.divisors,
        "visible",
        rerun=SIZES,
        help=about,
    )


def num_heads(E):
    """The number of heads, any or only one that divides ``E``. What was wanted comes back where it divides again."""
    form, about = looking().form, "Attention heads, H. It has to divide embed_dim."
    if not looking().display.switches.divisors or not isinstance(E, int) or not 1 <= E <= LONGEST:
        number("num_heads", "num_heads", about, rerun=SIZES)
        return form.value("num_heads")
    now = form.value("num_heads")
    wanted, used = st.session_state.get("wanted", (now, now))
    wanted = wanted if now == used else now  # somebody else has set another meanwhile
    fitting = divisors(E)
    used = wanted if wanted in fitting else max([d for d in fitting if isinstance(wanted, int) and d <= wanted], default=1)
    st.session_state.wanted = wanted, used
    form.put("num_heads", used)
    drawing.field(st.selectbox, "num_heads", "divisor", used, take_divisor, options=fitting, help=about)
    if used != wanted:
        st.caption(f"{plain(wanted)} does not divide {E}: {used} is used")
    return used


def take_divisor(divisor):
    looking().form.put("num_heads", divisor)
    draw(SIZES)


def head_dim_in_words(E, H):
    """The divisibility rule, beside the two numbers that it binds."""
    try:
        size = head_dim(E, H)
    except Wrong as wrong:
        return f"<b class='broken'>head_dim is not whole:</b> {wrong.rule.split(', but ')[-1]}"
    return f"head_dim = {E} / {H} = <b>{size}</b><small> Each head reads all {E}, no slice.</small>"


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
    number("dropout", "dropout", "The share of weights dropped in train mode.", left)
    with right:
        flag("bias", "bias", "The projections' and the output's bias.")
    flag("add_bias_kv", "add_bias_kv", "One learned key and value after the real ones.")
    flag("add_zero_attn", "add_zero_attn", "One key and value of zeros after the real ones: a query may attend to nothing.")
    left, right = st.columns(2)
    about = "Width of the keys where it is not embed_dim; they then are no queries."
    number("kdim", "kdim", about, left, placeholder="embed_dim")
    number("vdim", "vdim", "Width of the values where it is not embed_dim.", right, placeholder="embed_dim")


def tokens():
    own, form = sequence(), looking().form
    left, right = st.columns(2)
    with left:
        about = "Adds the sinusoidal positional encoding, so that equal tokens at different places differ."
        flag("positions", "positions", about)
    with right:
        about = "Cross-attention: keys and values are a sequence of their own, the source."
        cross = switch("cross", is_cross(form), "cross-att.", lambda on: change_cross(looking().form, on), about)
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
    form = looking().form
    own = form.counts("words")
    drawing.field(
        st.segmented_control,
        "input",
        "own_words",
        own,
        take_input,
        options=[False, True],
        required=True,
        width="stretch",
        format_func={False: "random tokens", True: "your words"}.get,
        label_visibility="collapsed",
        help="Equal words get equal embeddings.",
    )
    if own:
        form.forget_wrong("batch_size", "seq_len")
        text("words", "Words: each line is one batch item.", rerun=CHOICES)
        number("seed", "seed", "Draws the layer, then the dropout. A word's embedding depends on the word alone.")
    else:
        columns = st.columns(3)
        number("batch_size", "batch N", "Sequences in the batch, N.", columns[0], rerun=CHOICES)
        number("seq_len", "length L", "Tokens in each sequence, L, padding included.", columns[1])
        number("seed", "seed", "Draws the layer, then the tokens, then the dropout.", columns[2])
    return own


def take_input(own):
    change_input(looking().form, own)
    draw(WHOLE)


def masks():
    st.markdown("**Masks**")
    form = looking().form
    left, right = st.columns([2, 3])
    padding("padding", "padding", left)
    with right:
        sides = {"left": "left", "right": "right"}
        either("padding_side", "side", sides, "Left, with causal, leaves queries without a key.", visible=True)
    left, right = st.columns(2)
    with left:
        flag("causal", "causal", "A query sees itself and what came before.")
    with right:
        about = "A query sees the keys near itself only."
        windowed = switch("windowed", form.counts("window"), "window", lambda on: looking().form.switch(on, "window"), about)
    about = "An attn_mask of your own, L × S, typed or painted on the map."
    masked = switch("masked", form.counts("attn_mask"), "own mask", lambda on: prepare_mask(looking().form, on), about)
    if windowed:
        number("window", "keys in the window", "Itself included, backwards; as far forwards too when not causal.")
    if masked:
        about = "A line per query, an entry per key: 0 may attend, 1 may not. Numbers such as 0.5 or -inf are added instead."
        text("attn_mask", about, disabled=st.session_state.get("paint", False), take=take_mask)
        about = "A click on a cell hides it, or shows it again. To type, take the tick away."
        st.checkbox("paint it on the map", key="paint", help=about)


def take_mask(typed):
    if not st.session_state.get("paint"):  # or it is the text from before the last cells were painted
        looking().form.put("attn_mask", typed)


# Kinds of control


def number(name, label, help, column=st, **options):
    """A number. One that is cleared is None, which breaks a rule and says so, and not silently 0."""
    return field(name, number_field, label, column=column, help=help, **options)


def padding(name, label, column):
    about = "Padded tokens of item 0, item 1, …, as in “3, 0, 0”. Nobody may attend to them."
    return field(name, column.text_input, label, help=about)


def flag(name, label, help, **options):
    return field(name, st.checkbox, label, help=help, **options)


def text(name, help, **options):
    return field(name, st.text_area, help, height=88, help=help, label_visibility="collapsed", **options)


def either(name, label, words, help, visible=False, **change):
    """One of a few values, each shown by its ``words``."""
    shown = "visible" if visible else "collapsed"
    return field(
        name,
        st.segmented_control,
        label,
        options=list(words),
        format_func=words.get,
        required=True,
        help=help,
        label_visibility=shown,
        width="stretch",
        **change,
    )
