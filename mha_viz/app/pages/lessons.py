"""Start here: lessons of one point each, for one person or a class in front of a projector."""

from dataclasses import dataclass, replace

import streamlit as st

from mha_viz.app.drawing import heard
from mha_viz.app.page_list import file_of
from mha_viz.app.parts.messages import say_error, say_notes
from mha_viz.app.parts.shapes import chosen_number
from mha_viz.app.picture import theme
from mha_viz.app.session import PAGES, arrive, enter, place, write_address
from mha_viz.app.state import Form
from mha_viz.app.warm import warm_up
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain
from mha_viz.settings.rules import Ruled, choice, flag, ruled
from mha_viz.studies.lessons import LESSONS

NAMES = tuple(LESSONS)
PRESENTING = """<style>
[data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], .st-key-lesson_more { display: none; }
.st-key-lesson p { font-size: 1.5rem; line-height: 1.4; } .st-key-lesson h2 { font-size: 2.2rem; }
.st-key-lesson_buttons p { font-size: 1rem; }
</style>"""


@dataclass(frozen=True)
class Asked(Ruled):
    """Which ``lesson``, whether its answer is ``revealed``, and whether it is ``presented`` to a class."""

    lesson: str = ruled(NAMES[0], choice(*NAMES))
    revealed: bool = ruled(False, flag)
    presented: bool = ruled(False, flag)


def page():
    enter("lessons")
    here = arrive("lessons", lambda: Form(Asked))
    warm_up()
    say_notes(here.notes if here.untouched else [])
    asked = now()
    if asked.presented:
        st.html(PRESENTING)
    with st.sidebar:
        listed(asked)
    with st.container(key="lesson"):
        shown(LESSONS[asked.lesson], asked)
    write_address()


def now():
    """What is asked now: every change keeps the rules."""
    return place("lessons").content.settings()


def go(**values):
    place("lessons").content.change(**values)


def leaf(by):
    """Go ``by`` lessons on from where one is by now: keys may be struck faster than the page is drawn."""
    at = NAMES.index(now().lesson) + by
    if 0 <= at < len(NAMES):
        go(lesson=NAMES[at], revealed=False)


def switch(name):
    """Let ``revealed`` or ``presented`` be what it is not by now."""
    go(**{name: not getattr(now(), name)})


def listed(asked):
    """All lessons, each a click away."""
    st.markdown("**One point each.** Answer the question before you look.")
    for number, (name, lesson) in enumerate(LESSONS.items(), 1):
        kind = "secondary" if name == asked.lesson else "tertiary"
        st.button(
            f"{number}. {lesson.title}",
            key=f"lesson_{name}",
            type=kind,
            on_click=heard(go),
            kwargs={"lesson": name, "revealed": False},
        )


def shown(lesson, asked):
    """What to look at, the question, the picture, and the answer once it is asked for."""
    from mha_viz.export.lesson_page import lesson_page

    at = NAMES.index(asked.lesson)
    st.markdown(f"## {at + 1}. {plain(lesson.title)}")
    st.markdown(plain(lesson.look))
    st.markdown(f"**{plain(lesson.question)}**")
    with st.container(horizontal=True, key="lesson_buttons"):
        step("Previous", at, -1, "Left")
        reveal = "Hide the answer" if asked.revealed else "Reveal the answer"
        st.button(reveal, key="reveal", type="primary", shortcut="A", on_click=heard(switch), args=("revealed",))
        step("Next", at, +1, "Right")
        present = "Stop presenting" if asked.presented else "Present"
        about = "Large type, nothing but the lesson. Arrow keys lead on and back, A shows the answer, T turns dark or light, P ends it."
        st.button(present, key="present", shortcut="P", help=about, on_click=heard(switch), args=("presented",))
        if st.button("Light / dark", key="theme", shortcut="T", help="Turns the page, and its pictures, dark or light."):
            turn_theme()
    try:
        if asked.revealed:
            with st.container(border=True, key="lesson_answer"):
                with st.spinner("Measuring …"):
                    said = lesson.answered()
                st.markdown(plain(said))
        with st.spinner("Measuring …"):
            picture(lesson)
    except Wrong as wrong:  # a lesson about a pretrained model, where none is installed
        say_error(wrong)
        return
    with st.container(horizontal=True, key="lesson_more"):
        if lesson.page:
            st.page_link(
                file_of(lesson.page),
                label=f"Continue in {PAGES.get(lesson.page, PAGES['explore'])}",
                icon=":material/arrow_forward:",
                query_params=lesson.address(),
            )
        st.download_button(
            "Save as one HTML file",
            lambda: lesson_page(lesson),
            f"{asked.lesson}.html",
            "text/html",
            on_click="ignore",
            help="For a room without a network: the question, the picture with exact hover, and the answer behind a click.",
        )


def turn_theme():
    from mha_viz.components import turn

    write_address()  # which is loaded again
    turn()


def step(label, at, by, key):
    there = 0 <= at + by < len(NAMES)
    st.button(label, key=label.lower(), disabled=not there, shortcut=key, on_click=heard(leaf), args=(by,))


def picture(lesson):
    """The lesson's heads, or A, B and B − A; a cell that is chosen stays so while the lesson does."""
    from mha_viz.components import live, measured_width
    from mha_viz.export.lesson_page import shown_lesson
    from mha_viz.views import PAGE

    def take(choices):
        last = choices[-1]
        head = view.head if last["head"] is None else last["head"]
        st.session_state.lesson_view = lesson.title, replace(view, head=head, cell=(last["query"], last["key"]))

    look = {"theme": theme(), "width": measured_width("picture")}
    of, view = st.session_state.get("lesson_view", (None, None))
    view = view if of == lesson.title else lesson.view()
    shown = shown_lesson(lesson, view)
    figure, alt = PAGE.drawn(shown, **look)
    live(figure, key="picture", alt=alt, on_choose=heard(take, of=lambda: now().lesson))
    st.html(chosen_number(shown.trace, shown.choice, shown.a))


page()
