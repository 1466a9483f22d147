"""A browser that lost its connection and comes back within the time: its page is as it was, and its controls work."""

from tests.browser.person import Person, eventually

KEEP_SOCKETS = """
window.sockets = [];
window.WebSocket = class extends WebSocket { constructor(...how) { super(...how); sockets.push(this) } };
"""
OPEN = "sockets.filter(one => one.readyState === WebSocket.OPEN).length"


def test_a_page_goes_on_after_its_connection_was_lost(chromium, address):
    with chromium.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.add_init_script(KEEP_SOCKETS)
        page.complaints = []
        person = Person(page, address).open(seed=3, head=2)
        before = person.tiles()
        opened = page.evaluate("sockets.length")
        page.evaluate("sockets.forEach(one => one.close())")
        eventually(lambda: page.evaluate("sockets.length") > opened and page.evaluate(OPEN) > 0)
        eventually(lambda: (person.tiles() == before).all())
        person.type("seed", "4")
        eventually(lambda: person.query()["seed"] == "4" and (person.tiles() != before).any())
        after, at = person.tiles(), person.query()
        assert at["head"] == "2", "what was chosen stays"
        person.unfold("Masks")
        person.click("causal")
        eventually(lambda: person.query().get("causal") == "1" and (person.tiles() != after).any())
        person.saw_nothing_wrong()
