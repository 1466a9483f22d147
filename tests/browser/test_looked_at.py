"""From the heads of a model's layer to its steps and back, and to another source, in a real browser."""

from tests.browser.person import READY, eventually
from tests.browser.test_steps import title


def test_a_models_layer_step_by_step_and_back(person):
    page = person.page
    page.goto(f"{person.address}/models?layer=1&head=2&step=softmax")
    page.wait_for_selector(READY, timeout=60_000)
    page.get_by_role("link", name="Step by step").click()
    eventually(lambda: title(person).startswith("8 of 13") and "Induction · layer 1" in person.text(".mode"))
    page.keyboard.press("ArrowRight")
    eventually(lambda: title(person).startswith("9 of 13"))
    eventually(lambda: person.query() == {"source": "trained", "layer": "1", "head": "2", "step": "values"})
    person.pick("view_source", "untrained layer, random weights")
    eventually(lambda: title(person).startswith("1 of 13") and "untrained layer" in person.text(".mode"))
    page.go_back()
    eventually(lambda: title(person).startswith("9 of 13") and "Induction · layer 1" in person.text(".mode"))
    page.go_back()
    eventually(lambda: title(person).startswith("8 of 13"))
    page.go_back()
    eventually(lambda: page.locator(".st-key-picture .main-svg").count() and person.query()["head"] == "2")
    person.saw_nothing_wrong()
