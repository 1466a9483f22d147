"""What a head does, as one number: statistics of the real rows of one batch item, for every head at once.

All read the probabilities before dropout. A query counts if it is not padding and has a
distribution, of finite numbers, in every head. Of these, a
head's rows with only one key left are passed over, except in difference and contribution: their single weight is 1 whatever the
head has learnt. What has no meaning for a head, or no row to be read from, is NaN; ``why_not`` says why.

Positions. The columns of ``add_bias_kv`` and ``add_zero_attn`` stand behind the keys and are no positions. A query stands at the
key of its own index, aligned bottom-right where L ≠ S, as ``Mask`` does it. Where the keys are a sequence of their own (another
key, neither causal nor window) queries and keys share no positions: distance, previous, next, self and induction are NaN there.

Which keys a row may see is the mask's to say. Of finished maps alone nobody knows the mask, and a key is taken for hidden where
every head gives it exactly 0 (see ``trace_of_maps``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from mha_viz.analysis.causes import spans
from mha_viz.analysis.difference import difference_from_average, real_queries
from mha_viz.analysis.information import entropy_of
from mha_viz.analysis.norms import head_outputs, lengths, out_weight, why_no_norms
from mha_viz.analysis.rows import Rows
from mha_viz.core.arrays import read_only
from mha_viz.core.rules import one_of
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Trace

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Num


_known: WeakKeyDictionary[Trace, dict[tuple[int, str], np.ndarray]] = (
    WeakKeyDictionary()
)  # (item, statistic) → [H]; each rerun of a page asks for the same ones again


Totals: TypeAlias = "tuple[Float[np.ndarray, ' H'], Num[np.ndarray, ' H']]"  # the sum over some rows, and how many they are
Need = Literal["positions", "norms", "choice"]
Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True)
class Statistic(ABC, Generic[Function]):
    """A number about a head: its ``label``, its ``meaning`` in a line with the formula, its ``unit``, and the ``function`` that computes
    it. The unit "%" belongs to values from 0 to 1, shown times 100; "tokens" to distances between positions.

    For ``why_not``: ``needs`` names what there must be, "choice" being rows that see more than one key, and ``otherwise`` says what a
    head without a value lacks where all that is there."""

    label: str
    meaning: str
    unit: Literal["%", "tokens"]
    function: Function
    needs: tuple[Need, ...] = ()
    otherwise: str = ""

    @abstractmethod
    def of(self, trace: Trace, item: int) -> Float[np.ndarray, " H"]:
        """Its value for each head over the real queries of batch item ``item``; NaN where it has none."""


class AtOnce(Statistic[Callable[[Trace, int], np.ndarray]]):
    """A Statistic whose ``function`` takes (trace, item) and gives the values [H] themselves."""

    def of(self, trace: Trace, item: int) -> Float[np.ndarray, " H"]:
        return self.function(trace, item)


class ByRows(Statistic[Callable[["Rows"], Totals]]):
    """A Statistic whose ``function`` takes Rows and gives its total and count over these, whose quotient it is: rows may go by in parts
    (``mha_viz.analysis.streamed``)."""

    def of(self, trace: Trace, item: int) -> Float[np.ndarray, " H"]:
        totals, counts = zip(*(self.function(rows) for rows in Rows.parts(trace, item)), strict=True)
        return divided(np.sum(totals, axis=0), np.sum(counts, axis=0))


def entropy(rows: Rows) -> Totals:
    """0 (one key) to 1 (all alike): −Σ p log p / log n, n the columns that the row may see; mean over rows.

    Dividing by n makes causal rows, which see 1, 2, 3 … keys, comparable. The extra columns take weight and so count here.
    Entropy of heads: Clark et al., What Does BERT Look At?, 2019, section 3.3.
    """
    most = np.log(np.maximum(rows.seen.sum(axis=-1), 2))  # [H, R]; rows with fewer than 2 are passed over
    return _sum(np.minimum(entropy_of(rows.p) / most, 1), rows.choice)  # rounding may reach beyond 1


def distance(rows: Rows) -> Totals:
    """In tokens: how far a unit of weight reaches, Σ p |i − j| / Σ p over rows i and positions j.

    Vig & Belinkov, Analyzing the Structure of Attention in a Transformer Language Model, 2019, section 4.3 (attention distance).
    """
    if rows.position is None:
        return _nothing(rows)
    p = rows.p[..., : rows.num_keys] * rows.choice[..., None]  # [H, R, S without extra]
    apart = np.abs(rows.position[:, None] - np.arange(rows.num_keys))  # [R, S without extra]
    return np.einsum("hrs,rs->h", p, apart, dtype=np.float64), p.sum(axis=(1, 2), dtype=np.float64)  # [H] each


def previous(rows: Rows) -> Totals:
    """0 to 1: weight on the key just before the query's own, mean over the rows that may see it (Clark et al. 2019, 3.1)."""
    return _beside(rows, -1)


def following(rows: Rows) -> Totals:
    """0 to 1: weight on the key just after the query's own, mean over the rows that may see it; NaN when causal."""
    return _beside(rows, +1)


def itself(rows: Rows) -> Totals:
    """0 to 1: weight on the query's own position, mean over the rows that may see it."""
    return _beside(rows, 0)


def first(rows: Rows) -> Totals:
    """0 to 1: weight on the first token, the attention sink, mean over the rows that may see it.

    The first token is the first that any real query may see, so that left padding is not mistaken for it. Its own row is left
    out: it would count as a sink what is itself. Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023.
    """
    key = np.full(rows.p.shape[1], rows.reachable.argmax())  # [R]
    return _weight_on(rows, key, key >= 0 if rows.position is None else rows.position != key)


def confidence(rows: Rows) -> Totals:
    """0 to 1: the largest weight of a row, mean over rows.

    Voita et al., Analyzing Multi-Head Self-Attention, 2019, section 4: the largest weight aside from the end-of-sentence token,
    which takes what has nowhere to go. Here the extra columns have that part and are left out.
    """
    return _sum(rows.p[..., : rows.num_keys].max(axis=-1), rows.choice)


def induction(rows: Rows) -> Totals:
    """0 to 1: weight on what followed the query's own token before, Σ p over its targets, mean over rows that may see one.

    The targets of query i are the positions j + 1 where an earlier j < i holds the same text: a head that looks there can repeat
    what came next. j + 1 = i, a token right after its like, is left out: it cannot be told from weight on the own token. Positions
    that no real query may see, padding among them, are no earlier j. The prefix matching of Olsson et al., In-context Learning and
    Induction Heads, 2022, who repeat random tokens: in text, a head that reads all keys alike scores as many as are targets.
    """
    if rows.position is None:
        return _nothing(rows)
    keys, queries = _texts_by_number(rows.tokens, rows.item)
    keys = keys[: rows.num_keys]  # [S without extra]
    asking = queries[rows.queries]  # [R]
    place = np.arange(rows.num_keys)
    earlier = (keys == asking[:, None]) & (place < rows.position[:, None]) & rows.reachable  # [R, S without extra]
    target = np.zeros_like(earlier)
    target[:, 1:] = earlier[:, :-1]
    target &= place != rows.position[:, None]
    target = target & rows.seen[..., : rows.num_keys]  # [H, R, S without extra]
    weight = rows.p[..., : rows.num_keys].sum(axis=-1, where=target)  # [H, R]
    return _sum(weight, rows.choice & target.any(axis=-1))


def contribution(trace: Trace, item: int) -> Float[np.ndarray, " H"]:
    """The length of what a head adds to the output, ‖Σ p v · Wᴼ_h‖, mean over rows, as a share of all heads'; their sum is 1.

    Wᴼ_h are the columns of the output projection that belong to head h; its bias belongs to none. Lengths say nothing of
    directions: what two heads add can cancel out. Norms in place of weights: Kobayashi et al., Attention Is Not Only a Weight:
    Analyzing Transformers with Vector Norms, 2020, section 2.3.
    """
    trace, H = trace.plain, trace.undefined.shape[1]
    queries = real_queries(trace, item)  # [L]
    if why_no_norms(trace) or not queries.any():
        return np.full(H, np.nan)
    added = lengths(head_outputs(trace, item)[:, queries], out_weight(trace)).mean(axis=1)  # [H]
    return divided(added, np.full(H, added.sum())) if np.isfinite(added).all() else np.full(H, np.nan)


STATISTICS: dict[str, AtOnce | ByRows] = {
    "difference": AtOnce(
        "differs from average",
        "Jensen–Shannon divergence from the average of all heads, in % of ln 2",
        "%",
        difference_from_average,
    ),
    "entropy": ByRows(
        "entropy", "−Σ p log p / log n, n = keys the row may see: 0 % one key, 100 % all alike", "%", entropy, ("choice",)
    ),
    "confidence": ByRows("largest weight", "max p, the mean over rows: how sure the head is", "%", confidence, ("choice",)),
    "distance": ByRows(
        "distance",
        "Σ p |i − j| / Σ p: how far the weight reaches",
        "tokens",
        distance,
        ("positions", "choice"),
        "all weight is on columns that are no position",
    ),
    "previous": ByRows(
        "previous token",
        "p on key i − 1, over rows that may see it",
        "%",
        previous,
        ("positions", "choice"),
        "no query with a choice may see the key before its own",
    ),
    "self": ByRows(
        "own token",
        "p on key i, over rows that may see it",
        "%",
        itself,
        ("positions", "choice"),
        "no query with a choice may see its own position",
    ),
    "next": ByRows(
        "next token",
        "p on key i + 1, over rows that may see it",
        "%",
        following,
        ("positions", "choice"),
        "no query with a choice may see the key after its own, as in causal attention",
    ),
    "first": ByRows(
        "first token",
        "p on the first real key (attention sink), its own row left out",
        "%",
        first,
        ("choice",),
        "no query with a choice but its own may see the first key",
    ),
    "induction": ByRows(
        "induction",
        "p on what followed the same token before, over rows that may see that",
        "%",
        induction,
        ("positions", "choice"),
        "no token repeats so that a later query may see what followed the earlier one",
    ),
    "contribution": AtOnce(
        "contribution",
        "‖head output · Wᴼ‖, the mean over rows, as a share of all heads’",
        "%",
        contribution,
        ("norms",),
        "what the heads add to the output has no finite length above 0",
    ),
}


def statistic(trace: Trace, item: int, name: str) -> Float[np.ndarray, " H"]:
    """The statistic ``name`` of every head over the real queries of batch item ``item``; NaN where it has no meaning.

    A head that is off (zero) gives no weight: it has a contribution, 0, and no other value. A Trace that shows what is in sight of a
    longer one has the values that ``know`` was told. Each is computed once for a Trace, and read-only. Raises Wrong for a name that
    there is not.
    """
    known = _known.setdefault(trace, {})
    if trace.tokens.sight is not None and (item, name) not in known:
        return np.full(trace.undefined.shape[1], np.nan)
    if (item, name) not in known:
        known[item, name] = _meant(trace, name, STATISTICS[one_of("statistic", name, tuple(STATISTICS))].of(trace, item))
    return known[item, name]


def know(trace: Trace, item: int, values: Mapping[str, Float[np.ndarray, " H"]]) -> None:
    """Let ``statistic`` say these ``values``, [H] by name, of a Trace whose maps are not those that they are read from."""
    known = _known.setdefault(trace, {})
    for name, found in values.items():
        known[item, name] = _meant(trace, name, found)


def _meant(trace: Trace, name: str, values: Float[np.ndarray, " H"]) -> Float[np.ndarray, " H"]:
    """Read-only, these ``values`` of a statistic where it has a meaning, of heads that are off (zero) contribution alone."""
    if name != "contribution":
        values = np.where(np.isin(np.arange(len(values)), silent(trace)), np.nan, values)
    return read_only(values)


def is_known(trace: Trace, item: int, name: str) -> bool:
    """True where ``statistic`` has been told or has computed it, or can compute it from the maps that are there."""
    return trace.tokens.sight is None or (item, name) in _known.get(trace, {})


def silent(trace: Trace) -> list[int]:
    """The heads that are off (zero), by number."""
    return [head for head, way in trace.off if way == "zero"]


def why_not(trace: Trace, item: int, name: str) -> str | None:
    """Why the statistic ``name`` has no value (NaN), for one head or all, in batch item ``item``: a sentence without its full stop.

    None where every head has a value. Of several reasons the first.
    """
    missing = np.isnan(statistic(trace, item, name))  # [H]
    if not missing.any():
        return None
    if not real_queries(trace, item).any():
        return f"no query of item {item} counts: {_why_none_counts(trace, item)}"
    if not is_known(trace, item, name):
        if name == "difference" and trace.off:
            return "it is of the heads before any was off, and of a long sequence those are not computed"
        return "it is read from all rows, which have not all gone by"
    off = silent(trace)
    if off and missing[off].all() and missing.sum() == len(off) and name != "contribution":
        return f"head{'s' if len(off) > 1 else ''} {spans(np.sort(off))} {'are' if len(off) > 1 else 'is'} off"
    how = STATISTICS[name]
    if "positions" in how.needs and trace.tokens.positions is None:
        return "queries and keys are different sequences, which share no positions"
    if "norms" in how.needs and why_no_norms(trace.plain):
        return why_no_norms(trace.plain)
    if "norms" in how.needs and not np.isfinite(trace.plain.v[item]).all():
        return "the values v are not all finite, and so is nothing that is made of them"
    where = "" if missing.all() else f"in head{'s' if missing.sum() > 1 else ''} {spans(np.flatnonzero(missing))} "
    if (
        trace.tokens.sight is None
        and "choice" in how.needs
        and not any(rows.choice[missing].any() for rows in Rows.parts(trace, item))
    ):
        return f"{where}no real query sees more than one key, whose weight is 1 whatever the head has learnt"
    return f"{where}{how.otherwise}"


def _why_none_counts(trace: Trace, item: int) -> str:
    """Why no query of an item counts: padding, no key left, or numbers that are not finite, whichever there are."""
    padding, undefined, nonfinite = (
        trace.query_padding[item],
        trace.undefined[item].any(axis=0),
        trace.nonfinite[item].any(axis=0),
    )  # [L]
    rest = nonfinite & ~padding & ~undefined  # [L]
    reasons = [
        (padding, "is padding"),
        (undefined & ~padding, "has no key left"),
        (rest, "has weights that are not finite (NaN)"),
    ]
    return f"each {' or '.join(said for rows, said in reasons if rows.any())}"


@lru_cache(maxsize=4)
def _texts_by_number(tokens: Tokens, item: int) -> tuple[Int[np.ndarray, " S-extra"], Int[np.ndarray, " L"]]:
    """Keys [S without extra] and queries [L] as numbers that are equal where texts are; −1 for a query whose text no position has."""
    numbers: dict[str, int] = {}
    positions = tokens.keys[item][: len(tokens.keys[item]) - tokens.extra]
    keys = np.array([numbers.setdefault(text, len(numbers)) for text in positions])
    return keys, np.array([numbers.get(text, -1) for text in tokens.queries[item]], int)


def _beside(rows: Rows, offset: int) -> Totals:
    if rows.position is None:
        return _nothing(rows)
    return _weight_on(rows, rows.position + offset, True)


def _weight_on(rows: Rows, key: Int[np.ndarray, " R"], counts: Bool[np.ndarray, " R"] | bool) -> Totals:
    """Weight on position ``key`` [R] of each row, of the rows that count ([R] bool), may see it and have a choice."""
    inside = (key >= 0) & (key < rows.num_keys)  # [R]
    row, key = np.arange(len(key)), np.where(inside, key, 0)
    return _sum(rows.p[:, row, key], rows.choice & rows.seen[:, row, key] & inside & counts)


def _sum(values: Float[np.ndarray, "H R"], counts: Bool[np.ndarray, "H R"]) -> Totals:
    """The sum over rows where ``counts``, and how many do."""
    return values.sum(axis=1, where=counts, dtype=np.float64), counts.sum(axis=1)


def _nothing(rows: Rows) -> Totals:
    return np.zeros(len(rows.p)), np.zeros(len(rows.p))


def divided(total: Float[np.ndarray, " H"], count: Num[np.ndarray, " H"]) -> Float[np.ndarray, " H"]:
    """total / count, NaN where nothing counts."""
    quotient: Float[np.ndarray, " H"] = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return quotient
