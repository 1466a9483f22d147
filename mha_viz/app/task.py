"""Work in slices while somebody watches, with its progress, Stop and Go on. What is done stays; the work ends with its session."""

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.fragment import fragment
from mha_viz.settings.environment import CLASS
from mha_viz.studies.profiling import Pace, in_words

PACE, SLICE = 0.7, 0.6  # seconds: a slice of work every PACE, so that a button is heard in between
LEASE = 10.0  # seconds after which a Task that is alone is no longer waited for, if its person went away
_taken = {"by": None, "until": 0.0}  # the one Task of all sessions that is alone now: two would measure each other


class Done(list):
    """Every step that is done, of ``total`` in all."""

    add = list.append

    def __init__(self, total):
        super().__init__()
        self.total = total

    @property
    def share(self):
        return min(len(self) / self.total, 1.0)


@dataclass(eq=False)
class Task:
    """Work that is done step by step, as long as nobody stops it.

    ``results`` take in each of the ``steps`` by ``add`` and know the ``share`` that is done. ``steps`` is None once the work is over;
    it is ``complete`` if they came to their end. ``about`` is compared with what the person looks at. A step is looked at for ``every``
    seconds before the next one. Work that ``resumes`` waits after a stop; any other ends, and so do its processes. Work that is
    ``alone`` measures or trains: one such Task runs at a time.
    """

    results: object
    steps: Iterator | None
    about: object = None
    every: float = 0.0
    resumes: bool = False
    alone: bool = False
    stopped: bool = False
    complete: bool = False
    due: float = 0.0
    pace: Pace = field(default_factory=Pace)
    _at_work: threading.Lock = field(default_factory=threading.Lock)

    @property
    def going(self):
        return self.steps is not None and not self.stopped

    def run(self, seconds, enough=lambda: False):
        """Take in the steps that come within so many ``seconds``, one at least, until there are ``enough()``.

        Returns at once while the last step is looked at. An exception of a step ends the work and is raised.
        """
        until = time.monotonic() + seconds
        with self._at_work:
            while self.going and time.monotonic() >= self.due:
                try:
                    self.results.add(next(self.steps))
                except StopIteration:
                    self.complete = True
                    return self._over()
                except Exception:
                    self._over()
                    raise
                self.due = self.every and time.monotonic() + self.every
                if time.monotonic() > until or enough():
                    return

    def stop(self):
        """Stop after the step that is on its way; from any thread."""
        self.stopped = True
        if not self.resumes:
            self.end()

    def go_on(self):
        self.stopped = False

    def end(self):
        """Stop for good and close the steps, which ends their processes; from any thread."""
        self.stopped = True
        with self._at_work:
            if self.steps is not None:
                self.steps.close()
            self._over()

    def _over(self):
        self.steps = None
        if _taken["by"] == id(self):
            _taken["by"] = None


def task(name, about=None):
    """The Task that this session calls ``name``, None if there is none. One about something else is ended first, if ``about`` is given."""
    now = st.session_state.get(f"task_{name}")
    if now is None or about is None or now.about == about:
        return now
    return end(name)


def going(name):
    now = task(name)
    return now is not None and now.going


def begin(name, results, steps, **how):
    """Begin a Task with these fields, in place of the one of this ``name``, and return it; with ``steps`` None all results are there."""
    end(name)
    begun = st.session_state[f"task_{name}"] = Task(results, steps, **how)
    begun.due = begun.every and time.monotonic() + begun.every
    if steps is not None:
        of_session()[:] = [one for one in of_session() if one.steps is not None] + [begun]
    return begun


def end(name):
    """End the Task ``name`` of this session, if there is one, and forget it. Returns None: there is none now."""
    now = st.session_state.pop(f"task_{name}", None)
    if now is not None:
        now.end()


def end_all(begun):
    for one in begun:
        threading.Thread(target=one.end).start()  # it may wait for a call to return, and the server must not


@st.cache_resource(scope="session", on_release=end_all, show_spinner=False)
def of_session():
    """The Tasks of this session that may be at work; they end when its browser is gone."""
    return []


@fragment(run_every=PACE)
def running(name, words=None, draw=None):
    """Do a slice of the Task ``name`` and show its progress with a Stop button. Draws the page once the Task is stopped or over.

    ``words(results)`` is the text on the bar, the time left by default. What ``draw()`` draws takes time from what is timed.
    """
    if not going(name):
        st.rerun()
    now = task(name)
    if now.alone and not take_turn(now):
        st.info(
            "Somebody else is measuring or training on this server: this begins once they are done.",
            icon=":material/hourglass:",
        )
        now.pace = Pace()
        stop_or_go(name)
    else:
        bar = st.progress(*told(now, words))
        stop_or_go(name)  # there before the first slice is done: a step may take long
        now.run(SLICE)
        if not now.going:
            st.rerun()
        bar.progress(*told(now, words))
    if draw is not None:
        draw()


def told(now, words=None):
    """The share of a Task that is done, and the text on its bar: ``words(results)``, or the time left."""
    share = now.results.share
    left = now.pace.left(share)
    if share == 0 or (words is None and left is None):
        return share, "Nothing is done yet …"
    return share, words(now.results) if words else f"{share:.0%} done, {in_words(left)}"


def stop_or_go(name, label="Go on", **options):
    """The button that stops the Task ``name``, or lets it go on, under the ``label`` that says so."""
    now = task(name)
    if now.going:
        act, key, label, icon, about = now.stop, "stop", "Stop", "stop", "What is done by then stays."
    else:
        act, key, icon, about = now.go_on, "go_on", "play_arrow", None
    st.button(label, key=f"{key}_{name}", on_click=heard(act), icon=f":material/{icon}:", help=about, **options)


def take_turn(now):
    """Whether no other Task is alone now; others then wait for a while."""
    if _taken["by"] not in (None, id(now)) and time.monotonic() < _taken["until"]:
        return False
    _taken.update(by=id(now), until=time.monotonic() + LEASE)
    return True


def why_off():
    """Why this server neither measures nor trains; None if it does."""
    off = bool(os.environ.get(CLASS))
    return "Off while a class is served (run --class): it would take the processor from everybody." if off else None
