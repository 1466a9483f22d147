"""The Validate page in a real browser: what only one can tell."""

from mha_viz import Settings
from mha_viz.sources.source import source
from mha_viz.studies.validation import validate
from tests.browser.person import IDLE, eventually


def go_to(person, title):
    """Follow a link to another page."""
    person.widget("pages").get_by_role("link", name=title, exact=True).click()


def verdicts(person):
    person.page.wait_for_selector(f"{IDLE} .check")
    return [text.split(maxsplit=1)[1] for text in person.page.locator(".check .verdict").all_inner_texts()]


def test_what_fails_is_seen_and_what_was_compared_unfolds_by_key(person):
    seed = person.go(causal=1, padding_side="left")
    go_to(person, "Validate")
    expected = [check.verdict for check in validate(source(Settings(seed=seed, causal=True, padding_side="left")))]
    eventually(lambda: sorted(verdicts(person)) == sorted(expected))
    person.sees(".verdicts", "Does not hold: “Every query has a key that it may see”")
    row = person.page.locator(".check", has_text="Every query has a key that it may see").first
    assert not row.locator("p").is_visible()
    row.locator("summary").focus()
    person.page.keyboard.press("Enter")
    eventually(lambda: row.locator("p").is_visible())
    assert "padded queries counted as well" in row.locator("p").inner_text()


def test_nothing_is_cut_off_in_a_narrow_window(look, person):
    look(390, 844)
    page = person.open().page
    page.locator(".st-key-pages a", has_text="Validate").click()
    page.wait_for_selector(f"{IDLE} .check")
    width = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert width <= 390
    right = page.evaluate("Math.max(...[...document.querySelectorAll('.check *')].map(e => e.getBoundingClientRect().right))")
    assert right <= 390
