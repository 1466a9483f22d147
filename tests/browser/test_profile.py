"""Profile in a real browser: a tiny one measured to its end, another stopped, a saved one opened."""

import json

import pytest

from mha_viz.settings.profile import Profile
from mha_viz.studies.profile_results import Results, as_json
from mha_viz.studies.profiling import PEAK, SECONDS, Event
from tests.browser.person import IDLE, Person, eventually

pytestmark = pytest.mark.browser
TINY = {"embed_dim": 8, "num_heads": "1,2", "seq_len": "4,8", "repeats": 2}
MEASURED = 120  # seconds in which a process has imported PyTorch on a busy machine, and measured a little


class Measurer(Person):
    PATH = "profile"

    def arrive(self, **query):
        """Come to the page; a picture of quality is there before anything is measured."""
        self.page.goto(f"{self.address}/profile?{'&'.join(f'{name}={value}' for name, value in query.items())}")
        self.page.wait_for_selector(f"{IDLE} .st-key-quality_picture .main-svg", timeout=60_000)
        self.saw_nothing_wrong()

    def press(self, label):
        self.page.get_by_test_id("stMain").get_by_role(
            "button", name=label, exact=True
        ).click()  # the header may have a Stop, too

    def waits_for(self, selector, text=None):
        found = self.page.locator(selector)
        (found.filter(has_text=text) if text else found).first.wait_for(timeout=1000 * MEASURED)


@pytest.fixture
def person(usual_window, address):
    person = Measurer(usual_window, address)
    yield person
    person.saw_nothing_wrong()


def test_a_tiny_profile_is_measured_drawn_and_saved(person):
    person.arrive(**TINY)
    person.sees("[data-testid=stCaptionContainer]", "8 points, each called 4 times")
    person.press("Measure")
    person.waits_for(".st-key-profile_picture .main-svg")
    person.sees("[data-testid=stCode]", "python -m mha_viz profile --embed-dim 8 --num-heads 1,2 --seq-len 4,8 --repeats 2")
    assert "Nothing was measured" not in person.text("[data-testid=stMain]")
    with person.page.expect_download() as download:
        person.press("Save the numbers")
    told = json.loads(download.value.path().read_text())
    assert len(told["measured"]) == 8 and all(len(one["seconds"]) == 2 and one["peak"] is not None for one in told["measured"])


def test_what_is_measured_by_the_time_of_a_stop_is_shown(person):
    person.arrive(**TINY | {"repeats": 1000, "seq_len": "4,512"})
    person.press("Measure")
    person.waits_for("[data-testid=stProgress]", "left")
    person.press("Stop")
    person.waits_for(".st-key-profile_picture .main-svg")
    person.sees("[data-testid=stMain]", "Measure again")
    with person.page.expect_download() as download:
        person.press("Save the numbers")
    told = json.loads(download.value.path().read_text())["measured"]
    assert any(one["peak"] is not None for one in told) and not all(len(one["seconds"]) == 1000 for one in told)


def test_a_saved_profile_is_opened_and_its_picture_saved(person, tmp_path):
    results = Results(Profile(embed_dim=8, num_heads=(1, 4), seq_len=(4, 8, 16)))
    for row in results.rows:
        results.add(Event(PEAK, row.point, 2**20))
        results.add(Event(SECONDS, row.point, 1e-6 * row.point.seq_len**2))
    (tmp_path / "mine.json").write_text(as_json(results))
    person.arrive()
    person.press("Open saved numbers")
    person.page.set_input_files("input[type=file]", tmp_path / "mine.json")
    person.waits_for(".st-key-profile_picture .main-svg", "L2.0")
    eventually(lambda: person.holds("profile_num_heads") == "1, 4" and person.holds("profile_embed_dim") == "8")
    person.page.keyboard.press("Escape")
    person.widget("popover_save").get_by_role("button").first.click()
    with person.page.expect_download() as download:
        person.widget("save_now").get_by_role("button").click()
    assert download.value.suggested_filename == "profile.png" and download.value.path().read_bytes().startswith(b"\x89PNG")
    person.page.keyboard.press("Escape")
