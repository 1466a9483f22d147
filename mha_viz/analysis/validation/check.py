"""What a check is: a figure, what it is held to, and a verdict in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from mha_viz.core.decimals import prose
from mha_viz.core.rules import Wrong

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.analysis.validation.subject import Subject
    from mha_viz.core.arrays import Dtype, Numbers
    from mha_viz.core.trace import Trace


Verdict: TypeAlias = Literal["pass", "fail", "cannot run"]
PASS: Literal["pass"] = "pass"
FAIL: Literal["fail"] = "fail"
CANNOT: Literal["cannot run"] = "cannot run"
ROUNDING = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3, "bfloat16": 1.6e-2}  # of an output, relative to the largest


@dataclass(frozen=True)
class Check:
    """One check, done.

    ``compared`` says what was held beside what, ``figure`` how far it was off or how many were, and ``tolerance`` the most that it
    may be for the dtype; the ``least`` in its place for a figure that has to be larger. Each is None where there is none. ``verdict`` is
    "pass", "fail" or "cannot run", which counts as neither; ``words`` say it plainly. ``of`` names the layer. ``by_head`` is what was
    measured of each head, where the figure is made of that.
    """

    name: str
    title: str
    compared: str
    figure: float | None
    tolerance: float | None
    least: float | None
    verdict: Verdict
    words: str
    seconds: float
    of: str = ""
    by_head: tuple[float, ...] = ()

    @property
    def measured(self) -> str:
        """The figure beside what it is held to, as in "1.4e-07 ≤ 1e-06", "exactly 0" or "24, not 0"; "" where there is none."""
        if self.figure is None:
            return ""
        if self.least is not None:
            return f"{written(self.figure)} {'>' if self.figure > self.least else '≤'} {written(self.least)}"
        if self.tolerance is None:
            return written(self.figure)
        if self.tolerance == 0:
            return "exactly 0" if self.figure == 0 else f"{written(self.figure)}, not 0"
        return f"{written(self.figure)} {'≤' if self.figure <= self.tolerance else '>'} {written(self.tolerance)}"


@dataclass(frozen=True)
class Measured:
    """What a check's function returns: ``good`` is said where the figure is within the tolerance, ``bad`` where it is not."""

    compared: str
    figure: float
    good: str
    bad: str
    tolerance: float | None = None
    least: float | None = None
    by_head: tuple[float, ...] = ()

    @property
    def verdict(self) -> Verdict:
        held = self.least is not None and self.figure > self.least
        held = held or (self.tolerance is not None and self.figure <= self.tolerance)
        return PASS if held else FAIL  # NaN is never within


class Cannot(Exception):
    """Why a check has nothing to say about what it was given; a ``figure`` where something was measured all the same."""

    def __init__(self, why: str, compared: str = "", figure: float | None = None) -> None:
        super().__init__(why)
        self.compared, self.figure = compared, figure


class Named(Protocol):
    """What is checked: it has a name."""

    @property
    def name(self) -> str: ...


S = TypeVar("S", bound=Named)


@dataclass(frozen=True)
class Question(Generic[S]):
    """One check before it is done: ``measure(subject)`` returns Measured or raises Cannot."""

    name: str
    title: str
    measure: Callable[[S], Measured]

    def ask(self, subject: S) -> Check:
        """The Check of this subject."""
        began = time.perf_counter()
        compared, words = "", ""
        figure: float | None = None
        tolerance: float | None = None
        least: float | None = None
        by_head: tuple[float, ...] = ()
        verdict: Verdict = CANNOT
        try:
            found = self.measure(subject)
            compared, figure, tolerance, least, verdict = (
                found.compared,
                found.figure,
                found.tolerance,
                found.least,
                found.verdict,
            )
            words, by_head = found.good if verdict == PASS else found.bad, found.by_head
        except Cannot as why:
            compared, figure, words = why.compared, why.figure, str(why)
        except (Wrong, RuntimeError, AssertionError, MemoryError) as error:
            words = str(error) if isinstance(error, Wrong) else f"PyTorch refuses: {type(error).__name__}: {error}"
        seconds = time.perf_counter() - began
        return Check(self.name, self.title, compared, figure, tolerance, least, verdict, words, seconds, subject.name, by_head)


def question(name: str, title: str) -> Callable[[Callable[[S], Measured]], Question[S]]:
    """Make a Question of a function: its ``name``, and the ``title`` that says what has to hold."""
    return lambda measure: Question(name, title, measure)


def question_of_finite(name: str, title: str) -> Callable[[Callable[[Subject], Measured]], Question[Subject]]:
    """The same of finite numbers: it is not asked where others came in, as it would blame what it looks at for what came before."""

    def made(measure: Callable[[Subject], Measured]) -> Question[Subject]:
        def measured(subject: Subject) -> Measured:
            subject.check_finite()
            return measure(subject)

        return Question(name, title, measured)

    return made


def gap(one: Numbers, other: Numbers) -> float:
    """The largest |one − other|; ∞ where one is NaN and the other is not. Raises Cannot where no number is left to compare."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    blank = np.isnan(one)
    if (blank != np.isnan(other)).any():
        return float("inf")
    if blank.all():
        raise Cannot("No number is left to compare: all of it is undefined (NaN), padding, or not there.")
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        return float(np.nanmax(np.where(one == other, 0, np.abs(one - other))))


def relative(one: Float[np.ndarray, ...], other: Float[np.ndarray, ...]) -> float:
    """The gap, relative to the largest finite number of ``other``; the gap itself where that is 0."""
    off = gap(one, other)
    if off == float("inf"):
        return off
    largest = float(np.abs(other[np.isfinite(other)]).max(initial=0))
    return off / largest if largest else off


def rounding(trace: Trace, dtype: Dtype | None = None) -> float:
    """How far two right ways to compute may be apart in ``dtype``, the Trace's where None, relative to the largest number.

    A rounding error of a score s is |s| times the dtype's, and exp(s) carries it over into the weight: where scores are large, so
    is the tolerance.
    """
    dtype = trace.dtype if dtype is None else dtype
    if not trace.has("scores"):
        return ROUNDING[dtype]
    scores = np.abs(trace.scores[np.isfinite(trace.scores)])
    return ROUNDING[dtype] * max(1.0, float(scores.max(initial=0)))


def apart(
    trace: Trace,
    measure: Callable[[Bool[np.ndarray, "N H L"]], float | None],
    among: Bool[np.ndarray, "N H L"],
    dtype: Dtype | None = None,
) -> tuple[float, float]:
    """How far two right ways to compute are apart, and how far they may be, ``among`` these rows of the Trace.

    ``measure(rows)`` is how far they are apart in some of them, None where nothing is left to compare. How far they may be is
    ``rounding``, but where a mask adds a large finite number to all that a query may see, as −10,000 or the smallest of float16: it
    takes digits from the scores. Such rows have a tolerance of their own, where a digit is left, and the others keep theirs. What is told
    is what is farther off for its tolerance.
    """
    usual, dtype = rounding(trace, dtype), trace.dtype if dtype is None else dtype
    groups = [(among, usual)]
    if trace.has("scores") and trace.mask_bias is not None:
        with np.errstate(invalid="ignore"):
            weighed = trace.probabilities * np.abs(trace.scores + trace.mask_bias)  # [N, H, L, S]
            size: Float[np.ndarray, "N H L"] = np.asarray(np.nansum(weighed, axis=-1, dtype=np.float64))
        off = ROUNDING[dtype] * size
        large = among & (off > usual) & (off < 1)
        groups = [(among & (off <= usual), usual), (large, float(off[large].max(initial=0)))]
    found = [(far, tolerance) for rows, tolerance in groups if rows.any() and (far := measure(rows)) is not None]
    if not found:
        raise Cannot(
            "No row is left to compare: each is undefined in some head, or a mask's large numbers take every digit of it."
        )
    return max(found, key=lambda pair: pair[0] / pair[1])


def written(figure: float) -> str:
    return f"{figure:,}" if isinstance(figure, int) else "∞" if figure == float("inf") else f"{prose(figure, '.3g')}"


def number(count: int, what: str, plural: str | None = None) -> str:
    return f"{count:,} {what if count == 1 else plural or what + 's'}"
