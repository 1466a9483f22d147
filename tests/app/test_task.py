"""Work in slices, without a page: how much a slice takes in, and what stops, waits, ends and is kept."""

import threading
import time

import pytest

from mha_viz.app import task
from mha_viz.app.task import Done, Task

PATIENCE = 30


@pytest.fixture
def closed():
    """What the steps of ``counting`` say when they are closed."""
    return []


@pytest.fixture
def counting(closed):
    """``counting(total, **fields)``: a Task that counts up."""

    def made(total, **fields):
        def steps():
            try:
                yield from range(total)
            finally:
                closed.append(True)

        return Task(Done(total), steps(), **fields)

    return made


def test_a_slice_takes_at_least_one_step_and_then_what_its_time_allows(counting):
    now = counting(5)
    now.run(0)
    assert now.results == [0] and now.results.share == 0.2 and now.going
    now.run(PATIENCE, enough=lambda: len(now.results) == 3)
    assert now.results == [0, 1, 2] and now.going and not now.complete
    now.run(PATIENCE)
    assert now.results == [0, 1, 2, 3, 4] and now.results.share == 1 and now.complete and not now.going
    now.run(PATIENCE)
    assert len(now.results) == 5


def test_a_slice_ends_soon_after_its_time():
    def steps():
        while True:
            time.sleep(0.01)
            yield

    now, begun = Task(Done(1), steps()), time.monotonic()
    now.run(0.1)
    assert 0.1 <= time.monotonic() - begun < PATIENCE and now.going


def test_stop_ends_it_and_keeps_what_is_done(counting, closed):
    now = counting(5)
    now.run(0)
    now.stop()
    assert closed == [True] and not now.going and not now.complete
    now.go_on()
    now.run(PATIENCE)
    assert now.results == [0] and not now.going


def test_what_resumes_waits_after_a_stop_and_goes_on_from_there(counting, closed):
    now = counting(3, resumes=True)
    now.run(0)
    now.stop()
    now.run(PATIENCE)
    assert now.results == [0] and not closed
    now.go_on()
    now.run(PATIENCE)
    assert now.results == [0, 1, 2] and now.complete


def test_what_resumes_ends_with_its_session(counting, closed):
    now = counting(3, resumes=True)
    now.run(0)
    task.end_all([now])
    until = time.monotonic() + PATIENCE
    while not closed and time.monotonic() < until:
        time.sleep(0.01)
    assert closed == [True] and now.results == [0] and not now.complete


def test_a_step_is_looked_at_before_the_next_one(counting):
    now = counting(3, every=PATIENCE)
    now.run(0)
    now.run(0)
    assert now.results == [0] and now.going
    now.due = 0
    now.run(PATIENCE)
    assert now.results == [0, 1], "a slice does not wait for a step"


def test_a_step_that_breaks_ends_the_work():
    def steps():
        yield 1
        raise RuntimeError

    now = Task(Done(2), steps(), alone=True)
    assert task.take_turn(now)
    with pytest.raises(RuntimeError):
        now.run(PATIENCE)
    assert now.results == [1] and not now.going and not now.complete and task._taken["by"] is None


def test_what_is_stopped_while_a_step_is_on_its_way_ends_after_it():
    arrived, may_go_on, closed = threading.Event(), threading.Event(), []

    def steps():
        try:
            arrived.set()
            may_go_on.wait(PATIENCE)
            yield 1
            yield 2
        finally:
            closed.append(True)

    now = Task(Done(2), steps())
    at_work = threading.Thread(target=now.run, args=(PATIENCE,))
    at_work.start()
    arrived.wait(PATIENCE)
    stopping = threading.Thread(target=now.stop)
    stopping.start()
    while now.going:
        time.sleep(0.01)
    may_go_on.set()
    at_work.join(PATIENCE)
    stopping.join(PATIENCE)
    assert now.results == [1] and closed == [True]


def test_one_that_is_alone_runs_at_a_time(monkeypatch, counting):
    one, other = counting(1, alone=True), counting(1, alone=True)
    monkeypatch.setitem(task._taken, "by", None)
    assert task.take_turn(one) and not task.take_turn(other) and task.take_turn(one)
    one.stop()
    assert task.take_turn(other), "who stopped is not waited for"
    monkeypatch.setitem(task._taken, "until", 0.0)
    assert task.take_turn(counting(1, alone=True)), "who went away is not waited for"
