"""What a Profile came to: numbers of each point, what is fitted to them, and whether the machine was quiet enough to trust them."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict

import psutil

from mha_viz.core.cost import call_flops
from mha_viz.core.json_text import parse_json
from mha_viz.core.rules import Wrong, whole
from mha_viz.core.versions import release
from mha_viz.settings.profile import BOTH, Profile
from mha_viz.settings.spelling import from_values, spell, to_json
from mha_viz.studies.profiling import CALIBRATION, PEAK, PROCESS, SECONDS, SKIPPED, WARMED, Point, points_of, predicted, thought

if TYPE_CHECKING:
    from mha_viz.studies.profiling import Event


FITTED = 3  # the longest lengths, to which an exponent is fitted: at short ones a call costs more than its work
UNSTEADY = 1.25  # 90th over 10th percentile of the fixed product, from which times are not to be trusted
LARGEST = 1e18  # seconds or bytes that are believed of a file
LOOK = 0.2  # seconds for which it is looked how many cores others use, before the first call


@dataclass
class Row:
    """Of one Point: the ``seconds`` of each call, its ``peak`` in bytes, and why it is ``skipped``; None and () where not known."""

    point: Point
    seconds: list[float] = field(default_factory=list)
    peak: int | None = None
    skipped: str | None = None

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """(lower, upper) quartile of the seconds, None where there are none."""
        if not self.seconds:
            return None
        if len(self.seconds) == 1:
            return self.seconds[0], self.seconds[0]
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high


class Machine(TypedDict):
    """What numbers depend on besides what is measured."""

    processor: str
    cores: int
    memory: int
    platform: str
    python: str
    torch: str
    threads: str


def machine() -> Machine:
    """What the numbers depend on besides the Profile."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory": psutil.virtual_memory().total,
        "platform": platform.system(),
        "python": platform.python_version(),
        "torch": release("torch"),
        "threads": "of PyTorch, as the profile says; OMP_WAIT_POLICY=PASSIVE",
    }


def used_by_others() -> float:
    """How many cores are in use now, while nothing is measured."""
    return float(psutil.cpu_percent(LOOK)) / 100 * (os.cpu_count() or 1)


class Results:
    """What is known of a ``profile`` so far: Rows by Point, the seconds of the fixed product, the machine, and the ``others``:
    how many of its cores other work used before."""

    def __init__(self, profile: Profile, others: float = 0.0) -> None:
        self.profile, self.machine, self.others = profile, machine(), others
        self.made = datetime.now(UTC).isoformat(timespec="seconds")
        self.calibration: list[float] = []
        self._warmed: set[Point] = set()
        self._rows = {point: Row(point) for point in points_of(profile)}

    def add(self, event: Event) -> None:
        """Take in an Event of ``measure``."""
        value, row = event.value, None if event.point is None else self._rows[event.point]
        if row is None:
            if event.kind == CALIBRATION and not isinstance(value, str | None):
                self.calibration.append(value)
        elif event.kind == WARMED:
            self._warmed.add(row.point)
        elif event.kind == SKIPPED and isinstance(value, str):
            row.skipped = value
        elif event.kind == SECONDS and not isinstance(value, str | None):
            row.seconds.append(value)
        elif event.kind == PEAK and not isinstance(value, str | None):
            row.peak = int(value)

    @property
    def rows(self) -> list[Row]:
        """Every Row, by weights, heads and length."""
        return [self._rows[point] for point in sorted(self._rows)]

    @property
    def share(self) -> float:
        """How much is done, 0 to 1, of the time that all is thought to take; nothing is to be done of what is skipped."""
        done = every = 0.0
        for row in self.rows:
            call = thought(self.profile, row.point)
            peak = PROCESS + 2 * call  # its input is made as well
            if not row.skipped:
                done += peak * (row.peak is not None) + call * ((row.point in self._warmed) + len(row.seconds))
                every += peak + call * (1 + self.profile.repeats)
        return done / every if every else 1.0

    def lines(self, of: Callable[[Row], float | None]) -> dict[tuple[bool, int], list[tuple[int, float]]]:
        """{(need_weights, heads): [(length, of(row))]} of all Rows for which ``of`` knows a number."""
        found: dict[tuple[bool, int], list[tuple[int, float]]] = {}
        for row in self.rows:
            value = of(row)
            if value is not None:
                found.setdefault((row.point.need_weights, row.point.num_heads), []).append((row.point.seq_len, value))
        return found

    def predicted(self, row: Row) -> int:
        return predicted(self.profile, row.point)

    def rate(self, row: Row) -> float | None:
        """Floating-point operations a second of the median call; None where it was not timed."""
        flops = call_flops(self.profile.batch_size, row.point.seq_len, self.profile.embed_dim)
        return flops / row.median if row.median else None

    @property
    def unsteadiness(self) -> float | None:
        """90th over 10th percentile of what the fixed product took; None before it was timed twice."""
        if len(self.calibration) < 2:
            return None
        tenths = statistics.quantiles(self.calibration, n=10, method="inclusive")
        return tenths[-1] / tenths[0]

    @property
    def busy(self) -> bool:
        """True where other work disturbed the times."""
        return self.others + self.profile.threads > self.machine["cores"] + 0.25 or (self.unsteadiness or 1) > UNSTEADY

    @property
    def trust(self) -> str:
        """In words, how quiet the machine was."""
        used = f"Other work used {self.others:.1f} of {self.machine['cores']} cores before"
        if self.unsteadiness is None:
            return f"{used}; the fixed product was not timed twice, so that nothing is known of how steady the machine was."
        fixed = f"a fixed product, the same work each time, took up to {self.unsteadiness:.2f} times as long at one time as at another"
        if not self.busy:
            return f"The machine was quiet: {fixed}. {used}."
        return (
            f"The machine was busy: {fixed}. {used}. Points are measured in turn, so that all suffer alike: which is slower can still "
            "be read where the spreads do not overlap; how long a call takes, and the exponents, cannot. Measure again when it is quiet."
        )

    @property
    def command(self) -> str:
        """What measures the same again."""
        default = Profile()
        given = [
            f" --{name.replace('_', '-')} {spell(value)}"
            for name, value in vars(self.profile).items()
            if value != getattr(default, name)
        ]
        return f"python -m mha_viz profile{''.join(given)}"


def exponent(line: Sequence[tuple[float, float]]) -> float | None:
    """The p of seconds ∝ length to the power p, by least squares of the logarithms over the FITTED longest; None for fewer than two."""
    line = [(math.log(length), math.log(value)) for length, value in line[-FITTED:] if value > 0]
    if len(line) < 2:
        return None
    return statistics.linear_regression(*zip(*line, strict=True)).slope


def as_json(results: Results) -> str:
    """Results as a JSON text that ``of_json`` reads."""
    measured = [
        asdict(row) | {"predicted": results.predicted(row), "median": row.median, "flops_a_second": results.rate(row)}
        for row in results.rows
    ]
    return json.dumps(
        {
            "profile": json.loads(to_json(results.profile)),
            "command": results.command,
            "made": results.made,
            "machine": results.machine,
            "others": results.others,
            "calibration": results.calibration,
            "busy": results.busy,
            "trust": results.trust,
            "measured": measured,
        },
        indent=1,
    )


def of_json(text: str) -> Results:
    """The Results that ``as_json`` wrote. Raises Wrong where it did not, or where a value in it breaks a rule."""
    return of_values(parse_json("results", text))


def of_values(told: Any) -> Results:
    """The Results in what ``as_json`` wrote, as JSON gives it; raises Wrong as ``of_json`` does."""
    with reading_results(told, "profile --json"):
        profile = from_values(told["profile"], Profile)
        points = len(profile.num_heads) * len(profile.seq_len) * (2 if profile.need_weights == BOTH else 1)
        if points != len(told["measured"]):
            raise ValueError(f"profile names {points} points, and measured holds {len(told['measured'])}")
        results = Results(profile)
        results.machine, results.made = machine_of(told), str(told["made"])
        results.others = float(_positive(told["others"]))
        results.calibration = [_seconds(one) for one in told["calibration"]]
        for one in told["measured"]:
            row = results._rows[Point(**one["point"])]
            row.seconds = [_seconds(value) for value in one["seconds"]]
            row.peak = None if one["peak"] is None else int(_positive(one["peak"]))
            row.skipped = None if one["skipped"] is None else str(one["skipped"])
    return results


def machine_of(told: Any) -> Machine:
    """What is told of the machine: its processor and PyTorch by name, and how many cores it has."""
    held = dict(told["machine"])
    for name in ("processor", "torch"):
        if not isinstance(held[name], str):
            raise ValueError(f"machine.{name} = {held[name]!r} is no text")
    known: Any = held | {"cores": whole("machine.cores", held["cores"], 1)}  # older files may know less
    machine: Machine = known
    return machine


@contextlib.contextmanager
def reading_results(told: object, command: str) -> Iterator[None]:
    """Whatever is missing or of another form in what a ``command`` is said to have written becomes a Wrong."""
    try:
        yield
    except Wrong:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        why = f"there is no {error} in it" if isinstance(error, KeyError) else error
        rule = f"must hold what `python -m mha_viz {command}` wrote, and it does not: {why}."
        raise Wrong("results", str(told)[:40], rule) from None


def _seconds(value: Any) -> float:
    """``value`` as the time of a call, which is never 0: others are divided by it."""
    if not _positive(value):
        raise ValueError(f"{value} is no time that a call takes")
    return _positive(value)


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise ValueError(f"{value} is no time and no size")
    number: float = value
    return number
