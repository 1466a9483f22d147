"""Measuring a Profile while somebody watches, who may stop it: what is measured by then stays."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import streamlit as st

PACE, SLICE = 0.7, 0.6  # a slice of so many seconds every PACE, so that a button is heard in between
LEASE = 10.0  # seconds after which somebody who measured and went away is no longer waited for
_taken = {"by": None, "until": 0.0}  # one measures at a time, whoever asks: two would measure each other


@dataclass(eq=False)
class Measuring:
    """The ``results`` so far, and the ``events`` that are left; None once it is over, or was stopped."""

    results: object
    events: Iterator | None
    began: float = field(default_factory=time.monotonic)


def measuring():
    """What this session measures or has measured; None where nothing is."""
    return st.session_state.get("measuring")


def begin(profile):
    from mha_viz.studies.profile_results import Results, used_by_others
    from mha_viz.studies.profiling import measure

    st.session_state.measuring = Measuring(Results(profile, used_by_others()), measure(profile))


@st.fragment(run_every=PACE)
def running():
    """How far it is, and the button that stops it. No picture: to draw one would take time from what is timed."""
    from mha_viz.studies.profiling import left_of

    now = measuring()
    if now is None or now.events is None:
        return
    if not mine(now):
        st.info("Somebody else is measuring on this server: this begins when they have finished.", icon=":material/hourglass:")
        now.began = time.monotonic()
        st.button("Stop", key="profile_stop", on_click=stop, icon=":material/stop:")
        return
    until = time.monotonic() + SLICE
    for event in now.events:
        now.results.add(event)
        if time.monotonic() > until:
            break
    else:
        stop()
        st.rerun()
    left = left_of(now.began, now.results.share)
    st.progress(now.results.share, "Starting …" if left is None else f"{now.results.share:.0%} measured, about {left:.0f} s left")
    st.button("Stop", key="profile_stop", on_click=stop, icon=":material/stop:", help="What is measured by then stays.")


def mine(now):
    """True where nobody else measures; then nobody else begins for a while."""
    if _taken["by"] not in (None, id(now)) and time.monotonic() < _taken["until"]:
        return False
    _taken.update(by=id(now), until=time.monotonic() + LEASE)
    return True


def stop():
    now = measuring()
    if now.events is not None:
        now.events.close()
    now.events = None
    if _taken["by"] == id(now):
        _taken["by"] = None
