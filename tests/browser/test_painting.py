"""A mask painted on the map in a real browser: quickly, by keys, and in the dark."""

import pytest

from tests.browser.person import eventually


@pytest.fixture
def painter(person):
    """Somebody who is painting on 6 × 6 cells, of which none is hidden yet."""
    person.open(seq_len=6, padding="", causal=0)
    person.click("masked")
    eventually(lambda: person.holds("attn_mask").split() == ["000000"] * 6)
    person.click("paint")
    eventually(lambda: person.holds("paint"))
    return person


def hidden(person):
    """The cells that the mask hides."""
    return {(q, k) for q, line in enumerate(person.holds("attn_mask").split()) for k, entry in enumerate(line) if entry == "1"}


def chosen(person):
    cell = person.meta()["chosen"]
    return cell["query"], cell["key"]


def test_six_cells_clicked_without_a_pause_are_all_hidden(painter):
    cells = [(0, 1), (1, 3), (2, 5), (3, 0), (4, 2), (5, 4)]
    large = len(painter.meta()["tiles"]) - 2
    for x, y in [painter.place(large, *cell) for cell in cells]:
        painter.page.mouse.click(x, y)
    eventually(lambda: hidden(painter) == set(cells))


def test_arrow_keys_hide_nothing_and_enter_hides_the_chosen_cell(painter):
    page, large = painter.page, len(painter.meta()["tiles"]) - 2
    painter.click_cell(large, 2, 2)
    eventually(lambda: hidden(painter) == {(2, 2)})
    eventually(lambda: chosen(painter) == (2, 2))
    page.locator(".mha-maps").focus()
    for step in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(step)
    eventually(lambda: chosen(painter) == (3, 4))
    assert hidden(painter) == {(2, 2)}
    page.keyboard.press("Enter")
    eventually(lambda: hidden(painter) == {(2, 2), (3, 4)})
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Space")
    eventually(lambda: hidden(painter) == {(2, 2), (3, 4), (2, 4)})
    assert page.evaluate("document.activeElement.classList.contains('mha-maps')")


def test_the_picture_turns_dark_with_the_page(person):
    person.open()
    papers = """() => {
        const picture = document.querySelector(".mha-maps")._fullLayout.paper_bgcolor;
        return [picture, getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor];
    }"""
    light = person.page.evaluate(papers)
    try:
        person.page.emulate_media(color_scheme="dark")
        eventually(lambda: all(now != before for now, before in zip(person.page.evaluate(papers), light, strict=True)))
    finally:
        person.page.emulate_media(color_scheme="light")
    eventually(lambda: person.page.evaluate(papers) == light)
