"""Step by step in a real browser: by link from Explore, forward and back by key, in a window of any width."""

from tests.browser.person import IDLE, eventually


def title(person):
    return person.text(".step-head h2")


def to_steps(person, **query):
    person.go(**query)
    person.page.get_by_role("link", name="Step by step").click()
    eventually(lambda: " of " in title(person) and person.page.locator(IDLE).count())


def drawn(person):
    """Widths of the picture of a step and of the room that it has."""
    script = """() => {
        const picture = document.querySelector('[class*=st-key-step_picture] .main-svg');
        return picture ? [picture.clientWidth, document.querySelector('.st-key-stage').clientWidth] : [0, 0];
    }"""
    return person.page.evaluate(script)


def test_forward_and_back_by_key(person):
    to_steps(person, seed=8)
    assert title(person) == "1 of 13 · the tokens"
    for number in (2, 3, 4, 5):
        person.page.keyboard.press("ArrowRight")
        eventually(lambda number=number: title(person).startswith(f"{number} of 13"))
    person.page.keyboard.press("ArrowLeft")
    eventually(lambda: title(person) == "4 of 13 · every key is projected: k")
    eventually(lambda: person.query() == {"seed": "8", "step": "keys"})
    person.page.go_back()
    eventually(lambda: title(person).startswith("5 of 13"))
    person.saw_nothing_wrong()


def test_a_key_that_is_meant_for_a_control_is_no_step(person):
    to_steps(person)
    person.widget("seq_len").locator("input").click()
    person.page.keyboard.press("ArrowRight")
    person.page.wait_for_timeout(300)
    assert title(person).startswith("1 of 13")
    person.widget("step_softmax").get_by_role("button").click()
    eventually(lambda: title(person).startswith("8 of 13"))
    person.page.keyboard.press("ArrowRight")  # the button that was clicked has the focus
    eventually(lambda: title(person).startswith("9 of 13"))
    person.page.wait_for_timeout(300)
    assert title(person).startswith("9 of 13"), "one key is one step"
    person.saw_nothing_wrong()


def test_the_picture_follows_the_window(person):
    to_steps(person)
    eventually(lambda: drawn(person)[0] and abs(drawn(person)[0] - drawn(person)[1]) < 16)
    try:
        person.page.set_viewport_size({"width": 800, "height": 900})
        eventually(lambda: drawn(person)[1] < 800 and abs(drawn(person)[0] - drawn(person)[1]) < 16)
    finally:
        person.page.set_viewport_size({"width": 1440, "height": 900})
    person.saw_nothing_wrong()


def test_formulas_and_programs_are_readable(person):
    to_steps(person)
    eventually(lambda: person.page.locator(".st-key-told .katex").count() >= 2)
    assert person.page.locator(".katex-error").count() == 0
    person.widget("language_torch").get_by_role("button").click()
    eventually(lambda: "print(query[n])" in person.text(".st-key-told code"))
    person.unfold("The whole program")
    eventually(lambda: "nn.MultiheadAttention(128, 8, dropout=0.1, batch_first=True)" in person.text(".st-key-told code"))
    person.saw_nothing_wrong()
