"""The Profile page, run without a browser and without measuring anything."""

import pytest

from mha_viz.app import task
from mha_viz.app.task import Task
from mha_viz.settings.profile import Profile
from mha_viz.studies.profile_results import Results, as_json
from mha_viz.studies.profiling import PEAK, SECONDS, WAITING, Event
from mha_viz.studies.quality import Trial, try_out
from tests.app.screen import APP, AppTest, errors, held, page_text, press, set_to, to_page

SMALL = Profile(embed_dim=8, num_heads=(1, 2), seq_len=(4, 8), repeats=1)
ADDRESS = {"embed_dim": "8", "num_heads": "1,2", "seq_len": "4,8", "repeats": "1"}


def page(**address):
    return to_page(AppTest.from_file(str(APP), default_timeout=60), "profile", **address)


def pictured(at):
    return any(one.key == "profile_picture" for one in at.get("plotly_chart"))


def done(profile, rows=slice(None)):
    results = Results(profile)
    for row in results.rows[rows]:
        results.add(Event(PEAK, row.point, 2**20))
        results.add(Event(SECONDS, row.point, 0.001))
    return results


def test_the_address_holds_what_is_measured():
    at = page(**ADDRESS)
    assert held(at)["profile_num_heads"] == "1, 2" and held(at)["profile_embed_dim"] == 8
    assert "8 points, each called 3 times; the largest takes" in page_text(at)
    at = set_to(at, "profile_seq_len", "4,16")
    assert not at.exception and at.query_params["seq_len"] == "4,16"


@pytest.mark.parametrize(
    ("name", "typed", "said", "offer"),
    [
        ("num_heads", "1, 3", "128 = 3 × 42 + 2", "num_heads = 1,2"),
        ("seq_len", "64, many", "'many' is not", "seq_len = 64,2"),
        ("num_heads", "", "at least one number", "num_heads = 1,2,4,8"),
        ("embed_dim", 0, "a whole number from 1", "embed_dim = 1"),
    ],
)
def test_what_makes_no_sense_is_said_and_mended_by_one_click(name, typed, said, offer):
    at = set_to(page(), f"profile_{name}", typed)
    assert said in errors(at)[0] and next(one for one in at.get("button") if one.key == "profile_go").disabled
    if name != "embed_dim":
        assert errors(press(at, offer)) == []


def test_a_bad_address_falls_back_and_is_said():
    at = page(seq_len="0", num_heads="2")
    assert "cannot be shown" in page_text(at) and held(at)["profile_num_heads"] == "2" and not at.exception


def test_what_is_measured_by_then_stays_where_somebody_stops(monkeypatch):
    results = done(SMALL, slice(2))

    def waits():
        while True:
            yield Event(WAITING)

    at = page(**ADDRESS)
    at.session_state.task_profile = Task(results, waits(), alone=True)
    monkeypatch.setattr(task, "SLICE", 0)
    at = at.run()
    assert any(one.label == "Stop" for one in at.get("button")) and not pictured(at)
    at = next(one for one in at.get("button") if one.label == "Stop").click().run()
    assert pictured(at) and "python -m mha_viz profile --embed-dim 8" in page_text(at) and not at.exception


def test_a_picture_of_something_else_is_not_current():
    at = page(**ADDRESS)
    at.session_state.task_profile = Task(done(SMALL), None)
    assert "Not current" not in page_text(at.run())
    at = set_to(at, "profile_repeats", 2)
    assert "Not current" in page_text(at)


def test_saved_numbers_are_opened(monkeypatch):
    at = page()
    at.get("file_uploader")[0].upload("found.json", as_json(done(SMALL)).encode(), "application/json").run()
    at = at.run()
    assert not at.exception and held(at)["profile_num_heads"] == "1, 2" and pictured(at)


def test_a_file_of_something_else_says_what_it_must_hold():
    at = page()
    at.get("file_uploader")[0].upload("other.json", b'{"a": 1}', "application/json").run()
    assert not at.exception and "there is no 'profile' in it" in " ".join(errors(at))


def test_quality_stands_beside_it_and_a_short_version_is_trained_here(monkeypatch):
    at = page()
    said = page_text(at)
    assert "1 head 0.572, 2 heads 1.000" in said and "5 seeds" in said and "python -m mha_viz quality look-both-ways" in said
    monkeypatch.setattr("mha_viz.studies.quality.short", lambda task: Trial(task, num_heads=(1, 2), seeds=(3,), steps=2))
    monkeypatch.setattr("mha_viz.studies.quality.study", try_out)
    at = press(at.run(), "Train a short version here: 2 head counts, 2 steps, 1 seed")
    while any(one.label == "Stop" for one in at.get("button")):
        at = at.run()
    assert "2 steps, 1 seed:" in page_text(at) and not at.exception
