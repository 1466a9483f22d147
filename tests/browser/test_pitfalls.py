"""The Pitfalls page in a real browser: found by symptom, changed by hand, at any width."""

import pytest

from mha_viz import Settings, synthetic
from mha_viz.analysis.pitfalls import PITFALLS, Bench
from tests.browser.person import IDLE, Person, eventually


class Learner(Person):
    PATH = "pitfalls"

    def open(self, **query):
        self.page.goto(f"{self.address}/{self.PATH}")
        self.page.wait_for_selector(f"{IDLE} h2.pitfall", timeout=60_000)
        return self.go(**query) if query else self

    def sees_experiment(self, name, settings=None, **values):
        """Waits until this experiment is shown, with what it found on the layer of these Settings."""
        experiment = PITFALLS[name].run(Bench.of(synthetic(settings or Settings(padding=()))), **values)
        self.sees("h2.pitfall", PITFALLS[name].title)
        self.sees("p.chosen", experiment.sentence)
        maps = self.page.locator(".st-key-pitfall_maps .main-svg:first-child")
        eventually(lambda: maps.count() == len(experiment.maps))
        self.sees("[data-testid=stApp]", f"the mistake {'fails' if experiment.caught else 'passes'}")


@pytest.fixture
def person(usual_window, address):
    person = Learner(usual_window, address)
    yield person
    person.saw_nothing_wrong()


def test_a_pitfall_is_found_by_its_symptom_and_changed(person):
    person.open()
    person.widget("pitfall_symptom").get_by_text("rows do not sum to 1").click()
    person.sees_experiment("dropout-in-the-weights")
    titles = [one.title for one in PITFALLS.values() if "rows do not sum to 1" in one.symptoms]
    offered = person.text(".st-key-pitfall_name [role=radiogroup]")
    assert all(title in offered for title in titles) and "Softmax twice" not in offered
    person.widget("pitfall_symptom").get_by_text("rows do not sum to 1").click()
    person.widget("pitfall_name").get_by_text("A sliding window that is off by one").click()
    person.sees_experiment("window-off-by-one")
    person.type("knob_window", "5")
    person.sees_experiment("window-off-by-one", window=5)
    eventually(lambda: person.query() == {"pitfall": "window-off-by-one&window=5"})
    person.type("seed", "11")
    person.sees_experiment("window-off-by-one", Settings(seed=11, padding=()), window=5)


@pytest.mark.parametrize(("width", "height", "scheme"), [(1440, 900, "light"), (390, 844, "dark")])
def test_every_width_and_theme_has_room(look, person, width, height, scheme):
    look(width, height, scheme)
    person.page.goto(f"{person.address}/pitfalls?pitfall=true-means-the-opposite")
    person.page.wait_for_selector(f"{IDLE} .st-key-pitfall_maps .main-svg", timeout=60_000)
    person.sees_experiment("true-means-the-opposite")
    assert person.page.evaluate("document.documentElement.scrollWidth") <= width
    assert person.page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth"), (
        "nothing is scrolled sideways"
    )
    rights = person.page.evaluate(
        "Array.from(document.querySelectorAll('.st-key-pitfall_maps .main-svg'), e => e.getBoundingClientRect().right)"
    )
    assert max(rights) <= width
    paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 17, 23)"}[scheme]
    drawn = person.page.locator(".st-key-pitfall_maps .main-svg").first
    eventually(lambda: drawn.evaluate("e => getComputedStyle(e).backgroundColor") == paper)
    if width > 640:
        bottom = person.page.locator(".st-key-pitfall_maps").evaluate("e => e.getBoundingClientRect().bottom")
        assert bottom <= height, "maps are on the first screen"
