"""One budget for a process: concurrent work stays within it, what is kept stays within it, and memory is given back."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mha_viz.core.budget import Budget
from mha_viz.core.rules import Wrong

MB, GB = 2**20, 2**30


class Machine:
    """A machine of so many bytes, of which ``taken`` are in use."""

    def __init__(self, size):
        self.size, self.taken = size, 0

    def free(self):
        return self.size - self.taken


def refuse(available):
    raise Wrong("seq_len", 9, f"{available} bytes may be used.", [])


def test_concurrent_work_stays_within_half_of_what_is_free():
    """Eight at once, of which three fit: the others wait for them, and all get what they asked for."""
    machine, running, most = Machine(4 * GB), [], []
    budget, lock = Budget(machine.free), threading.Lock()

    def work():
        with budget.reserved(400 * MB, refuse):
            with lock:
                running.append(1)
                most.append(len(running))
            time.sleep(0.03)
            with lock:
                running.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(most) == 8 and 1 < max(most) <= 8 and budget.in_work == 0
    available = 4 * GB - (max(most) - 1) * 400 * MB
    assert available / 2 >= 400 * MB, "the last that began fitted beside the others"


def test_work_that_never_fits_is_refused_after_a_while_with_what_may_be_used():
    budget = Budget(lambda: 600 * MB, wait=0.05)
    with pytest.raises(Wrong, match=f"{600 * MB} bytes may be used"), budget.reserved(400 * MB, refuse):
        pass
    with budget.reserved(300 * MB, refuse), pytest.raises(Wrong, match=f"{300 * MB} bytes"), budget.reserved(200 * MB, refuse):
        pass
    assert budget.in_work == 0


def test_what_would_not_fit_even_alone_is_refused_at_once_and_nothing_is_let_go_for_it(monkeypatch):
    machine = Machine(600 * MB)
    budget = Budget(machine.free)
    monkeypatch.setattr(budget._changed, "wait", lambda seconds: pytest.fail("it waits in vain"))
    for visitor in ("one", "other"):
        budget.kept(visitor, lambda: "kept", 20 * MB, refuse, visitor)
    with budget.reserved(100 * MB, refuse), pytest.raises(Wrong), budget.reserved(400 * MB, refuse, "one"):
        pass
    assert budget.holds("one") and budget.holds("other")


def test_who_was_just_refused_does_not_wait_again(monkeypatch):
    """A page asks several times for what it shows."""
    budget, waits = Budget(lambda: 600 * MB, wait=0.3), []
    wait = budget._changed.wait
    monkeypatch.setattr(budget._changed, "wait", lambda seconds: waits.append(seconds) or wait(seconds))
    with budget.reserved(200 * MB, refuse):
        for again in (False, True, True):
            waits.clear()
            with pytest.raises(Wrong), budget.reserved(400 * MB, refuse, "ann"):
                pass
            assert bool(waits) != again


def test_what_fails_gives_its_reservation_back():
    budget = Budget(lambda: GB)
    with pytest.raises(KeyError), budget.reserved(400 * MB, refuse):
        raise KeyError
    assert budget.in_work == 0
    with pytest.raises(KeyError):
        budget.kept("a", lambda: {}["a"], 400 * MB, refuse)
    assert budget.in_work == 0 and budget.kept("a", lambda: 1, 400 * MB, refuse) == 1


def test_small_work_is_never_held_up():
    with Budget(lambda: 0).reserved(MB, refuse):
        pass


def test_what_is_kept_is_made_once_whoever_asks():
    budget, made = Budget(lambda: 8 * GB), []

    def make():
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    found = []
    threads = [threading.Thread(target=lambda: found.append(budget.kept("a", make, 100 * MB, refuse))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(made) == 1 and found == made * 4


def test_what_was_used_longest_ago_gives_way_to_the_limit():
    budget = Budget(lambda: 100 * GB, limit=250 * MB)
    for name in "abac":
        budget.kept(name, lambda: 0, 100 * MB, refuse)
    assert [budget.holds(name) for name in "abc"] == [True, False, True] and budget.size == 200 * MB
    budget.kept("large", lambda: 0, 900 * MB, refuse)
    assert budget.holds("large") and budget.size == 900 * MB, "what was just asked for stays"


def test_what_is_kept_gives_way_to_work():
    machine = Machine(2 * GB)
    budget = Budget(machine.free)

    class Kept:
        def __init__(self):
            machine.taken += 700 * MB

        def __del__(self):
            machine.taken -= 700 * MB

    budget.kept("a", Kept, 700 * MB, refuse)
    assert machine.free() < 1400 * MB
    with budget.reserved(900 * MB, refuse):
        assert not budget.holds("a")


def test_what_others_look_at_does_not_give_way(monkeypatch):
    """It does once they have not asked for it for a while; what only the same visitor had asked for does at once."""
    free = [GB]
    budget = Budget(lambda: free[0], wait=0.01)
    budget.kept("a", lambda: 0, 100 * MB, refuse, "ann")
    free[0] = 100 * MB
    with pytest.raises(Wrong), budget.reserved(90 * MB, refuse, "ben"):
        pass
    assert budget.holds("a")
    monkeypatch.setattr("mha_viz.core.budget.IN_USE", -1)
    with pytest.raises(Wrong), budget.reserved(90 * MB, refuse, "ben"):
        pass
    assert not budget.holds("a")
    free[0] = GB
    budget.kept("b", lambda: 0, 100 * MB, refuse, "ann")
    free[0] = 100 * MB
    monkeypatch.setattr("mha_viz.core.budget.IN_USE", 60)
    with pytest.raises(Wrong), budget.reserved(90 * MB, refuse, "ann"):
        pass
    assert not budget.holds("b")


def test_what_is_large_goes_with_the_last_who_asked_for_it():
    budget = Budget(lambda: 100 * GB)
    for visitor in ("ann", "ben"):
        budget.kept("large", lambda: 0, 100 * MB, refuse, visitor)
    budget.kept("small", lambda: 0, MB, refuse, "ann")
    budget.leave("ann")
    assert budget.holds("large")
    budget.leave("ben")
    assert not budget.holds("large") and budget.holds("small")


def test_what_gave_way_is_forgotten_again_when_they_leave():
    """Who still looked at it has read it again since."""

    class Value:
        forgot = 0

        def forget(self):
            self.forgot += 1

    value, free = Value(), [GB]
    budget = Budget(lambda: free[0], wait=0.01)
    budget.kept("a", lambda: value, 100 * MB, refuse, "ann")
    free[0] = 100 * MB
    with pytest.raises(Wrong), budget.reserved(90 * MB, refuse, "ann"):
        pass
    assert value.forgot == 1 and not budget.holds("a")
    budget.leave("ben")
    assert value.forgot == 1
    budget.leave("ann")
    assert value.forgot == 2


LIMITED = """
import resource, threading
import mha_viz.core.engine
from mha_viz.core.budget import Budget
from mha_viz.core.memory import free, ran_out
from mha_viz.core.rules import Wrong
from mha_viz.settings import Settings
from mha_viz.sources.synthetic import check_size, peak_of, synthetic

synthetic(Settings())
from psutil import Process
limit = Process().memory_info().vms + 5 * 2**29  # two and a half GiB beside what PyTorch takes
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
budget, said = Budget(wait=1.0), []

def open_page(seed):
    settings = Settings(seq_len=2048, num_heads=16, embed_dim=512, batch_size=1, padding=(), seed=seed)
    def make():
        trace = synthetic(settings)
        trace.weights, trace.mean_weights
        return trace
    try:
        budget.kept(settings, make, peak_of(settings), lambda available: check_size(settings, available=available))
        said.append("a picture")
    except Wrong as wrong:
        said.append("a sentence" if wrong.argument == "seq_len" and "may be used, half of what is free" in str(wrong) else str(wrong))
    except BaseException as error:
        said.append(repr(error))

threads = [threading.Thread(target=open_page, args=(seed,)) for seed in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(sorted(said))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a limit of the address space is Linux's")
def test_eight_large_layers_at_once_under_a_limit_each_get_a_picture_or_a_sentence():
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    assert ran.returncode == 0, ran.stderr
    said = eval(ran.stdout)
    assert len(said) == 8 and set(said) <= {"a picture", "a sentence"} and "a picture" in said


def test_what_sessions_have_open_is_counted_until_it_is_closed():
    budget = Budget(Machine(8 * GB).free, limit=GB)
    budget.kept("a layer", object, 400 * MB, refuse, 1)
    budget.open("ada", "a.npz", 500 * MB, refuse)
    assert budget.holds("a layer") and budget.opened == 500 * MB
    budget.open("ada", "a.npz", 550 * MB, refuse)  # in place of what was open under that name
    budget.open("bob", "b.npz", 200 * MB, refuse)
    assert not budget.holds("a layer"), "what can be made again gives way"
    assert budget.opened_by("ada") == {"a.npz": 550 * MB}
    with pytest.raises(Wrong, match=str(274 * MB)):
        budget.open("eve", "c.npz", 300 * MB, refuse)
    assert budget.opened_by("eve") == {}
    budget.close("ada", "a.npz")
    budget.open("eve", "c.npz", 300 * MB, refuse)
    budget.open("eve", "d.npz", 300 * MB, refuse)
    budget.close("eve")
    assert budget.opened == 200 * MB
