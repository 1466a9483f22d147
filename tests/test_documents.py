"""The pictures of the documents are what their list says, and the lessons' page says what the lessons say."""

from pathlib import Path

import pytest

from mha_viz.core.rules import Wrong
from mha_viz.export.figure import read_figures
from mha_viz.export.lock import read_lock, stale
from mha_viz.export.make import spec_of
from mha_viz.studies.lessons import LESSONS

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = {figure.out: figure for figure in read_figures(DOCS / "figures.toml")}


@pytest.mark.parametrize("out", FIGURES)
def test_a_picture_is_up_to_date(out):
    """Where it is not: make pictures."""
    figure = FIGURES[out]
    try:
        spec = spec_of(figure.named(DOCS))
    except Wrong as wrong:
        if wrong.argument == "name":
            pytest.skip(f"a pretrained model is not here: {wrong.rule}")
        raise
    assert stale(figure, spec, read_lock(DOCS / "figures.toml").get(out), DOCS) is None


def test_every_picture_is_on_the_list_and_every_lesson_has_one():
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*") if path.suffix in (".png", ".svg")}
    assert there == FIGURES.keys()
    assert {f"lessons/{name}.png" for name in LESSONS} <= FIGURES.keys()


def test_the_page_of_the_lessons_says_what_they_say():
    text = (DOCS / "lessons.md").read_text()
    for number, (name, lesson) in enumerate(LESSONS.items(), 1):
        told = (
            f"## {number}. {lesson.title}\n\n{lesson.look}\n\n**{lesson.question}**\n\n![{lesson.title}](lessons/{name}.png)\n"
        )
        assert told in text, name


def test_the_readme_shows_pictures_of_the_list():
    readme = (DOCS.parent / "README.md").read_text()
    assert [line for line in readme.split("](docs/") if line.split(")")[0] in FIGURES]
