"""What is measured, in which order, and what happens to what cannot be: with a worker that only pretends, and once with a real one."""

import json
import os

import pytest

from mha_viz.core.cost import call_flops, call_memory
from mha_viz.core.rules import Wrong
from mha_viz.settings.profile import Profile
from mha_viz.studies.profile_process import Worker
from mha_viz.studies.profile_results import Results, as_json, exponent, of_json
from mha_viz.studies.profiling import (
    CALIBRATION,
    PEAK,
    SECONDS,
    SKIPPED,
    WAITING,
    WARMED,
    Pace,
    Point,
    held,
    in_words,
    measure,
    points_of,
    request,
)
from mha_viz.studies.quality import read_measured

SMALL = Profile(embed_dim=8, num_heads=(1, 2), seq_len=(4, 8), need_weights="on", repeats=3)
PLENTY = 2**40


class Pretended:
    """A worker that answers at once: a call takes L² microseconds and L KiB. ``dies`` are the lengths that end it, ``hangs`` those that it
    never answers."""

    dies = hangs = ()
    made = ()

    def __init__(self, threads):
        self.asked, self.closed = None, False
        type(self).made += (self,)

    def ask(self, **request):
        assert not self.closed
        self.asked = request

    def said(self):
        do, length = self.asked["do"], self.asked.get("seq_len", 1)
        if length in self.dies:
            self.closed = True
            return {"died": True}
        if length in self.hangs:
            return None
        return {"value": {"seconds": length**2 / 1e6, "calibration": 0.001, "peak": 1024 * length}[do]}

    def close(self):
        self.closed = True


@pytest.fixture
def pretended():
    return type("One", (Pretended,), {})


def results_of(profile, start, **options):
    results = Results(profile)
    for event in measure(profile, start, PLENTY, **options):
        results.add(event)
    return results


def test_peaks_come_first_and_times_in_turn_after_one_that_warms_up(pretended):
    events = [(event.kind, event.point) for event in measure(SMALL, pretended, PLENTY)]
    points = points_of(SMALL)
    peaks, warmed, turn = ([(kind, point) for point in points] for kind in (PEAK, WARMED, SECONDS))
    assert events == peaks + warmed + 3 * [(CALIBRATION, None), *turn] + [(CALIBRATION, None)]
    assert all(worker.closed for worker in pretended.made)


def test_both_ways_stand_beside_each_other():
    points = points_of(Profile(num_heads=(2,), seq_len=(4, 8)))
    assert points == [Point(True, 2, 4), Point(False, 2, 4), Point(True, 2, 8), Point(False, 2, 8)]


def test_what_would_not_fit_is_skipped_with_the_estimate_and_never_tried(pretended):
    free = 2 * (call_memory(1, 1, 8, 8) + held(SMALL, 8))  # one head of eight tokens just fits
    events = list(measure(SMALL, pretended, free))
    skipped = [event for event in events if event.kind == SKIPPED]
    assert [event.point for event in skipped] == [Point(True, 2, 8)]
    assert "would take" in skipped[0].value and "tokens would fit" in skipped[0].value
    assert {event.point for event in events if event.kind == SECONDS} == {*points_of(SMALL)} - {skipped[0].point}


def test_a_point_whose_process_dies_is_skipped_and_the_others_go_on(pretended):
    pretended.dies = (8,)
    results = results_of(SMALL, pretended)
    assert {row.point.seq_len: bool(row.skipped) for row in results.rows} == {4: False, 8: True}
    assert "memory runs out" in results.rows[-1].skipped and results.share == 1
    assert all(len(row.seconds) == 3 for row in results.rows if row.point.seq_len == 4)


def test_the_layer_and_all_inputs_have_to_fit_too(pretended):
    size, E = 4, 8
    assert held(SMALL, 8) == size * (4 * E * E + 4 * E + (4 + 8) * E)
    skipped = [event for event in measure(SMALL, pretended, 2 * size * 4 * E * E) if event.kind == SKIPPED]
    assert len(skipped) == 4 and "The layer alone has" in skipped[0].value


def test_a_call_that_takes_too_long_is_ended_and_longer_ones_are_not_tried(pretended, monkeypatch):
    monkeypatch.setattr("mha_viz.studies.profiling.LONGEST", 0.0)
    profile = Profile(embed_dim=8, num_heads=(1,), seq_len=(4, 8, 16), need_weights="on", repeats=3)
    pretended.hangs = (8,)
    results = results_of(profile, pretended)
    short, hung, longer = results.rows
    assert len(short.seconds) == 3 and results.share == 1
    assert hung.skipped.startswith("took more than 0 s")
    assert longer.skipped.startswith("was not tried, as a shorter one") and not longer.seconds
    assert len(pretended.made) == 2, "another worker goes on"


def test_what_pytorch_says_is_told(pretended):
    pretended.said = lambda worker: (
        {"value": 1.0} if worker.asked["do"] == "calibration" else {"error": "can't allocate memory"}
    )
    assert all("can't allocate memory" in row.skipped for row in results_of(SMALL, pretended).rows)


def test_a_stop_ends_the_process_and_keeps_what_was_measured(pretended):
    results, events = Results(SMALL), measure(SMALL, pretended, PLENTY)
    for _ in range(8):
        results.add(next(events))
    events.close()
    assert pretended.made[-1].closed and 0 < results.share < 1
    assert [row.peak for row in results.rows] == [4096, 8192, 4096, 8192]


@pytest.mark.slow
def test_a_real_worker_measures_in_processes_of_their_own():
    tiny = Profile(embed_dim=8, num_heads=(2,), seq_len=(64, 256), mask="padding", repeats=2)
    results, waited = Results(tiny), 0
    for event in measure(tiny):
        results.add(event)
        waited += event.kind == WAITING
    assert waited, "whoever watches is asked while a process starts"
    assert results.share == 1 and all(len(row.seconds) == 2 and not row.skipped for row in results.rows)
    longest = results.rows[-1]
    formula = call_memory(1, 2, 256, 8)
    assert formula / 2 < longest.peak < 3 * formula + 2**21


def answered(worker):
    while (said := worker.said()) is None:
        pass
    return said


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here, so that the worker itself would die")
def test_a_fork_that_dies_leaves_its_worker_and_a_worker_that_is_gone_says_so():
    worker = Worker(1)
    worker.ask(
        do="peak", **request(SMALL, Point(True, 3, 4))
    )  # three heads: what the fork runs fails, as nothing else here does
    assert answered(worker) == {"died": True} and not worker.closed
    worker.ask(do="calibration")
    assert answered(worker)["value"] > 0
    worker.close()
    worker.ask(do="calibration")
    assert answered(worker) == {"died": True} and worker.closed


def test_exponents_are_those_of_the_longest_lengths():
    assert exponent([(1, 9.0), (2, 4.0), (4, 16.0), (8, 64.0)]) == pytest.approx(2)
    assert exponent([(4, 1.0)]) is None


def test_time_left_is_as_the_time_since_the_first_was_done():
    pace = Pace()
    assert pace.left(0.0, now=100.0) is None
    assert pace.left(0.2, now=110.0) is None, "what comes before it comes once"
    assert pace.left(0.4, now=120.0) == pytest.approx(30)
    assert in_words(30.4) == "about 30 s left" and in_words(150) == "about 2 min left"


def test_a_share_is_one_of_the_time_and_not_of_the_calls(pretended):
    """Eight tokens and 8,192: when all short ones are done, nearly nothing is."""
    profile = Profile(embed_dim=64, num_heads=(1,), seq_len=(8, 8192), need_weights="on", repeats=3)
    results = Results(profile)
    for event in measure(profile, pretended, PLENTY):
        results.add(event)
        if event.kind == PEAK:
            break
    assert 0 < results.share < 0.05


def test_a_machine_that_others_use_or_that_is_not_steady_is_busy(pretended):
    results = results_of(SMALL, pretended)
    results.machine["cores"], results.others = 2, 0.1
    assert not results.busy and "was quiet" in results.trust
    results.others = 1.9
    assert results.busy and "Other work used 1.9 of 2 cores" in results.trust
    results.others, results.calibration = 0.0, [1.0, 1.0, 2.0, 1.0]
    assert results.busy and "was busy" in results.trust


def test_results_are_kept_and_read(pretended):
    pretended.dies = (8,)
    results = results_of(SMALL, pretended)
    again = of_json(as_json(results))
    assert as_json(again) == as_json(results)
    assert [row.skipped for row in again.rows] == [row.skipped for row in results.rows]
    assert (
        again.command == "python -m mha_viz profile --embed-dim 8 --num-heads 1,2 --seq-len 4,8 --need-weights on --repeats 3"
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda told: [],
        lambda told: told | {"measured": [{"point": {"need_weights": True, "num_heads": 9, "seq_len": 4}, "seconds": []}]},
        lambda told: told | {"calibration": [float("nan")]},
        lambda told: told | {"profile": told["profile"] | {"seq_len": [0]}},
        lambda told: told | {"calibration": [1e300]},
        lambda told: told | {"calibration": [0, 0]},
        lambda told: told | {"measured": [one | {"seconds": [0.0]} for one in told["measured"]]},
        lambda told: told | {"others": "many"},
        lambda told: told | {"measured": told["measured"][1:]},
        lambda told: told | {"measured": [one | {"seconds": 3} for one in told["measured"]]},
        lambda told: told | {"profile": told["profile"] | {"seq_len": list(range(2, 100_000))}},
        lambda told: told | {"machine": told["machine"] | {"torch": None}},
        lambda told: told | {"machine": told["machine"] | {"cores": 0}},
        lambda told: told | {"machine": {name: value for name, value in told["machine"].items() if name != "processor"}},
        lambda told: {name: value for name, value in told.items() if name != "machine"},
    ],
)
def test_what_is_no_result_is_refused(spoil):
    told = json.loads(as_json(Results(SMALL)))
    with pytest.raises(Wrong):
        of_json(json.dumps(spoil(told)))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"trial":' * 100_000, '{"profile": "\\ud800"}', "{"])
def test_results_that_are_no_json_are_refused(text):
    for read in (of_json, read_measured):
        with pytest.raises(Wrong, match="results"):
            read(text)


def test_formulas_by_hand():
    assert call_flops(1, 2, 4) == 2 * (4 * 2 * 4 * 4 + 2 * 2 * 2 * 4)
    assert call_memory(1, 2, 64, 8) == 4 * (2 * 2 * 64 * 64 + 4 * 64 * 8), "two maps a head, q, k, v and the scaled q"
    assert call_memory(3, 2, 64, 8, need_weights=False, dtype="bfloat16") == 2 * 6 * 3 * 64 * 8
    assert call_memory(1, 2, 64, 8, causal=True) - call_memory(1, 2, 64, 8) == 4 * 64 * 64


@pytest.mark.parametrize(
    ("given", "argument", "right"),
    [
        ({"num_heads": (1, 3)}, "num_heads", {"num_heads": (1, 2)}),
        ({"num_heads": (3, 5, 8)}, "num_heads", {"num_heads": (2, 4, 8)}),
        ({"num_heads": (9999,)}, "num_heads", {"num_heads": (128,)}),
        ({"num_heads": ()}, "num_heads", {"num_heads": (1, 2, 4, 8)}),
        ({"seq_len": (64, 0)}, "seq_len", {"seq_len": (64, 2)}),
        ({"seq_len": "many"}, "seq_len", {"seq_len": (64, 128, 256, 512, 1024)}),
        ({"seq_len": (10**9,)}, "seq_len", {"seq_len": (131072,)}),
        ({"mask": "window"}, "mask", {"mask": "none"}),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused_with_the_nearest_right(given, argument, right):
    with pytest.raises(Wrong) as found:
        Profile(**given)
    assert found.value.argument == argument and found.value.nearest[0] == right
    Profile(**right)


def test_heads_and_lengths_ascend_and_none_stands_twice():
    assert Profile(num_heads=(8, 1, 8)).num_heads == (1, 8)


def test_a_process_that_ends_while_it_is_being_ended_is_no_error(monkeypatch):
    """As by a Ctrl-C, which a terminal sends to all of them."""
    worker = Worker(1)
    monkeypatch.setattr(type(worker), "closed", False)
    worker._process.kill()
    worker._process.wait()  # nothing of this number is there any more
    worker.close()
