"""Work that is done while somebody watches, who may stop it: what is measured by then stays. It ends with the session that began it."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.fragment import fragment
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
    _at_work: threading.Lock = field(default_factory=threading.Lock)

    def go_on(self):
        """Take in what comes within SLICE seconds, one event at least. Nothing is left where somebody stops it meanwhile."""
        until = time.monotonic() + SLICE
        with self._at_work:
            while (events := self.events) is not None:
                try:
                    self.results.add(next(events))
                except StopIteration:
                    return self._end()
                except Exception:
                    self._end()
                    raise
                if time.monotonic() > until:
                    return

    def stop(self):
        """End it, and the processes that it has; from any thread, once the event that is on its way has come."""
        events, self.events = self.events, None
        if events is not None:
            with self._at_work:
                events.close()
        self._end()

    def _end(self):
        """Let the next one begin."""
        self.events = None
        if _taken["by"] == id(self):
            _taken["by"] = None


def measuring(name):
    """The Measuring that this session calls ``name``; None where there is none."""
    return st.session_state.get(f"measuring_{name}")


def begin(name, results, events):
    """Let this session measure: ``results`` take in the ``events``, None where they are all there is."""
    end(name)
    begun = st.session_state[f"measuring_{name}"] = Measuring(results, events)
    if events is not None:
        of_session().append(begun)


def end(name):
    """Stop what this session calls ``name``, and forget it."""
    now = st.session_state.pop(f"measuring_{name}", None)
    if now is not None:
        now.stop()


def stop_all(begun):
    for one in begun:
        threading.Thread(target=one.stop).start()  # it may wait for a call to return, and the server must not


@st.cache_resource(scope="session", on_release=stop_all, show_spinner=False)
def of_session():
    """All that this session has begun; stopped when its browser is gone."""
    return []


@fragment(run_every=PACE)
def running(name, done="measured", draw=None):
    """How far it is, and the button that stops it. What ``draw()`` draws takes time from what is timed."""
    now = measuring(name)
    if now is None or now.events is None:
        st.rerun()  # of the page: what was measured is shown
    about = f"What is {done} by then stays."
    if not mine(now):
        st.info(
            "Somebody else is measuring or training on this server: this begins once they are done.",
            icon=":material/hourglass:",
        )
        now.pace = Pace()
    else:
        now.go_on()
        if now.events is None:
            st.rerun()
        share = now.results.share
        left = now.pace.left(share)
        st.progress(share, f"Nothing is {done} yet …" if left is None else f"{share:.0%} {done}, {in_words(left)}")
    st.button("Stop", key=f"stop_{name}", on_click=heard(stop), args=(name,), icon=":material/stop:", help=about)
    if draw is not None:
        draw()


def mine(now):
    """True where nobody else measures; then nobody else begins for a while."""
    if _taken["by"] not in (None, id(now)) and time.monotonic() < _taken["until"]:
        return False
    _taken.update(by=id(now), until=time.monotonic() + LEASE)
    return True


def stop(name):
    measuring(name).stop()
