"""What a check is: a figure, what it is held to, and a verdict in words."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mha_viz.core.decimals import prose
from mha_viz.core.rules import Wrong

PASS, FAIL, CANNOT = "pass", "fail", "cannot run"
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
    verdict: str
    words: str
    seconds: float
    of: str = ""
    by_head: tuple[float, ...] = ()

    @property
    def measured(self):
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
    def verdict(self):
        within = self.figure <= self.tolerance if self.least is None else self.figure > self.least
        return PASS if within else FAIL  # NaN is never within


class Cannot(Exception):
    """Why a check has nothing to say about what it was given; a ``figure`` where something was measured all the same."""

    def __init__(self, why, compared="", figure=None):
        super().__init__(why)
        self.compared, self.figure = compared, figure


@dataclass(frozen=True)
class Question:
    """One check before it is done: ``measure(subject)`` returns Measured or raises Cannot. One that is of ``finite`` numbers is not asked
    where others came in: it would blame what it looks at for what came before."""

    name: str
    title: str
    measure: Callable
    finite: bool = False

    def ask(self, subject):
        """The Check of this subject."""
        began = time.perf_counter()
        least, tolerance, by_head = None, None, ()
        try:
            if self.finite:
                subject.check_finite()
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
            compared, figure, verdict, words = why.compared, why.figure, CANNOT, str(why)
        except (Wrong, RuntimeError, AssertionError, MemoryError) as error:
            compared, figure, verdict = "", None, CANNOT
            words = str(error) if isinstance(error, Wrong) else f"PyTorch refuses: {type(error).__name__}: {error}"
        seconds = time.perf_counter() - began
        return Check(self.name, self.title, compared, figure, tolerance, least, verdict, words, seconds, subject.name, by_head)


def question(name, title, finite=False):
    """Make a Question of a function: its ``name``, the ``title`` that says what has to hold, and whether it is of ``finite`` numbers."""
    return lambda measure: Question(name, title, measure, finite)


def gap(one, other):
    """The largest |one − other|; ∞ where one is NaN and the other is not. Raises Cannot where no number is left to compare."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    blank = np.isnan(one)
    if (blank != np.isnan(other)).any():
        return float("inf")
    if blank.all():
        raise Cannot("No number is left to compare: all of it is undefined (NaN), padding, or not there.")
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        return float(np.nanmax(np.where(one == other, 0, np.abs(one - other))))


def relative(one, other):
    """The gap, relative to the largest finite number of ``other``; the gap itself where that is 0."""
    off = gap(one, other)
    if off == float("inf"):
        return off
    largest = float(np.abs(other[np.isfinite(other)]).max(initial=0))
    return off / largest if largest else off


def rounding(trace, dtype=None):
    """How far two right ways to compute may be apart in ``dtype``, the Trace's where None, relative to the largest number.

    A rounding error of a score s is |s| times the dtype's, and exp(s) carries it over into the weight: where scores are large, so
    is the tolerance.
    """
    dtype = trace.dtype if dtype is None else dtype
    if not trace.has("scores"):
        return ROUNDING[dtype]
    scores = np.abs(trace.scores[np.isfinite(trace.scores)])
    return ROUNDING[dtype] * max(1.0, float(scores.max(initial=0)))


def apart(trace, measure, among, dtype=None):
    """(how far two right ways to compute are apart, how far they may be), ``among`` these rows [N, H, L] of the Trace.

    ``measure(rows)`` is how far they are apart in some of them, None where nothing is left to compare. How far they may be is
    ``rounding``, but where a mask adds a large finite number to all that a query may see, as −10,000 or the smallest of float16: it
    takes digits from the scores. Such rows have a tolerance of their own, where a digit is left, and the others keep theirs. What is told
    is what is farther off for its tolerance.
    """
    usual, dtype = rounding(trace, dtype), trace.dtype if dtype is None else dtype
    groups = [(among, usual)]
    if trace.has("scores") and trace.mask_bias is not None:
        with np.errstate(invalid="ignore"):
            size = np.nansum(
                trace.probabilities * np.abs(trace.scores + trace.mask_bias), axis=-1, dtype=np.float64
            )  # [N, H, L]
        off = ROUNDING[dtype] * size
        large = among & (off > usual) & (off < 1)
        groups = [(among & (off <= usual), usual), (large, float(off[large].max(initial=0)))]
    found = [(far, tolerance) for rows, tolerance in groups if rows.any() and (far := measure(rows)) is not None]
    if not found:
        raise Cannot(
            "No row is left to compare: each is undefined in some head, or a mask's large numbers take every digit of it."
        )
    return max(found, key=lambda pair: pair[0] / pair[1])


def written(figure):
    return f"{figure:,}" if isinstance(figure, int) else "∞" if figure == float("inf") else f"{prose(figure, '.3g')}"


def number(count, what, plural=None):
    return f"{count:,} {what if count == 1 else plural or what + 's'}"
