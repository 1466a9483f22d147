"""Time, memory and work of attention by length and head count, measured on this machine while somebody watches."""

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import psutil

from mha_viz.core.attend import largest, readable_size
from mha_viz.core.cost import call_memory
from mha_viz.settings.profile import BOTH
from mha_viz.studies.profile_process import Worker

PEAK, SECONDS, CALIBRATION, SKIPPED, WAITING = "peak", "seconds", "calibration", "skipped", "waiting"
WARMING = 1  # the turn after that of the peaks: nothing is kept of it


@dataclass(frozen=True, order=True)
class Point:
    """One call that is measured."""

    need_weights: bool
    num_heads: int
    seq_len: int


@dataclass(frozen=True)
class Event:
    """What became known: of a ``point`` its "peak" in bytes, the "seconds" of one call, or why it is "skipped", in words; of the machine
    the seconds of the fixed product, "calibration"; or nothing, "waiting", so that whoever watches may stop."""

    kind: str
    point: Point | None = None
    value: float | str | None = None


def points_of(profile):
    """Every Point of a Profile, in the order in which they take turns."""
    ways = (True, False) if profile.need_weights == BOTH else (profile.need_weights == "on",)
    return [Point(way, heads, length) for length in profile.seq_len for heads in profile.num_heads for way in ways]


def predicted(profile, point):
    """Bytes of one call by formula."""
    return call_memory(
        profile.batch_size, point.num_heads, point.seq_len, profile.embed_dim,
        need_weights=point.need_weights, causal=profile.mask == "causal", dtype=profile.dtype,
    )  # fmt: skip


def outlook(profile):
    """In words, how much there is to measure."""
    points = points_of(profile)
    most = readable_size(max(predicted(profile, point) for point in points))
    return f"{len(points)} points, each called {profile.repeats + 2} times; the largest takes {most} by formula."


def why_skipped(profile, point, available):
    """Why a Point is not tried where ``available`` bytes are free, with the longest length that would be; None where it fits."""

    def needed(length=point.seq_len):
        return predicted(profile, Point(point.need_weights, point.num_heads, length))

    if needed() <= available / 2:
        return None
    most = largest(point.seq_len, lambda length: needed(length) <= available / 2)
    return (
        f"would take {readable_size(needed())}, and {readable_size(available / 2)} may be used, half of what is free. "
        f"Up to {most:,} tokens would fit."
    )


def measure(profile, start=Worker, available=None) -> Iterator[Event]:
    """Events until every Point is measured: first what would not fit, then peaks, each in a fresh process, then times.

    Times are taken in turn, A B C A B C …, ``profile.repeats`` times after a turn that only warms up, so that what else the machine
    does meets all alike; before each turn, and after the last, the fixed product is timed.
    A Point whose process dies is skipped, and the others go on.
    Closing the generator ends the processes. ``available`` is in bytes, what is free now where None.
    """
    available = psutil.virtual_memory().available if available is None else available
    left = []
    for point in points_of(profile):
        why = why_skipped(profile, point, available)
        if why is None:
            left.append(point)
        else:
            yield Event(SKIPPED, point, why)
    yield from _in_turn(profile, left, start)


def _in_turn(profile, left, start):
    """The peaks of all Points that are ``left``, then their times, turn by turn; one that fails is taken out.

    The worker forks for each peak, and computes nothing by itself before the first time; where it cannot fork, each has one of its own.
    """
    worker, forks = start(profile.threads), hasattr(os, "fork")
    try:
        for turn, do in enumerate([PEAK, SECONDS] + [SECONDS] * profile.repeats):
            if do == SECONDS:
                worker = _living(worker, profile, start)
                yield from _calibrated(worker, turn)
            for point in tuple(left):
                if do == PEAK and not forks:
                    worker.close()
                worker = _living(worker, profile, start)
                said = yield from _waited(worker, do, **request(profile, point))
                if "value" not in said:
                    left.remove(point)
                    yield Event(SKIPPED, point, failed(profile, point, said))
                elif turn != WARMING:
                    yield Event(do, point, said["value"])
        worker = _living(worker, profile, start)
        yield from _calibrated(worker, turn + 1)
    finally:
        worker.close()


def _living(worker, profile, start):
    """The worker, or another one where it is no more."""
    return start(profile.threads) if worker.closed else worker


def _calibrated(worker, turn):
    """The fixed product timed, before ``turn``; the first only warms up."""
    said = yield from _waited(worker, CALIBRATION)
    if "value" in said and turn != WARMING:
        yield Event(CALIBRATION, None, said["value"])


def _waited(worker, do, **request):
    """The answer of the worker, with an Event as long as there is none."""
    worker.ask(do=do, **request)
    while (said := worker.said()) is None:
        yield Event(WAITING)
    return said


def request(profile, point):
    """A Point as the worker takes it."""
    same = {name: getattr(profile, name) for name in ("embed_dim", "batch_size", "dtype", "mask")}
    return same | asdict(point)


def failed(profile, point, said):
    """Why a Point that was tried has no numbers."""
    estimate = f"By formula it takes {readable_size(predicted(profile, point))}."
    if "error" in said:
        return f"PyTorch says: {said['error']}. {estimate}"
    return f"Its process died, as one does that the system stops when memory runs out. {estimate} All others go on."


def expected(profile):
    """How many peaks and times ``measure`` gives where nothing is skipped."""
    return len(points_of(profile)) * (1 + profile.repeats)


def left_of(began, share, now=None):
    """Seconds that are left by what was taken for this ``share`` of all since ``began``; None before anything is done."""
    now = time.monotonic() if now is None else now
    return (now - began) * (1 - share) / share if share else None
