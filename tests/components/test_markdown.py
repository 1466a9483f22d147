"""Whatever a text holds, a page says exactly that: no link, image, icon, symbol or style comes of it."""

from pathlib import Path

import pytest

from tests.components.markdown_page import PARTS, TEXTS

PAGE = Path(__file__).with_name("markdown_page.py")
THERE = """(count) => [...Array(count).keys()].every((number) => document.querySelector(
    `.st-key-text_${number} [data-testid=stMarkdownContainer] p, .st-key-text_${number} [data-testid=stCaptionContainer] p`))"""
READ = """(count) => [...Array(count).keys()].map((number) => {
    const text = document.querySelector(`.st-key-text_${number} [data-testid=stMarkdownContainer], .st-key-text_${number} `
        + "[data-testid=stCaptionContainer]");
    const made = [...text.querySelectorAll("*")].map((element) => element.tagName).filter((tag) => !["P", "SPAN", "STRONG"].includes(tag));
    return [text.textContent, made.join(" ")];
})"""


def as_read(text):
    return " ".join(text.replace("\r", "\n").replace("\n", " ⏎ ").split())


@pytest.mark.parametrize("part", PARTS)
def test_a_text_is_read_as_it_is(part, chromium, serve):
    with chromium.new_page() as page:
        page.goto(f"{serve(PAGE)}/?part={part}")
        page.locator(".end").wait_for(state="attached", timeout=60_000)
        page.wait_for_function(THERE, arg=len(TEXTS), timeout=60_000)
        found = page.evaluate(READ, len(TEXTS))
    for text, (said, made) in zip(TEXTS, found, strict=True):
        said = said.removesuffix(": x") if part == "strong" else said
        assert (as_read(said), made) == (as_read(text), ""), repr(text)
