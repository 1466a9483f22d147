"""Wrong values as a browser hands them over, one of each kind of field; tests/app/test_bad_input.py tries every one."""

import numpy as np
import pytest

from mha_viz import Settings
from mha_viz.settings import to_address
from tests.browser.person import eventually
from tests.browser.test_explore import FOLDED, follow, picture_is


def own_mask(person):
    person.click("masked")
    eventually(lambda: person.widget("attn_mask").count())


STEPS_BACK = """() => {
    let opacity = 1;
    for (let e = document.querySelector('.mha-maps'); e; e = e.parentElement) opacity *= getComputedStyle(e).opacity;
    return opacity < 0.6;
}"""


@pytest.mark.parametrize(
    ("before", "name", "text", "says", "mended"),
    [
        (None, "num_heads", "7", "embed_dim must be divisible by num_heads, but 128 = 7 × 18 + 2", {"num_heads": 8}),
        (None, "embed_dim", "", "embed_dim = none: must be a whole number from 1", {"embed_dim": 8}),
        (None, "num_heads", "1,5", "num_heads = 1,5: must be a whole number from 1", {"num_heads": 2}),
        (None, "padding", "three", "padding = three: must be whole numbers, 0 or more, one per batch item", {}),
        (own_mask, "attn_mask", "cat", "must hold 0 and 1", {}),
    ],
)
def test_what_is_typed_wrong_is_said_and_nothing_else_is_lost(person, before, name, text, says, mended):
    seed = follow(person, causal=True).seed
    if before:
        before(person)
    good = eventually(settled, person)
    person.type(name, text)
    person.sees(".st-key-wrong", says)
    person.sees(".not-current", "Not current")
    np.testing.assert_array_equal(person.tiles(), good)  # the last good picture stays, and steps back
    eventually(lambda: person.page.evaluate(STEPS_BACK))
    still_set(person, seed)
    for field, value in mended.items():
        person.page.locator(".st-key-wrong").get_by_role("button", name=f"{field} = {value}", exact=True).click()
        eventually(picture_is, person, Settings(**{"seed": seed, "causal": True} | mended))
        eventually(lambda: person.page.locator(".st-key-wrong, .not-current").count() == 0)
        still_set(person, seed)


def test_of_a_link_whose_values_do_not_fit_those_are_shown_that_do(person):
    seed = follow(person).seed
    person.go(seed=seed + 1, causal=1, embed_dim=130)
    person.sees("[data-testid=stAlert]", "130 = 8 × 16 + 2")
    person.sees(".not-current", "embed_dim 128")
    eventually(picture_is, person, Settings(seed=seed + 1, causal=True))
    still_set(person, seed + 1)


@pytest.mark.parametrize(
    ("wrong", "says", "right"),
    [
        (
            {"<script>alert(1)</script>": "<b>x</b>", "embed_dim": "64.5", "num_heads": "4"},
            "<b>x</b>: is no setting",
            {"num_heads": 4},
        )
    ],
)
def test_what_is_wrong_in_a_link_is_left_out_alone(person, wrong, says, right):
    seed = person.go(causal=1, **wrong)
    person.sees("[data-testid=stAlert]", says)
    eventually(picture_is, person, Settings(seed=seed, causal=True, **right))
    eventually(lambda: person.query().items() >= to_address(seed=seed, causal=True, **right).items())
    assert person.page.locator(".st-key-wrong, .not-current").count() == 0
    still_set(person, seed)


def settled(person):
    """The maps as they are drawn, once they no longer change."""
    before = person.tiles()
    assert person.page.locator("[data-test-script-state=notRunning]").count()
    person.page.wait_for_timeout(100)
    np.testing.assert_array_equal(person.tiles(), before)
    return before


def still_set(person, seed):
    """The widgets and the address hold what was set besides."""
    assert person.holds("causal") and person.holds("seed") == str(seed)
    eventually(lambda: person.query().items() >= {"causal": "1", "seed": str(seed)}.items())


def test_a_number_is_what_was_typed_however_it_is_written(person):
    follow(person)
    person.type("seed", "1.5e1")
    eventually(lambda: person.query().get("seed") == "15" and person.holds("seed") == "1.5e1")
    person.unfold(FOLDED)
    person.type("dropout", "0.125")
    eventually(lambda: person.query().get("dropout") == "0.125" and person.holds("dropout") == "0.125")
    person.type("seed", "9007199254740991")
    eventually(lambda: person.query().get("seed") == "9007199254740991" and person.holds("seed") == "9007199254740991")
    person.type("seed", "1.5")
    person.sees(".st-key-wrong", "seed = 1.5: must be a whole number")
    assert person.holds("seed") == "1.5", "what was typed stays to be mended"
    person.type("seed", "3")
    person.widget("seed").press("ArrowUp")
    person.widget("seed").press("Enter")
    eventually(lambda: person.holds("seed") == "4" and person.query().get("seed") == "4")


def test_a_number_is_stepped_by_buttons_and_keys_and_not_below_zero(person):
    follow(person, num_heads=4)
    person.unfold(FOLDED)
    person.widget("num_heads").locator("input").hover()
    minus = person.page.locator(".mha-stepper").get_by_text("−", exact=True)
    minus.click()
    minus.click()
    eventually(lambda: person.holds("num_heads") == "2" and person.query().get("num_heads") == "2")
    dropout = person.widget("dropout").locator("input")
    dropout.press("ArrowUp")
    eventually(lambda: person.holds("dropout") == "0.2" and person.query().get("dropout") == "0.2")
    for _ in range(3):
        dropout.press("ArrowDown")
    eventually(lambda: person.holds("dropout") == "0.0" and person.query().get("dropout") == "0.0")
    person.type("dropout", "many")
    dropout.press("ArrowUp")
    person.sees(".st-key-wrong", "dropout = many: must be a probability")
    assert person.holds("dropout") == "many", "what is no number is not stepped"
    person.saw_nothing_wrong()
