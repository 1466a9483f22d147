"""What weights say by themselves: numbers that are none, matrices that do nothing, layers that nobody has trained, and layouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.decimals import prose

if TYPE_CHECKING:
    from jaxtyping import Float64

    from mha_viz.sources.files.recipes import Projections

# In standard deviations of a rank correlation between unrelated numbers: how large one must be, and how far above the next.
CLEAR, AHEAD = 4, 3
WINDOW = 8  # rows: a divisor of most heads' sizes
SMALL = 5  # how many times smaller a bias must be than another to be called small


def check_weights(projections: Projections, packed: bool) -> list[str]:
    """Sentences about one layer's Projections; ``packed`` is True where q, k and v are drawn as one matrix, as PyTorch does."""
    sentences: list[str] = []
    for name in ("q", "k", "v", "o"):
        pair = getattr(projections, name)
        if pair is None:
            continue
        for what, array in zip((f"the weights of {name}", f"the bias of {name}"), pair, strict=True):
            if array is not None:
                sentences += _check_array(what, array, np.isnan, "NaN")
                sentences += _check_array(what, array, np.isinf, "infinite")
        if not pair[0].any():
            does = {"q": "every query reads all keys alike", "k": "every query reads all keys alike"}.get(
                name, "nothing comes out"
            )
            sentences.append(f"The weights of {name} are all 0: {does}, but for biases.")
    inputs = [pair for pair in (projections.q, projections.k, projections.v) if pair is not None]
    starts = [_as_drawn(W, b, packed) for W, b in inputs]
    if starts[0] and len(set(starts)) == 1:
        sentences.append(f"It looks untrained: q, k and v are spread as {starts[0]}.")
    return sentences


def tell(layers: Sequence[Mapping[str, Projections]]) -> str:
    """A sentence: which reading of the weights their numbers speak for, or that they speak for none.

    ``layers`` are some layers of one file, each as Projections by the name of a reading. In q · k each number that a query is made
    of meets one of a key. Training by gradients moves the two rows that make such a pair so that the difference of their squared
    norms stays (Du, Hu and Lee 2018, exactly so for gradient flow): in trained layers the norms of q's and k's rows go together, and
    so do those of v's rows and o's columns. Read along another axis or in another order they do not, and in layers that nobody has
    trained they never do. k is told from q by its bias, which adds the same to all of a query's scores: softmax takes it away again,
    its gradient is 0, and training leaves it about where it started, mostly at 0. With rotary positions that is not so.
    """
    scores = {name: float(np.mean([pairing(layer[name]) for layer in layers])) for name in layers[0]}
    best = max(scores.values())
    first = [name for name, score in scores.items() if score > best - 1e-6]
    rest = max([score for name, score in scores.items() if name not in first], default=-1.0)
    some = next(iter(layers[0].values()))
    pairs = len(layers) * (1 if some.v is None or some.o is None else 2)
    chance = 1 / math.sqrt(len(some.q[0]) * pairs)  # the standard deviation of what unrelated numbers give
    measured = "rank correlation of the norms that training pairs"
    if best < CLEAR * chance or best - rest < AHEAD * chance:
        return (
            f"The weights speak for none: the {measured} is {best:.2f} at best ({_or(first)}) and {rest:.2f} otherwise. "
            "A known output for an input does tell."
        )
    said = f"The weights speak for {{}}: the {measured} is {best:.2f}, read otherwise {rest:.2f} at most."
    if len(first) == 1:
        return said.format(_or(first))
    sizes = {name: np.mean([_sizes(layer[name]) for layer in layers], axis=0) for name in first}  # |bias| of q and k
    quiet = [name for name, (q, k) in sizes.items() if k * SMALL < q]
    if len(quiet) == 1:
        q, k = sizes[quiet[0]]
        return (
            said.format(_or(quiet))
            + f" A key's bias gets no gradient, and there it is the small one: mean |bias| {prose(k, '.2g')}, of q {prose(q, '.2g')}."
        )
    return said.format(_or(first)) + " Nothing tells q from k. A known output for an input does."


def pairing(projections: Projections) -> float:
    """The mean rank correlation of norms that training pairs: q's and k's rows, v's rows and o's columns."""
    p = projections
    pairs = [(_norms(p.q[0], 1), _norms(p.k[0], 1))]
    if p.v is not None and p.o is not None:
        pairs.append((_norms(p.v[0], 1), _norms(p.o[0], 0)))
    return float(np.mean([_rank_correlation(a, b) for a, b in pairs]))


def _norms(matrix: np.ndarray, axis: int) -> Float64[np.ndarray, " rows"]:
    """The logarithms of the norms along an axis, less their mean over WINDOW neighbours.

    Whole heads, and q against v, differ in size: of two parts that are cut from the wrong places both hold some of each, and would
    go together for that alone.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.log(np.square(matrix, dtype=np.float64).sum(axis=axis))
        return np.concatenate([part - part.mean() for part in np.split(sizes, range(WINDOW, len(sizes), WINDOW))])


def _rank_correlation(a: Float64[np.ndarray, " rows"], b: Float64[np.ndarray, " rows"]) -> float:
    """Spearman's; 0 where it cannot be said."""
    if a.shape != b.shape or not np.isfinite(a + b).all() or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    ranks = np.array([array.argsort().argsort() for array in (a, b)])  # [2, rows]
    return float(np.corrcoef(ranks)[0, 1])


def _sizes(projections: Projections) -> list[float]:
    return [0.0 if b is None else float(np.abs(b).mean()) for _, b in (projections.q, projections.k)]


def _or(names: Sequence[str]) -> str:
    return " or ".join(f"“{name}”" for name in names)


def _check_array(what: str, array: np.ndarray, test: Callable[[np.ndarray], np.ndarray], called: str) -> Iterator[str]:
    bad = test(array)
    if bad.any():
        count, place = int(bad.sum()), [int(i) for i in np.argwhere(bad)[0]]
        yield f"{what[0].upper()}{what[1:]} hold {count} {called} of {array.size} numbers, the first at {place}: all that they make is NaN."


def _as_drawn(W: np.ndarray, b: np.ndarray | None, packed: bool) -> str:
    """How a matrix is spread where it is as frameworks draw it, "" otherwise."""
    if (b is not None and b.any() and np.abs(b).max() > 1 / math.sqrt(W.shape[1])) or not np.isfinite(W).all() or W.size < 64:
        return ""
    out, width = W.shape
    largest, spread = float(np.abs(W).max()), float(W.std(dtype=np.float64))
    bounds = {
        "nn.MultiheadAttention draws it (Xavier)": math.sqrt(6 / (width + (3 if packed else 1) * out)),
        "nn.Linear draws it": 1 / math.sqrt(width),
    }
    for said, bound in bounds.items():
        if 0.95 * bound < largest <= bound * (1 + 1e-5) and abs(spread * math.sqrt(3) / bound - 1) < 0.05:
            return f"{said}, evenly within ±{prose(bound, '.4g')}"
    tails = float((np.square(W, dtype=np.float64) ** 2).mean()) / spread**4 if spread else 0  # 3 for normal numbers
    by_chance = 4 * math.sqrt(0.5 / W.size), 4 * math.sqrt(24 / W.size)  # four standard errors of a deviation and of its tails
    if (b is None or not b.any()) and abs(spread / 0.02 - 1) < by_chance[0] and abs(tails - 3) < by_chance[1]:
        return "BERT and GPT-2 are drawn, normal numbers of deviation 0.02"
    return ""
