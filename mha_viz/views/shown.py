"""What views are of: the attention of a layer, or what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from mha_viz.analysis import choose
from mha_viz.analysis.choice import Choice, place_of
from mha_viz.analysis.number import Derivation, open_number
from mha_viz.core.rules import Wrong
from mha_viz.core.sight import Sight
from mha_viz.core.trace import Trace
from mha_viz.settings import Caching, View, Walk
from mha_viz.settings.view import Arrangement
from mha_viz.sources.base import Source

MEAN: Literal["mean"] = "mean"  # among the heads of a figure: their average
HeadNames = tuple[int | Literal["mean"], ...]  # heads by number, and their average
T = TypeVar("T")
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Shown:
    """What a figure of attention is of: a ``source``, and the ``trace`` of the layer that is looked at, as the ``view`` shows it.

    ``a`` is the Trace that it is compared with, or None; Step by step has its ``walk``, Decode its ``caching``.

    ``heads`` are those that a figure names in its own order, "mean" among them for the average; None leaves them to the View.
    ``a_is`` says what A is, as a sentence, where the View does not pin it.
    """

    source: Source
    trace: Trace
    view: View
    heads: HeadNames | None = None
    a: Trace | None = None
    a_is: str = ""
    walk: Walk = field(default_factory=Walk)
    caching: Caching = field(default_factory=Caching)
    _made: dict[Callable[[Shown], Any], Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, make: Callable[[Shown], T]) -> T:
        """``make`` of this Shown, made when it is first asked for: a picture and its words are of the same numbers."""
        if make not in self._made:
            self._made[make] = make(self)
        made: T = self._made[make]
        return made

    @property
    def average(self) -> list[int | None]:
        """[None] where there is an average of the heads to draw, [] where not."""
        return [None] if self.trace.has("mean_weights") else []

    @property
    def average_at(self) -> int | None:
        """The place of the average among the heads: -1 last, None where it was left out."""
        if self.heads is None:
            return -1
        return self.heads.index(MEAN) if MEAN in self.heads else None

    @property
    def only_average(self) -> bool:
        return self.heads == (MEAN,)

    @property
    def named(self) -> list[int | None]:
        """The numbers of the heads that are named, in the order in which they are drawn, with None where the average stands."""
        order: list[int | None] = [] if self.only_average else [*self.choice.order]
        at = self.average_at
        return order if at is None else [*order[:at], *self.average, *order[at:]]

    def arranged(self, arrangement: Arrangement | None = None) -> View:
        """The View with the named heads alone, in an ``arrangement``, its own where None.

        They stand in the order in which they are named, unless it sorts them.
        """
        named = tuple(head for head in self.heads or () if isinstance(head, int))
        view = replace(self.view, arrangement=arrangement or self.view.arrangement)
        return replace(view, heads=named, order="listed" if view.order == View().order else view.order) if named else view

    @cached_property
    def choice(self) -> Choice:
        """What is chosen among the heads that are shown."""
        return choose(self.trace, self.arranged())

    @property
    def item(self) -> int:
        """The batch item that is looked at."""
        return self.choice.item

    @property
    def head(self) -> int:
        """The head that is looked at, where one can be."""
        return self.choice.head

    @property
    def sight(self) -> Sight | None:
        """What is in sight of maps that are too long to be whole, None of whole ones."""
        return self.trace.tokens.sight

    @cached_property
    def opened(self) -> tuple[Trace, Derivation]:
        """(Trace, Derivation) of the chosen number; of a long sequence the Trace holds one query and the keys around the chosen one."""
        trace, c = self.trace.plain, self.choice
        if self.sight is not None:
            from mha_viz.analysis.long_maps import open_in_sight

            return open_in_sight(trace, c.item, c.head, *place_of(self.trace, self.view, c))
        return trace, open_number(trace, c.item, c.head, c.query, c.key)


@dataclass(frozen=True)
class Measured(Generic[Found]):
    """What a figure of results is of: ``found``, Results of a Profile or a Quality, as ``name`` holds it.

    That is a file, or a task whose quality ships. Of a profile head counts stand beside each other at the length ``at_length``, the longest
    where None.
    """

    found: Found
    name: str
    at_length: int | None = None


def check_heads(heads: HeadNames | None, trace: Trace) -> None:
    """Raises Wrong where ``heads``, or None, name a head that a Trace does not have."""
    H = trace.shape[1]
    named = heads or ()
    beyond = [head for head in named if isinstance(head, int) and head >= H]
    if beyond:
        right = tuple(head for head in named if head not in beyond)
        rule = f"points to head {beyond[0]}, and there {'is 1, head 0' if H == 1 else f'are {H}, from 0 to {H - 1}'}."
        raise Wrong("heads", ",".join(map(str, named)), rule, [{"heads": ",".join(map(str, right))}] if right else [])


def in_words(heads: Sequence[int | None], count: int) -> str:
    """These of ``count`` heads, by number, and the average, None: "heads 5 and 2 and the average of all 8 heads"."""
    numbers = [head for head in heads if head is not None]
    if not numbers:
        return f"the average of all {count} heads"
    if len(numbers) == count > 1:
        return f"all {count} heads" + " and their average" * (None in heads)
    return listed_heads(numbers) + f" and the average of all {count} heads" * (None in heads and count > 1)


def listed_heads(numbers: Iterable[int]) -> str:
    *before, last = map(str, numbers)
    return f"heads {', '.join(before)} and {last}" if before else f"head {last}"
