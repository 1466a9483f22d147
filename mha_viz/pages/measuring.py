"""Work that is done while somebody watches, who may stop it: what is measured by then stays."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import streamlit as st

from mha_viz.studies.profiling import Pace, in_words

PACE, SLICE = 0.7, 0.6  # a slice of so many seconds every PACE, so that a button is heard in between
LEASE = 10.0  # seconds after which somebody who measured and went away is no longer waited for
_taken = {"by": None, "until": 0.0}  # one measures at a time, whoever asks: two would measure each other


@dataclass(eq=False)
class Measuring:
    """The ``results`` so far, which take events in and know their share, and the ``events`` that are left; None once it is over, or was
    stopped. By its ``pace`` it is told how long that will take."""

    results: object
    events: Iterator | None
    pace: Pace = field(default_factory=Pace)


def measuring(name):
    """The Measuring that this session calls ``name``; None where there is none."""
    return st.session_state.get(f"measuring_{name}")


def begin(name, results, events):
    st.session_state[f"measuring_{name}"] = Measuring(results, events)


def end(name):
    del st.session_state[f"measuring_{name}"]


@st.fragment(run_every=PACE)
def running(name):
    """How far it is, and the button that stops it. No picture: to draw one would take time from what is timed."""
    now = measuring(name)
    if now is None or now.events is None:
        st.rerun()  # of the page: what was measured is shown
    if not mine(now):
        st.info("Somebody else is measuring on this server: this begins when they have finished.", icon=":material/hourglass:")
        now.pace = Pace()
        st.button("Stop", key=f"stop_{name}", on_click=stop, args=(name,), icon=":material/stop:")
        return
    until = time.monotonic() + SLICE
    for event in now.events:
        now.results.add(event)
        if time.monotonic() > until:
            break
    else:
        stop(name)
        st.rerun()
    share = now.results.share
    left = now.pace.left(share)
    st.progress(share, "Nothing is measured yet …" if left is None else f"{share:.0%} measured, {in_words(left)}")
    about = "What is measured by then stays."
    st.button("Stop", key=f"stop_{name}", on_click=stop, args=(name,), icon=":material/stop:", help=about)


def mine(now):
    """True where nobody else measures; then nobody else begins for a while."""
    if _taken["by"] not in (None, id(now)) and time.monotonic() < _taken["until"]:
        return False
    _taken.update(by=id(now), until=time.monotonic() + LEASE)
    return True


def stop(name):
    now = measuring(name)
    if now.events is not None:
        now.events.close()
    now.events = None
    if _taken["by"] == id(now):
        _taken["by"] = None
