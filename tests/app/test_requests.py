"""Requests that come faster than pages are drawn: a link that was clicked leads to its page, with what was typed before."""

from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType
from streamlit.runtime.state import SafeSessionState, SessionState

from mha_viz.app.requests import at_once, in_order, unless_left

PAGES = {"e": {"url_pathname": ""}, "s": {"url_pathname": "steps"}}


class Server:
    """What a session of Streamlit has of its requests; ``page`` is that of the last run, where no run goes on."""

    def __init__(self, page=None):
        self.requests, self._session_state, self._client_state = ScriptRequests(), {}, ClientState(page_script_hash=page or "")
        self._scriptrunner = None if page else SimpleNamespace(_requests=self.requests)
        self._pages_manager = SimpleNamespace(get_pages=lambda: PAGES)
        self.heard = []

    def ask(self, page, url, query="", fragment="", history=False, timer=False, **values):
        client = ClientState(page_script_hash=page, query_string=query, fragment_id=fragment, is_history_navigation=history)
        client.is_auto_rerun = timer
        client.context_info.url = f"http://localhost:8501/{url}"
        for name, text in values.items():
            client.widget_states.widgets.add(id=name, string_value=text)
        in_order(Server.take)(self, client)

    def take(self, client):
        self.heard.append(client)
        how = {
            name: getattr(client, name)
            for name in ("query_string", "widget_states", "page_script_hash", "is_history_navigation")
        }
        self.requests.request_rerun(RerunData(**how, fragment_id=client.fragment_id or None))

    @property
    def waiting(self):
        """(page, address, {widget: what it holds}, fragments) of the request that runs next."""
        assert self.requests._state is ScriptRequestType.RERUN
        data = self.requests._rerun_data
        held = {widget.id: widget.string_value for widget in data.widget_states.widgets}
        return data.page_script_hash, data.query_string, held, data.fragment_id_queue


@pytest.mark.parametrize("fragment", ["", "picture"])
def test_a_late_word_of_the_page_that_was_left_leads_back_to_none(fragment):
    server = Server()
    server.ask("s", "?seed=11", "seed=11")  # a link to Step by step
    server.ask("e", "?seed=11", "seed=11&old=1", fragment, seed="12")  # the field that lost its focus
    assert server.waiting == ("s", "seed=11", {"seed": "12"}, [])


def test_what_was_typed_before_a_link_is_not_lost():
    server = Server()
    server.ask("e", "", "", "", seed="12", heads="8")
    server.ask("s", "", "seed=11", "", heads="4")  # a browser tells of a page it leaves only what the next one has too
    assert server.waiting == ("s", "seed=11", {"heads": "4", "seed": "12"}, [])


def test_what_widgets_held_when_a_timer_went_off_is_nobodys_change():
    server = Server("e")
    server.ask("e", "", "", "player", timer=True, snapshot="10")  # the server has gone on to 20 since
    assert not server.heard[-1].widget_states.widgets and server.heard[-1].fragment_id == "player"
    server = Server()
    server.ask("e", "", "", "", snapshot="30")  # somebody moved it
    server.ask("e", "", "", "player", timer=True, snapshot="10")
    assert server.waiting[2] == {"snapshot": "30"}


def test_a_page_that_runs_already_stays_and_is_drawn_whole_for_who_threw_it_away():
    server = Server()
    server.ask("s", "", "seed=11")
    server.requests.on_scriptrunner_ready()
    server.ask("e", "", "", "picture")
    assert server.requests._state is ScriptRequestType.CONTINUE, "a part of the page that was left is drawn no more"
    server.ask("e", "", "")
    assert server.waiting == ("s", "seed=11", {}, [])
    assert server._session_state["told"], "nobody went back to that address"


def test_a_page_that_was_drawn_before_the_browser_heard_of_it_stays():
    server = Server("s")
    server.ask("e", "", "")
    assert server.waiting[0] == "s"


@pytest.mark.parametrize(
    ("page", "url", "history"), [("e", "", True), ("e", "steps", False), ("s", "steps", False), ("gone", "", False)]
)
def test_whoever_goes_to_a_page_gets_there(page, url, history):
    """Back; a link of the page that is shown; a control of it; a page that this app does not have."""
    server = Server("s")
    server.ask(page, url, "seed=3", history=history)
    assert server.waiting[:2] == (page, "seed=3") and not server._session_state


@pytest.mark.parametrize(
    ("waiting", "stays"),
    [
        ({"page_script_hash": "s"}, True),
        ({"page_script_hash": "e", "is_history_navigation": True}, True),
        ({"page_script_hash": "e"}, False),
    ],
    ids=["a link", "Back", "a control"],
)
def test_a_script_that_asks_to_be_run_again_takes_no_links_place(monkeypatch, waiting, stays):
    requests, link = ScriptRequests(), RerunData(query_string="seed=3", **waiting)
    ask_again = RerunData(query_string="seed=4", page_script_hash="e", fragment_id_queue=["picture"])
    again = unless_left(ScriptRequests._request_rerun_locked)
    again(requests, link)  # by the browser: in no script
    monkeypatch.setattr("mha_viz.app.requests.get_script_run_ctx", lambda: SimpleNamespace(page_script_hash="e"))
    assert again(requests, ask_again)
    assert (requests._rerun_data == link) is stays
    again(requests, RerunData(page_script_hash="d"))
    assert requests._rerun_data.page_script_hash == "d", "a script that leads to a page leads there"


def test_what_was_typed_is_taken_in_before_anything_else_that_was_asked_for():
    class Gone(Exception):
        """What Streamlit raises where a link waits."""

    def give_way():
        raise Gone

    state = SafeSessionState(SessionState(), give_way)
    typed = WidgetStates()
    typed.widgets.add(id="seed", string_value="12")
    at_once(SafeSessionState.on_script_will_rerun)(state, typed)
    assert "seed" in state._state._new_widget_state.states
    with pytest.raises(Gone):
        state["seed"]
