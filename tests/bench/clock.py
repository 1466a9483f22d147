"""Ways of doing the same, timed side by side."""

import gc
import statistics
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, the figure, what it may be at most, and how it was measured."""

    what: str
    measured: str
    target: str
    method: str


def interleaved(calls, rounds, clock=time.perf_counter, before=2):
    """The median seconds of each of the ``calls``, made A B A B … so that all meet the same moods of the machine.

    As many rounds as ``before`` says do not count. Results are let go, and garbage is collected, outside the ``clock``.
    """
    times = [[] for _ in calls]
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds + before):
            for call, taken in zip(calls, times, strict=True):
                start = clock()
                result = call()
                taken.append(clock() - start)
                del result
    finally:
        gc.enable()
    return tuple(statistics.median(taken[before:]) for taken in times)


def milliseconds(seconds):
    return f"{seconds * 1000:.3g} ms"
