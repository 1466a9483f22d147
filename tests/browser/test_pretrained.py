"""A pretrained model in a real browser: it reads a text that somebody types, and its heads are followed step by step."""

import importlib.util

import pytest

from mha_viz.sources.pretrained import shipped_models
from tests.browser.person import IDLE, READY, eventually
from tests.browser.test_steps import title
from tests.models.conftest import absent

MODEL = "all-MiniLM-L6-v2"


@pytest.fixture(autouse=True)
def installed():
    """Skips, with the reason, where the model or what runs it is not there."""
    if importlib.util.find_spec("transformers") is None or MODEL not in shipped_models():
        absent(f"transformers or {MODEL} is not installed: make test-models installs both")


def test_a_model_reads_what_is_typed_and_a_head_of_it_is_followed(person):
    page = person.page
    page.goto(f"{person.address}/models?source=pretrained")
    page.wait_for_selector(READY, timeout=60_000)
    text = page.get_by_label("text", exact=True)
    text.fill("Foxes jump over fences.")
    text.press("Control+Enter")
    eventually(lambda: person.query().get("text") == "Foxes jump over fences." and page.locator(IDLE).count())
    eventually(lambda: "H 12" in person.text(".shapes") and "L 7" in person.text(".shapes"))
    page.get_by_role("link", name="Step by step").click()
    eventually(lambda: title(person).startswith("1 of 11 · the query is projected"))
    person.sees(".st-key-stage", "What went into the layer is not known here.")
    person.sees(".mode", MODEL)
    page.go_back()
    eventually(lambda: page.locator(".st-key-overview .main-svg").count() and person.query()["source"] == "pretrained")
    person.saw_nothing_wrong()
