"""The walks of CONTRIBUTING.md as changes to the files that they touch: a new file is text, a changed one (old, new) pieces of text."""

from pathlib import Path

EVEN = Path(__file__).with_name("even.py").read_text("utf-8")
EVEN_PANEL = '''"""Even maps: what is to be known of them."""

import streamlit as st

from mha_viz.app.panels.panel import Panel


class EvenPanel(Panel):
    kinds = ("even",)

    def above(self, looked):
        st.caption(f"Each query attends alike to all that it sees: {looked.settings.sees}.")
'''
POSTER = '''"""The average of all heads, larger."""

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.views.base import MAPS, PARTS, Naming, OfAttention
from mha_viz.views.shown import Shown


class Poster(OfAttention):
    """The average of all heads, for a wall."""

    name = "poster"
    public = True
    parts = PARTS
    reads = tuple(name for name in MAPS if name != "head")  # no head is chosen in it
    naming = Naming(most=0)
    needs = ()
    whole = False
    maps = True

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import heads

        return heads.average(shown.trace, shown.view, theme, width, parts)

    def describe(self, shown: Shown) -> str:
        return "A poster of the average of all heads."

    def caption(self, shown: Shown) -> str:
        return "Attention, the average of all heads for a wall"

    def heads(self, shown: Shown) -> list[int | None]:
        return shown.average


POSTER = Poster()
'''
GLOSSARY = '''"""Glossary: words that the pages use."""

import streamlit as st

from mha_viz.app.session import enter


def page():
    enter("glossary")
    st.markdown("**query**: the token that attends.")


page()
'''


def before(anchor, line):
    """A change that puts a line before the ``anchor``."""
    return anchor, f"{line}\n{anchor}"


def after(anchor, line):
    """A change that puts a line after the one that the ``anchor`` ends."""
    return f"{anchor}\n", f"{anchor}\n{line}\n"


WALKS = {
    "Add a source": {
        "mha_viz/sources/even.py": EVEN,
        "mha_viz/sources/__init__.py": [
            before("from mha_viz.sources.files.kind", "from mha_viz.sources.even import EVEN"),
            ("PRETRAINED, FILE)", "PRETRAINED, FILE, EVEN)"),
        ],
        "mha_viz/app/panels/even.py": EVEN_PANEL,
    },
    "Add a view": {
        "mha_viz/views/poster.py": POSTER,
        "mha_viz/views/__init__.py": [
            before("from mha_viz.views.profile", "from mha_viz.views.poster import POSTER"),
            after("LISTED: tuple[OfAttention | OfResults[Any], ...] = (", "    POSTER,"),
        ],
    },
    "Add a page": {
        "mha_viz/app/pages/glossary.py": GLOSSARY,
        "mha_viz/app/page_list.py": [after('    Page("about", "About"),', '    Page("glossary", "Glossary"),')],
    },
    "Add a setting of the input": {
        "mha_viz/settings/settings.py": [
            after("    positions: bool = ruled(False, flag)", "    backwards: bool = ruled(False, flag)")
        ],
        "mha_viz/sources/synthetic.py": [
            before("    if s.positions:\n", "    if s.backwards:\n        vectors = vectors[:, ::-1].copy()  # [N, L, E]")
        ],
        "mha_viz/app/panels/random.py": [
            after(
                '        flag("positions", "positions", about)',
                '        flag("backwards", "backwards", "The last token first.")',
            )
        ],
        "mha_viz/export/beginning.py": [
            before('    return [*lines, *([f"{name} = {name} + pos', '    lines += [f"{name} = {name}.flip(1)"] * s.backwards')
        ],
    },
    "Correct a label": {"mha_viz/app/panels/random.py": [('"batch N"', '"sequences N"')]},
}


def take(walk, root):
    """Make the changes of one of the WALKS in the copy of the project at ``root``."""
    for path, change in WALKS[walk].items():
        file = root / path
        if isinstance(change, str):
            assert not file.exists()
            file.write_text(change)
            continue
        text = file.read_text()
        for old, new in change:
            assert text.count(old) == 1, f"{path} holds {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        file.write_text(text)
