"""A bare page: each of TEXTS as its words, in each part of a page that takes Markdown; the query parameter ``part`` names which."""

import random

import streamlit as st

from mha_viz.export.markdown import plain

TEXTS = [
    "![x](http://host.example/leak)",
    "![x](http:&#47;&#47;host.example&#47;leak)",
    "see https://host.example/a?b=1&amp;c=2#d now",
    "www.host.example",
    "WWW.host.example/a",
    "me@host.example",
    "mailto:me@host.example",
    "ftp://host.example",
    "http:",
    "://",
    "x@",
    "@",
    "&amp; &#36; &lt;b&gt; &",
    "a -> b <- c <-> d -- e >= f <= g ~= h",
    "->",
    "--",
    ":material/home: :smile: :+1: :-1: :streamlit: :",
    ":red[x] :color[] :shortcut[Ctrl+C] :help[x]",
    "$x$ $$y$$",
    "*a* _b_ **c** `d` ~~e~~",
    "<img src=x onerror=alert(1)>",
    "- item",
    "[a][b] [a](b) ![a] [^1]",
    "# head",
    "> quote",
    "1. one",
    "1) one",
    "+ item",
    "| a | b |",
    "===",
    "---",
    "a\n\n    code\r- item",
    "a\\b \\* \\",
    "::: div",
    "{#id .class}",
    "[ ] x",
    " begins with a space",
    "ends with one ",
    "\n",
    "漢字 é 🙂 \"q\" 'r' ^x^",
]
WORDS = "http s www example .com a &amp; :smile: :material/home: color[] 1. é"
PIECES = [*WORDS.split(), *":/.@[]()!*_`~$<>-=&;#|\\{}+^'\"", "//", " ", "\n"]
drawn = random.Random(3)
TEXTS += ["".join(drawn.choices(PIECES, k=drawn.randint(2, 12))) for _ in range(120)]
PARTS = {
    "strong": lambda text, number: st.markdown(f"**{text}**: x"),
    "error": lambda text, number: st.error(text),
    "caption": lambda text, number: st.caption(text),
    "button": lambda text, number: st.button(text, key=f"button_{number}"),
    "expander": lambda text, number: st.expander(text),
    "checkbox": lambda text, number: st.checkbox(text, key=f"checkbox_{number}"),
}

if __name__ == "__main__":
    for number, text in enumerate(TEXTS):
        with st.container(key=f"text_{number}"):
            PARTS[st.query_params.get("part", "strong")](plain(text), number)
    st.html("<i class='end'></i>")
