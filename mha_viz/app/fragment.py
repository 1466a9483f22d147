"""The fragments of a page, in which memory that runs out is a sentence."""

from functools import wraps

import streamlit as st

from mha_viz.core.budget import give_back
from mha_viz.core.memory import free, ran_out, readable_size
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain


def fragment(**how):
    """``st.fragment`` of one page, whose function may run out of memory: then the page says so, and goes on with the rest.

    Streamlit knows a fragment by its function's name and its place. Those of two pages would be the same one to it, and a control of the
    page that was left would draw its fragment into the other.
    """

    def of_page(function):
        @wraps(function)
        def drawn(*args, **kwargs):
            told = in_memory(function)
            told.__qualname__ = f"{function.__qualname__} of {st.session_state.page}"
            return st.fragment(**how)(told)(*args, **kwargs)

        return drawn

    return of_page


def in_memory(function):
    """The same function; where memory runs out within it, the page says so in its place, with the size that would fit where one is
    known."""

    @wraps(function)
    def told(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Wrong as wrong:
            if not ran_out(wrong.__cause__):
                raise
            sized = wrong
        except (MemoryError, RuntimeError) as error:
            if not ran_out(error):
                raise
            sized = None
        give_back()
        if sized is None:
            say_ran_out()
        else:
            st.error(plain(str(sized)), icon=":material/memory:")

    return told


def say_ran_out():
    """That memory ran out, and which settings need less."""
    st.error(
        f"**Memory ran out** while this was computed; {readable_size(free())} are free now. A smaller seq_len, batch_size, num_heads or "
        "embed_dim needs less: maps grow with batch_size × num_heads × seq_len², weights with embed_dim². Others may be using memory "
        "for a moment: then try again.",
        icon=":material/memory:",
    )
