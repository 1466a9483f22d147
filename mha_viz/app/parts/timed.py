"""How long decoding takes with and without the cache on this machine: measured while somebody watches, and may stop it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.fragment import fragment
from mha_viz.app.parts.decode_numbers import draw, section

PACE, SLICE = 0.3, 0.2  # a slice of so many seconds every PACE, so that a button is heard in between


@dataclass(eq=False)
class Measuring:
    """What is timed, the Timings ``done``, and those that are ``left`` to be made; None once it is over, or was stopped."""

    of: tuple
    left: Iterator | None
    done: list = field(default_factory=list)


def timings(found, look):
    """Seconds with and without the cache, where somebody asks for them; what was measured stays."""
    decoding = found.decoding
    of = decoding.layer, decoding.num_kv_heads, decoding.dtype
    section("Work, timed", "One sequence of random tokens through this layer, twice as long each time, for some seconds.")
    measuring = st.session_state.get("timing")
    if measuring is not None and measuring.of != of:
        measuring = st.session_state.timing = None
    if measuring is not None and measuring.left is not None:
        running()
        return
    st.button(
        "Time both on this machine" if measuring is None else "Time both again",
        key="time_both",
        on_click=heard(begin),
        args=(of,),
    )
    if measuring is not None and measuring.done:
        shown(measuring.done, look)


def begin(of):
    from mha_viz.studies.decoding import time_decoding

    layer, num_kv_heads, dtype = of
    st.session_state.timing = Measuring(of, time_decoding(layer, num_kv_heads=num_kv_heads, dtype=dtype))


@fragment(run_every=PACE)
def running():
    """How far it is, and the button that stops it."""
    from mha_viz.studies.decoding import LENGTHS

    measuring, until = st.session_state.timing, time.monotonic() + SLICE
    if measuring is None:
        return  # another layer is set by now
    for one in measuring.left or ():
        measuring.done.append(one)
        if time.monotonic() > until:
            break
    else:
        measuring.left = None
        st.rerun()
    last = measuring.done[-1]
    words = f"{last.length} tokens: {last.cached:.3f} s with the cache, {last.again:.3f} s without"
    st.progress(len(measuring.done) / len(LENGTHS), words)
    st.button("Stop", key="time_stop", on_click=heard(stop), icon=":material/stop:", help="What is measured by then stays.")


def stop():
    st.session_state.timing.left = None


def shown(done, look):
    last = done[-1]
    st.html(
        f"<p class='hides'>{last.length} tokens: <b>{last.cached:.3f} s</b> with the cache, <b>{last.again:.3f} s</b> without, "
        f"{last.again / last.cached:.1f} times as long. At few tokens a call costs more than its work.</p>"
    )
    lines = {"with the cache": [one.cached for one in done], "without": [one.again for one in done]}
    draw([one.length for one in done], lines, "tokens", "seconds", "timed", look, log=True, unit="{:.4f} s")
