"""Time, memory and work of attention by length and head count, measured on this machine while somebody watches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mha_viz.core.cost import call_flops, call_memory
from mha_viz.core.decode import SIZES
from mha_viz.core.memory import free, largest, readable_size
from mha_viz.settings.profile import BOTH, Profile
from mha_viz.studies.profile_process import Answer, Request, Worker

PEAK, WARMED, SECONDS, CALIBRATION, SKIPPED, WAITING = "peak", "warmed", "seconds", "calibration", "skipped", "waiting"
WARMING = 1  # the turn after that of the peaks: nothing is kept of it
LONGEST = 60.0  # seconds that a call may take
PROCESS, CALL = 0.05, 3e-4  # seconds that a process and a call are thought to take whatever is in them
RATE, CELL = 2e10, 60  # operations a second that are thought to be done, and how many a cell of a map is worth


@dataclass(frozen=True, order=True)
class Point:
    """One call that is measured."""

    need_weights: bool
    num_heads: int
    seq_len: int


class Measuring(Protocol):
    """A process that is asked and answers, as a Worker does."""

    @property
    def closed(self) -> bool: ...

    def ask(self, **request: object) -> None: ...

    def said(self) -> Answer | None: ...

    def close(self) -> None: ...


Start: TypeAlias = Callable[[int], Measuring]  # of so many threads


@dataclass(frozen=True)
class Event:
    """What became known: of a ``point`` its "peak" in bytes, that it is "warmed" up, the "seconds" of one call, or why it is "skipped", in
    words; of the machine the seconds of the fixed product, "calibration"; or nothing, "waiting", so that whoever watches may stop."""

    kind: str
    point: Point | None = None
    value: float | str | None = None


def points_of(profile: Profile) -> list[Point]:
    """Every Point of a Profile, in the order in which they take turns."""
    ways = (True, False) if profile.need_weights == BOTH else (profile.need_weights == "on",)
    return [Point(way, heads, length) for length in profile.seq_len for heads in profile.num_heads for way in ways]


def predicted(profile: Profile, point: Point) -> int:
    """Bytes of one call by formula."""
    return call_memory(
        profile.batch_size,
        point.num_heads,
        point.seq_len,
        profile.embed_dim,
        need_weights=point.need_weights,
        causal=profile.mask == "causal",
        dtype=profile.dtype,
    )


def held(profile: Profile, length: int) -> int:
    """Bytes that the worker holds beside a call of this length: the layer, and input and mask of every length up to it."""
    N, E, size = profile.batch_size, profile.embed_dim, SIZES[profile.dtype]
    lengths = {length, *(shorter for shorter in profile.seq_len if shorter < length)}
    masks = sum(one * one for one in lengths) if profile.mask == "causal" else 0  # a byte each
    return size * (4 * E * E + 4 * E + N * E * sum(lengths)) + masks


def thought(profile: Profile, point: Point) -> float:
    """Seconds that a call is thought to take, roughly: by these it is told how far all is, and not by counting calls, as the longest
    take nearly all of the time."""
    N, L, E = profile.batch_size, point.seq_len, profile.embed_dim
    return CALL + (call_flops(N, L, E) + CELL * N * point.num_heads * L * L) / RATE


def outlook(profile: Profile) -> str:
    """In words, how much there is to measure."""
    points = points_of(profile)
    most = readable_size(max(predicted(profile, point) for point in points))
    return f"{len(points)} points, each called {profile.repeats + 2} times; the largest takes {most} by formula."


def why_skipped(profile: Profile, point: Point, available: int) -> str | None:
    """Why a Point is not tried where ``available`` bytes are free, with the longest length that would be; None where it fits."""

    def needed(length: int = point.seq_len) -> int:
        return predicted(profile, Point(point.need_weights, point.num_heads, length)) + held(profile, length)

    if needed() <= available / 2:
        return None
    most = largest(point.seq_len, lambda length: needed(length) <= available / 2)
    fits = f"Up to {most:,} tokens would fit." if most else f"The layer alone has {readable_size(held(profile, 0))}."
    call, beside, may = (
        readable_size(size) for size in (predicted(profile, point), held(profile, point.seq_len), available / 2)
    )
    return f"would take {call} beside {beside} of layer and input, and {may} may be used, half of what is free. {fits}"


def measure(profile: Profile, start: Start = Worker, available: int | None = None) -> Generator[Event, None, None]:
    """Events until every Point is measured: first what would not fit, then peaks, each in a fresh process, then times.

    Times are taken in turn, A B C A B C …, ``profile.repeats`` times after a turn that only warms up, so that what else the machine
    does meets all alike; before each turn, and after the last, the fixed product is timed.
    A Point whose process dies is skipped, and the others go on. So is one that takes more than LONGEST, with all that are longer still.
    Closing the generator ends the processes. ``available`` is in bytes, what is free now where None.
    """
    available = free() if available is None else available
    left = []
    for point in points_of(profile):
        why = why_skipped(profile, point, available)
        if why is None:
            left.append(point)
        else:
            yield Event(SKIPPED, point, why)
    yield from _in_turn(profile, left, start)


def _in_turn(profile: Profile, left: list[Point], start: Start) -> Iterator[Event]:
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
                if point not in left:  # since a shorter one took too long
                    continue
                if do == PEAK and not forks:
                    worker.close()
                worker = _living(worker, profile, start)
                said = yield from _waited(worker, do, **request(profile, point))
                if "value" in said:
                    yield Event(WARMED, point) if turn == WARMING else Event(do, point, said["value"])
                    continue
                for one in with_longer(point, left) if "slow" in said else [point]:
                    left.remove(one)
                    yield Event(SKIPPED, one, failed(profile, one, said, tried=point))
        worker = _living(worker, profile, start)
        yield from _calibrated(worker, turn + 1)
    finally:
        worker.close()


def _living(worker: Measuring, profile: Profile, start: Start) -> Measuring:
    """The worker, or another one where it is no more."""
    return start(profile.threads) if worker.closed else worker


def _calibrated(worker: Measuring, turn: int) -> Generator[Event, None, None]:
    """The fixed product timed, before ``turn``; the first only warms up."""
    said = yield from _waited(worker, CALIBRATION)
    if "value" in said and turn != WARMING:
        yield Event(CALIBRATION, None, said["value"])


def _waited(worker: Measuring, do: str, **request: object) -> Generator[Event, None, Answer]:
    """The answer of the worker, with an Event as long as there is none; {"slow": True} where it takes more than LONGEST: that ends it."""
    worker.ask(do=do, **request)
    until = time.monotonic() + LONGEST
    while (said := worker.said()) is None:
        if time.monotonic() > until:
            worker.close()
            return {"slow": True}
        yield Event(WAITING)
    return said


def with_longer(point: Point, points: Iterable[Point]) -> list[Point]:
    """This Point and those of ``points`` that differ in nothing but a greater length."""
    same = point.need_weights, point.num_heads
    return [one for one in points if (one.need_weights, one.num_heads) == same and one.seq_len >= point.seq_len]


def request(profile: Profile, point: Point) -> Request:
    """A Point as the worker takes it."""
    return {
        "embed_dim": profile.embed_dim,
        "num_heads": point.num_heads,
        "seq_len": point.seq_len,
        "batch_size": profile.batch_size,
        "dtype": profile.dtype,
        "need_weights": point.need_weights,
        "mask": profile.mask,
    }


def failed(profile: Profile, point: Point, said: Answer, tried: Point) -> str:
    """Why a Point has no numbers, by what was said when it was ``tried``, or a shorter one."""
    estimate = f"By formula it takes {readable_size(predicted(profile, point))}."
    if "slow" in said:
        which = "took" if point == tried else "was not tried, as a shorter one took"
        return f"{which} more than {LONGEST:.0f} s, as long as a call may take here. All others go on."
    if "error" in said:
        return f"PyTorch says: {said['error']}. {estimate}"
    return f"Its process died, as one does that the system stops when memory runs out. {estimate} All others go on."


class Pace:
    """How long what is left will take, by what was done since the first of it was: what only comes once, as the start of a process, is no
    part of that."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None  # when, and the share that was done

    def left(self, share: float, now: float | None = None) -> float | None:
        """Seconds that are left where this ``share`` of all is done; None as long as nobody can tell."""
        now = time.monotonic() if now is None else now
        if share and self._first is None:
            self._first = now, share
        if self._first is None or share <= self._first[1]:
            return None
        began, before = self._first
        return (now - began) * (1 - share) / (share - before)


def in_words(seconds: float) -> str:
    """ "about 12 s left", "about 3 min left"."""
    return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"
