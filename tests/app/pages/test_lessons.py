"""The lessons as a person, and a teacher, goes through them."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from mha_viz.core.rules import Wrong
from mha_viz.export.lesson_page import lesson_page, shown_lesson
from mha_viz.figures.serial import to_json
from mha_viz.studies import lesson_numbers
from mha_viz.studies.lessons import LESSONS
from mha_viz.views import PAGE
from tests.app.hyphens import hyphened
from tests.app.screen import APP, decoded, figure, page_text, sent


def lessons(**address):
    at = AppTest.from_file(str(APP), default_timeout=60)
    at.query_params.update(address)
    return at.switch_page("mha_viz/app/pages/lessons.py").run()


def press(at, key):
    return next(button for button in at.button if button.key == key).click().run()


def words(at):
    return page_text(at).replace("\\", "")


def test_the_answer_comes_when_it_is_asked_for_and_leads_on():
    at = lessons()
    assert LESSONS["nothing"].question in words(at) and "0.245503" not in words(at)
    at = press(at, "reveal")
    assert LESSONS["nothing"].answered() in words(at) and at.query_params["revealed"] == "1"
    at = press(at, "next")
    assert at.query_params == {"lesson": "hides"}, "and the next one's answer is not shown yet"
    assert next(button for button in press(at, "previous").button if button.key == "previous").disabled


def test_a_step_before_the_browser_has_heard_of_the_last_leads_on_and_back_leads_back():
    first, second, third = list(LESSONS)[:3]
    at = press(lessons(), "next")
    assert at.query_params == {"lesson": second}
    at.query_params.clear()  # what the browser still shows
    at = press(at, "next")
    assert at.query_params == {"lesson": third}
    at.query_params.clear()  # Back, which comes with no change
    assert LESSONS[first].question in words(at.run())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LESSONS if name != "kinds"])  # which needs a pretrained model
def test_each_lesson_opens_by_its_address(name):
    at = lessons(lesson=name, revealed="1")
    assert not at.exception and LESSONS[name].answered() in words(at) and sent(at)
    assert hyphened(at) == []


@pytest.mark.slow
def test_a_lesson_about_a_model_that_is_not_installed_says_so(monkeypatch):
    def missing(lines):
        raise Wrong("name", "all-MiniLM-L6-v2", "comes with a package that is not installed.")

    monkeypatch.setattr(lesson_numbers, "read", missing)
    at = lessons(lesson="kinds")
    assert "not installed" in words(at) and not at.exception


def test_a_bad_address_is_said_until_somebody_goes_elsewhere():
    at = lessons(lesson="nope")
    for _ in range(2):  # the picture has the page run again as soon as it knows its room
        assert "nope" in words(at)
        at = at.run()
    assert "nope" not in words(press(at, "next"))


def test_a_class_sees_the_lesson_and_nothing_else():
    at = press(lessons(), "present")
    assert at.query_params["presented"] == "1"
    assert any("stSidebar" in html.value and "font-size: 1.5rem" in html.value for html in at.get("html"))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"lesson": "twenty"}, "lesson = twenty: must be one of"),
        ({"revealed": "maybe"}, "must be true or false"),
        ({"lessn": "leak"}, "is lesson meant?"),
    ],
)
def test_a_bad_address_falls_back_and_is_named(address, said):
    at = lessons(**address, presented="1")
    assert said in words(at) and at.query_params["presented"] == "1" and not at.exception


@pytest.mark.parametrize("name", [name for name, lesson in LESSONS.items() if lesson.page and name != "kinds"])
def test_the_way_on_leads_to_the_same_picture(name):
    """The same maps, A's too, on the same head and cell; the layer of "kinds" may not be installed."""
    lesson = LESSONS[name]
    at = AppTest.from_file(str(APP), default_timeout=60)
    at.query_params.update(lesson.address())
    at = at.switch_page(f"mha_viz/app/pages/{lesson.page}.py").run()
    assert not at.warning or name in ("dead", "dropout"), "these warn of what they teach"
    assert not at.error and not at.exception
    there, here = figure(at), json.loads(to_json(PAGE.drawn(shown_lesson(lesson))[0]))
    assert there["layout"]["meta"]["chosen"] == here["layout"]["meta"]["chosen"]
    large = len(lesson.traces()) + 1  # a head and the average, or A, B and B − A
    for page, taught in zip(*(large_maps(one, large) for one in (there, here)), strict=True):
        np.testing.assert_allclose(page, taught, atol=1e-6)


def large_maps(figure, count):
    return [decoded(trace["z"]) for trace in figure["data"] if trace["type"] == "heatmap"][-count:]


def test_one_file_holds_the_lesson_and_asks_no_network():
    page = lesson_page(LESSONS["slice"])
    assert LESSONS["slice"].question in page and "All 8:" in page and page.count("<details>") == 1
    assert "cdn" not in page[: page.index("<script")] and "src=" not in page.split("</script>")[-1]
