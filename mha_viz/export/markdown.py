"""Text of a person's, a file's or an address's in the midst of Markdown: each letter stays what it is."""

import re
import string

LINE_END = re.compile(r"\r\n|[\n\r]")
EDGE = re.compile(r"^\s|\s$")
# Escaped marks still make links, emoji, icons and arrows, since these are looked for once the escapes are gone, within a piece of text.
JOINT = re.compile(r"(?<=:)(?=[\w+/-])|(?<=www)(?=\.)|(?=@)|(?<=[-<>=~])(?=[-<>=~])", re.IGNORECASE)
NOTHING_ON_A_PAGE = ":color[]"  # a piece of text ends here for Streamlit, which draws an empty span
NOTHING_IN_A_FILE = "<!-- -->"


def plain(value: object) -> str:
    """``value`` as text in which a page's Markdown, Streamlit's, finds nothing to do; a line's end is shown as ⏎."""
    text = LINE_END.sub(" ⏎ ", "none" if value is None else str(value))
    return _escaped(text, string.punctuation, NOTHING_ON_A_PAGE)


def plain_in_a_file(text: str) -> str:
    """``text`` as a paragraph of a Markdown file, as GitHub reads it."""
    return _escaped(LINE_END.sub(" ", text), "\\`*_[]<>#|$&~", NOTHING_IN_A_FILE)


def _escaped(text: str, marks: str, nothing: str) -> str:
    marked = re.compile(f"([{re.escape(marks)}])")
    pieces = (marked.sub(r"\\\1", piece) for piece in JOINT.split(text))
    return EDGE.sub(lambda space: f"&#{ord(space[0])};", nothing.join(pieces))  # or ** beside it would be two stars
