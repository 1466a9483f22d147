"""Two ways of doing the same, timed side by side."""

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


def interleaved(ours, theirs, rounds):
    """(median seconds of ``ours``, median seconds of ``theirs``), called A B A B … so that both meet the same moods of the machine.

    Two rounds before do not count. Results are let go, and garbage is collected, outside the clock.
    """
    times = {ours: [], theirs: []}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds + 2):
            for call, taken in times.items():
                start = time.perf_counter()
                result = call()
                taken.append(time.perf_counter() - start)
                del result
    finally:
        gc.enable()
    return tuple(statistics.median(taken[2:]) for taken in times.values())


def milliseconds(seconds):
    return f"{seconds * 1000:.3g} ms"
