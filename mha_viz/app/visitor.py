"""Who looks at the pages: one visitor a connection. What only they needed goes with them, and their session once it cannot come back."""

import gc
import threading
from dataclasses import replace

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from mha_viz.core.budget import BUDGET, give_back


class Visitor:
    """``holds`` by name what is made of a Trace for one session: it goes with the connection, which session state outlives."""

    def __init__(self, session, state):
        self.session, self.state = session, state  # its id; what Streamlit knows of its widgets
        self.holds = {}  # name → a tuple or list

    def leave(self):
        """Let go of all that is held, and of the callbacks of all widgets: these still refer to Traces.

        A browser that comes back asks for the whole page first, which gives every widget its callback again.
        """
        for held in self.holds.values():
            for one in held:
                if hasattr(one, "forget"):
                    one.forget()
            if isinstance(held, list):  # others may have it too
                held.clear()
        self.holds.clear()
        widgets = self.state._state._new_widget_state.widget_metadata
        for name, widget in list(widgets.items()):
            widgets[name] = replace(widget, callback=None, callbacks=None, callback_args=None, callback_kwargs=None)


def gone(visitor):
    """Give back what only this visitor needed, and the rest of their session when they can no longer come back to it."""
    visitor.leave()
    BUDGET.leave(visitor)
    found = runtime.get_instance()._session_mgr.get_session_info(visitor.session) if runtime.exists() else None
    if found is None:
        BUDGET.close(visitor.session)
    else:
        kept = st.get_option(
            "server.disconnectedSessionTTL"
        )  # seconds for which a browser that lost its connection finds its session
        timer = threading.Timer(kept + 1, end, [found.session])
        timer.daemon = True
        timer.start()


def end(session):
    """End a session that nobody came back to, with the files that were uploaded in it. Streamlit would keep it until others leave."""
    manager = runtime.get_instance()._session_mgr
    if not manager.is_active_session(session.id):
        manager._session_storage._cache.expire()
        session.shutdown()
        BUDGET.close(session.id)
        gc.collect()
        give_back()


@st.cache_resource(show_spinner=False, scope="session", on_release=gone)
def visitor():
    """Who looks at the pages. What only they had asked for, and what they ``hold``, goes when they leave."""
    asked = get_script_run_ctx()
    return Visitor(asked.session_id, asked.session_state)
