"""What a text becomes among Markdown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.export.markdown import plain, plain_in_a_file
from tests.app.screen import unescaped

# What is looked for in a piece of text without escapes.
LINKED = re.compile(r"https?://|www(?=\.)|\w@\w|:material/|:\w+:", re.IGNORECASE)


@given(st.text("abw.:/@-<>=~& \\*[]()!`#$'1é", max_size=30))
def test_a_text_comes_back_and_no_piece_of_it_is_a_link(text):
    said = plain(text)
    assert unescaped(said) == text
    pieces = said.split(":color[]")
    assert not any(LINKED.search(unescaped(piece)) for piece in pieces)
    assert not any(LINKED.search(re.sub(r"\\(.)", r"\1", piece)) for piece in plain_in_a_file(text).split("<!-- -->"))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_lines_end_ends_nothing(end):
    assert unescaped(plain(f"a{end}- b")) == "a ⏎ - b"
    assert "\n" not in plain_in_a_file(f"a{end}{end}    b") and "\r" not in plain_in_a_file(f"a{end}b")


def test_none_has_a_name():
    assert plain(None) == "none"
