"""How long decoding takes with and without the cache on this machine."""

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.parts.decode_numbers import draw, section
from mha_viz.app.task import Done, begin, going, running, task

TIMING = "timing"


def timings(found, look):
    """Seconds with and without the cache, measured when somebody asks for them."""
    decoding = found.decoding
    of = decoding.layer, decoding.num_kv_heads, decoding.dtype
    section("Work, timed", "One sequence of random tokens through this layer, twice as long each time, for some seconds.")
    timed = task(TIMING, of)
    if going(TIMING):
        running(TIMING, lambda done: in_words(done[-1]))
        return
    label = "Time both on this machine" if timed is None else "Time both again"
    st.button(label, key="time_both", on_click=heard(time_both), args=of)
    if timed is None:
        return
    if not timed.complete:
        last = f"at {timed.results[-1].length} tokens" if timed.results else "before anything was timed"
        st.caption(f"Stopped {last}.")
    if timed.results:
        shown(timed.results, look)


def time_both(layer, num_kv_heads, dtype):
    from mha_viz.studies.decoding import LENGTHS, time_decoding

    steps = time_decoding(layer, num_kv_heads=num_kv_heads, dtype=dtype)
    begin(TIMING, Done(len(LENGTHS)), steps, about=(layer, num_kv_heads, dtype), alone=True)


def in_words(last):
    return f"{last.length} tokens: {last.cached:.3f} s with the cache, {last.again:.3f} s without"


def shown(done, look):
    last = done[-1]
    st.html(
        f"<p class='hides'>{last.length} tokens: <b>{last.cached:.3f} s</b> with the cache, <b>{last.again:.3f} s</b> without, "
        f"{last.again / last.cached:.1f} times as long. At few tokens a call costs more than its work.</p>"
    )
    lines = {"with the cache": [one.cached for one in done], "without": [one.again for one in done]}
    draw([one.length for one in done], lines, "tokens", "seconds", "timed", look, log=True, unit="{:.4f} s")
