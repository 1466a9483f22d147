"""One number opened: from q · k to what the cell brings to the output, and the same cell and tokens in all heads."""

import streamlit as st

from mha_viz.app.parts.shapes import token
from mha_viz.app.parts.toolbar import show
from mha_viz.app.picture import picture
from mha_viz.app.session import looking
from mha_viz.core.decimals import prose


def number_panel(shown, look):
    """The switch that opens the number that is chosen in what is ``shown``, a Shown, and under it, while it is open, its whole derivation.

    ``look`` holds the ``theme`` and the ``width`` of the pictures.
    """
    opened = looking().display.switches.opened
    show("opened", st.toggle, "Open this number", opened, label_visibility="visible")
    if not opened:
        return
    from mha_viz.figures.token_in_heads import describe_token_in_heads, token_in_heads
    from mha_viz.views import CELL, SOFTMAX, TERMS

    trace, d = shown.opened
    if shown.sight is not None and not shown.sight.exact:
        one = f"query {trace.tokens.place(0, d.query):,} and key {trace.tokens.place(1, d.key):,}"
        st.caption(f"The chosen cell stands for a block of weights. Opened is one of them, {one}; closer, each can be chosen.")
    if TERMS.lack(shown) is None:
        picture(*TERMS.drawn(shown, **look), TERMS.name)
    st.html(f"<ol class='derivation'>{''.join(f'<li>{step}</li>' for step in steps(trace, d))}</ol>")
    sides = ("query", "key")
    if shown.sight is not None:
        sides, S = sides[:1], shown.trace.plain.shape[3]
        st.caption(f"The row has {S:,} keys, and the sums are of all of them; those around the chosen one are shown.")
    for one in (SOFTMAX, CELL):
        picture(*one.drawn(shown, **look), one.name)
    for side in sides:
        figure = token_in_heads(trace, d, side, shown.view, **look)
        picture(figure, describe_token_in_heads(trace, d, side), f"token_{side}")


def steps(trace, d):
    """The derivation in words and numbers, one step after another, as HTML. What the source does not know is left out."""
    asks, is_read = token(trace, 0, d.item, d.query), token(trace, 1, d.item, d.key)
    if d.dot is not None:
        products = terms(d) if len(d.q) <= 4 else f"{len(d.q)} products, whose sum is"
        yield f"<b>q · k</b>: the query vector of {asks} times the key vector of {is_read}: {products} <b>{prose(d.dot, '.6f')}</b>"
        yield f"<b>scale</b>: × {d.scale_told} gives the score <b>{prose(d.score, '.6f')}</b>"
    if d.hidden_by:
        yield f"<b>mask</b>: {' and '.join(d.hidden_by)} hides this key: the score becomes −∞"
    elif d.bias:
        yield f"<b>mask</b>: adds {prose(d.bias, 'g')}, giving {prose(d.score + d.bias, '.6f')}"
    elif d.score is not None:
        yield "<b>mask</b>: this key may be read, the score stays"
    if d.exponentials is not None and d.undefined:
        yield "<b>softmax</b>: no key is left in this row: it has no distribution, and the weight is undefined (NaN)"
    elif d.exponentials is not None and d.probability != d.probability:
        yield "<b>softmax</b>: a score of this row is not finite. No mask made that, and it makes the whole row NaN"
    elif d.exponentials is not None:
        yield (
            f"<b>softmax</b> over the row: exp(score − {_bracketed(prose(d.largest, '.4f'))}) = {prose(d.exponentials[d.key], '.6f')}, "
            f"of {prose(d.total, '.6f')} in all: <b>{prose(d.probability, '.6f')}</b>"
        )
    if d.off is not None:
        yield f"<b>head off</b> ({d.off}): whatever the softmax says, the weight is <b>{prose(d.weight, '.6f')}</b>"
    if d.dropped is not None:
        fate = "takes it: 0" if d.dropped else f"keeps it, × {prose(d.keep_scale, '.4f')} = <b>{prose(d.weight, '.6f')}</b>"
        yield f"<b>dropout</b> {fate}"
    if d.norm is not None and d.norm != d.norm:
        what = "undefined" if d.undefined else "NaN"
        yield f"<b>output</b>: {what} too, and with it every row that reads this query's output"
    elif d.norm is not None:
        share = "" if d.share != d.share else f", {prose(100 * d.share, '.1f')} % of what this head's row brings"
        length = prose(d.norm, ".6f")
        yield f"<b>output</b>: weight × v × Wᴼ of this head adds a vector of length <b>{length}</b> to the query's output{share}"


def terms(d):
    """The products of a short q and k, written out."""
    written = [[_bracketed(prose(number, "g")) for number in side.round(4)] for side in (d.q, d.k)]
    return " + ".join(f"{q} · {k}" for q, k in zip(*written, strict=True)) + " ="


def _bracketed(number):
    """A number after a sign of its own: (−0.5)."""
    return f"({number})" if number.startswith("−") else number
