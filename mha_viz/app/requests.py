"""What a browser asks for in quick succession: a link that was clicked leads to its page, with what was typed just before.

Streamlit keeps one request waiting while a script runs, and a later one takes its place. A browser that has clicked a link still speaks for
the page that it shows, until it hears of the next one: a field that loses its focus, a picture that tells its width. Such a word would
lead back to the page that was left, and a link would drop the value that a field has just sent. So would a script that gives way to the
link before it has heard that value, or that asks to be run again when it has. A timer's word is nobody's: all that widgets hold comes with
it, and would undo what the server has set them to since.
"""

from functools import cache, wraps
from urllib.parse import urlsplit

from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType
from streamlit.runtime.state.safe_session_state import SafeSessionState


@cache
def keep_in_order():
    """Let every session of this process hear its requests in the order in which they were meant."""
    AppSession.request_rerun = in_order(AppSession.request_rerun)
    ScriptRequests._request_rerun_locked = unless_left(ScriptRequests._request_rerun_locked)
    SafeSessionState.on_script_will_rerun = at_once(SafeSessionState.on_script_will_rerun)


def in_order(request_rerun):
    """``AppSession.request_rerun``, after the page and the widgets of a request were set right by what was asked before."""

    @wraps(request_rerun)
    def asked(session, client):
        if client is not None and client.is_auto_rerun:
            client.widget_states.Clear()  # nobody has changed anything, and a slow browser says what its widgets held before the server did
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


def unless_left(request_rerun):
    """``ScriptRequests._request_rerun_locked``; a script that asks to be run again takes no place of a link or Back that waits."""

    @wraps(request_rerun)
    def asked(requests, data):
        running, waiting = get_script_run_ctx(), requests._rerun_data
        is_own = running is not None and running.page_script_hash == data.page_script_hash
        leads_away = waiting.page_script_hash != data.page_script_hash or waiting.is_history_navigation
        if is_own and requests._state is ScriptRequestType.RERUN and leads_away:
            return True
        return request_rerun(requests, data)

    return asked


def at_once(hear):
    """``SafeSessionState.on_script_will_rerun``, which gives way to no request before it has taken in all values of this one."""

    @wraps(hear)
    def heard(state, *args, **how):
        give_way = state._yield_callback
        object.__setattr__(state, "_yield_callback", lambda: None)
        try:
            hear(state, *args, **how)
        finally:
            object.__setattr__(state, "_yield_callback", give_way)

    return heard


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
