"""What a browser asks for in quick succession: a link that was clicked leads to its page, with what was typed just before.

Streamlit keeps one request waiting while a script runs, and a later one takes its place. A browser that has clicked a link still speaks for
the page that it shows, until it hears of the next one: a field that loses its focus, a picture that tells its width. Such a word would
lead back to the page that was left, and a link would drop the value that a field has just sent.
"""

from functools import cache, wraps
from urllib.parse import urlsplit

from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType


@cache
def keep_in_order():
    """Let every session of this process hear its requests in the order in which they were meant."""
    AppSession.request_rerun = in_order(AppSession.request_rerun)


def in_order(request_rerun):
    """``AppSession.request_rerun``, after the page and the widgets of a request were set right by what was asked before."""

    @wraps(request_rerun)
    def asked(session, client):
        if client is not None and client.page_script_hash:
            waiting, last = asked_before(session)
            if is_late(session, client, last.page_script_hash):
                if client.fragment_id and not waiting:
                    return  # the page that it was a part of has gone
                session._session_state["told"] = True  # its address is none that somebody went to
                client.page_script_hash, client.query_string, client.fragment_id = last.page_script_hash, last.query_string, ""
                client.is_history_navigation = getattr(last, "is_history_navigation", False)
            if waiting and last.widget_states is not None:
                add_values(client.widget_states.widgets, last.widget_states.widgets)
        request_rerun(session, client)

    return asked


def asked_before(session):
    """(whether a request waits for its turn, that request; else the last one that had it)."""
    runner = session._scriptrunner
    if runner is None:
        return False, session._client_state
    requests = runner._requests
    with requests._lock:
        return requests._state is ScriptRequestType.RERUN, requests._rerun_data


def is_late(session, client, page):
    """Whether a browser still speaks for the page of its address, while a link of it has led to another ``page`` already."""
    if client.is_history_navigation or not page or page == client.page_script_hash:
        return False
    path = urlsplit(client.context_info.url).path.rstrip("/").rpartition("/")[2]
    shown = session._pages_manager.get_pages().get(client.page_script_hash)
    return shown is not None and page in session._pages_manager.get_pages() and shown["url_pathname"] == path


def add_values(now, before):
    """Add what widgets held ``before`` to what they hold ``now``; a press that waits is Streamlit's to keep."""
    known = {widget.id for widget in now}
    now.extend(one for one in before if one.id not in known and "trigger" not in (one.WhichOneof("value") or ""))
