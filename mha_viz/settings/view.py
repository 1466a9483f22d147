"""View: what a picture of a Trace needs to be told."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from mha_viz.core.rules import Change, Wrong, listed, whole
from mha_viz.core.sight import Pooling
from mha_viz.settings.interventions import typed_interventions
from mha_viz.settings.rules import LONGEST, Ruled, anything, choice, each_whole, number, optional, ruled

Order: TypeAlias = Literal[
    "difference",
    "index",
    "listed",
    "entropy",
    "distance",
    "previous",
    "next",
    "self",
    "first",
    "confidence",
    "induction",
    "contribution",
]
Arrangement: TypeAlias = Literal["pair", "all", "one"]
Picture: TypeAlias = Literal["maps", "lines"]
Weighting: TypeAlias = Literal["weights", "softmax", "norms"]
Scale: TypeAlias = Literal["auto", "linear", "log", "percentile", "row"]
Colors: TypeAlias = Literal["ink", "viridis", "cividis", "grey"]

ORDERS: tuple[Order, ...] = get_args(Order)
UNSORTED = ("index", "listed")  # orders that no statistic decides
ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)
PICTURES: tuple[Picture, ...] = get_args(Picture)
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
SCALES: tuple[Scale, ...] = get_args(Scale)
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
COLORS: tuple[Colors, ...] = get_args(Colors)
PLACE = ("layer", "what_if")  # fields that say what is computed, and so belong to what is pinned


def _heads(argument: str, value: object) -> tuple[int, ...]:
    heads = tuple(dict.fromkeys(each_whole(argument, value, 0, LONGEST, "of heads", (2, 5), None)))
    if not heads:
        raise Wrong(argument, heads, "must name at least one head.", [{argument: None}])
    return heads


def _cell(argument: str, value: object) -> tuple[int | None, int | None]:
    right: list[Change] = [{argument: None}]
    rule = 'must be a query and a key, whole numbers from 0, as in "6,9", or one of them, "6," or ",9".'
    given = listed(argument, value, rule, right)
    try:
        pair = tuple(None if index is None or str(index) == "" else whole(argument, index, 0) for index in given)
    except Wrong:
        raise Wrong(argument, given, rule, right) from None
    if len(pair) != 2 or pair == (None, None):
        raise Wrong(argument, given, rule, right)
    return pair


def _span(argument: str, value: Any) -> tuple[int, int]:
    try:
        start, stop = (whole(argument, end, 0) for end in value)
    except (TypeError, ValueError):
        start, stop = 0, 0
    if start >= stop:
        raise Wrong(argument, value, 'must be a first number and one beyond the last, as in "0,128".', [{argument: None}])
    return (start, stop)


def _limits(argument: str, value: Any) -> tuple[float, float]:
    try:
        low, high = map(float, value)
    except (TypeError, ValueError):
        raise Wrong(argument, value, 'must be two numbers, the lower first, as in "0,0.5".', [{argument: None}]) from None
    if not 0 <= low < high < float("inf"):
        raise Wrong(argument, (low, high), "must be two numbers, 0 or more, the lower first.", [{argument: None}])
    return (low, high)


@dataclass(frozen=True)
class View(Ruled):
    """How a Trace is shown. None means: choose for me, as ``mha_viz.analysis.choose`` does.

    ``layer`` of a model that has several; ``item`` the batch item; ``heads`` the heads shown, None all; ``order`` of them, by
    index, as ``heads`` lists them, by difference from the average or by a head statistic; ``head`` the chosen one; ``cell``
    the chosen (query, key), one of them None where a token is chosen and not a cell. ``arrangement``: the strip with one head
    beside the average, all heads large, or one head alone; ``picture``: maps or lines. ``weighting`` of the cells: the
    attention weights that multiply the values, what the softmax gave before dropout or the model changed them ("softmax"), or
    the weights times the length of what each key's value adds to the output ("norms"). ``scale`` of the colours: linear,
    logarithmic, clipped at the 99th percentile, or each row to its own maximum; "auto" is linear, and logarithmic where each
    cell stands for a block, or where rows that see one or two keys would leave all others blank, as in an untrained causal
    map. ``limits`` fix its ends. ``what_if`` is what is changed in the layer that is shown, as ``read_interventions`` reads
    it. ``pinned`` is what B is compared with: the settings of A as the query part of an address ("" for the defaults).

    Of maps too long to be whole, ``pooling`` says what stands for a block, its largest weight or its mean, and ``rows`` and ``columns``,
    each (start, stop), which queries and keys are in sight, None all.

    Raises Wrong for a value that breaks its rule.

    >>> import mha_viz as mv
    >>> view = mv.View(order="entropy", heads=[3, 0, 3], cell=(6, 9), scale="log")
    >>> view.heads, view.cell, view.arrangement
    ((3, 0), (6, 9), 'pair')
    """

    layer: int = ruled(0, number(0))
    item: int = ruled(0, number(0))
    heads: tuple[int, ...] | None = ruled(None, optional(_heads))
    order: Order = ruled("difference", choice(*ORDERS))
    head: int | None = ruled(None, optional(number(0)))
    cell: tuple[int | None, int | None] | None = ruled(None, optional(_cell))
    arrangement: Arrangement = ruled("pair", choice(*ARRANGEMENTS))
    picture: Picture = ruled("maps", choice(*PICTURES))
    weighting: Weighting = ruled("weights", choice(*WEIGHTINGS))
    pooling: Pooling = ruled("max", choice(*POOLINGS))
    rows: tuple[int, int] | None = ruled(None, optional(_span))
    columns: tuple[int, int] | None = ruled(None, optional(_span))
    scale: Scale = ruled("auto", choice(*SCALES))
    limits: tuple[float, float] | None = ruled(None, optional(_limits))
    colors: Colors = ruled("ink", choice(*COLORS))
    what_if: str = ruled("", typed_interventions)
    pinned: str | None = ruled(None, anything)

    @property
    def statistic(self) -> Order:
        """The statistic that is told of each head: the one that orders them, or their difference from the average."""
        return "difference" if self.order in UNSORTED else self.order

    def misfits(self, N: int, H: int, L: int, S: int) -> list[Wrong]:
        """A Wrong for each index beyond weights of [N, H, L, S], one for all such heads; a part in sight points by its first row or column.

        Whoever shows them takes the default in its place.
        """
        query, key = self.cell or (None, None)
        first, left = (span and span[0] for span in (self.rows, self.columns))
        beyond = [head for head in self.heads or () if head >= H] or [0]
        pointed = [("item", self.item, N), ("head", self.head, H), ("heads", beyond[0], H)]
        pointed += [("cell", query, L), ("cell", key, S), ("rows", first, L), ("columns", left, S)]
        more = {"heads": f" and {len(beyond) - 1} more"} if len(beyond) > 1 else {}
        return [
            Wrong(
                name,
                getattr(self, name),
                f"points to {index}{more.get(name, '')}, and there are {count}, from 0 to {count - 1}.",
                [{name: count - 1 if name in ("item", "head") else None}],
            )
            for name, index, count in pointed
            if index is not None and index >= count
        ]
