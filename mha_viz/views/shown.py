"""What views are of: the attention of a layer, or what was measured."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from mha_viz.analysis import choose
from mha_viz.analysis.choice import place_of
from mha_viz.analysis.number import open_number
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace
from mha_viz.settings import Caching, View, Walk
from mha_viz.sources.base import Source

MEAN = "mean"  # among the heads of a figure: their average


@dataclass(frozen=True, eq=False)
class Shown:
    """What a figure is of: a ``source``, the ``trace`` of the layer that is looked at, as the ``view`` shows it, and ``a``, the Trace
    that it is compared with, or None; of a picture of Step by step or Decode also the ``walk`` or the ``caching``.

    ``heads`` are those that a figure names in its own order, "mean" among them for the average; None leaves them to the View.
    ``a_is`` says what A is, as a sentence, where the View does not pin it.
    """

    source: Source
    trace: Trace
    view: View
    heads: tuple | None = None
    a: Trace | None = None
    a_is: str = ""
    walk: Walk = field(default_factory=Walk)
    caching: Caching = field(default_factory=Caching)
    _made: dict = field(default_factory=dict, init=False, repr=False)

    def once(self, make):
        """``make`` of this Shown, made when it is first asked for: a picture and its words are of the same numbers."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @property
    def average(self):
        """[None] where there is an average of the heads to draw, [] where not."""
        return [None] if self.trace.has("mean_weights") else []

    @property
    def average_at(self):
        """The place of the average among the heads: -1 last, None where it was left out."""
        if self.heads is None:
            return -1
        return self.heads.index(MEAN) if MEAN in self.heads else None

    @property
    def only_average(self):
        return self.heads == (MEAN,)

    @property
    def named(self):
        """The numbers of the heads that are named, in the order in which they are drawn, with None where the average stands."""
        order = [] if self.only_average else list(self.choice.order)
        at = self.average_at
        return order if at is None else [*order[:at], *self.average, *order[at:]]

    def arranged(self, arrangement=None):
        """The View with the named heads alone, in the order in which they are named unless it sorts them; in an ``arrangement``, its own
        where None."""
        named = tuple(head for head in self.heads or () if head != MEAN)
        view = replace(self.view, arrangement=arrangement or self.view.arrangement)
        return replace(view, heads=named, order="listed" if view.order == View().order else view.order) if named else view

    @cached_property
    def choice(self):
        """What is chosen among the heads that are shown."""
        return choose(self.trace, self.arranged())

    @property
    def item(self):
        return self.choice.item

    @property
    def head(self):
        """The head that is looked at, where one can be."""
        return self.choice.head

    @property
    def sight(self):
        """What is in sight of maps that are too long to be whole, None of whole ones."""
        return self.trace.tokens.sight

    @cached_property
    def opened(self):
        """(Trace, Derivation) of the chosen number; of a long sequence the Trace holds one query and the keys around the chosen one."""
        trace, c = self.trace.plain, self.choice
        if self.sight is not None:
            from mha_viz.analysis.long_maps import open_in_sight

            return open_in_sight(trace, c.item, c.head, *place_of(self.trace, self.view, c))
        return trace, open_number(trace, c.item, c.head, c.query, c.key)


@dataclass(frozen=True)
class Measured:
    """``found``, Results of a Profile or a Quality, as ``name`` holds it: a file, or a task whose quality ships. Of a profile head counts
    stand beside each other at the length ``at_length``, the longest where None."""

    found: object
    name: str
    at_length: int | None = None


def check_heads(heads, trace):
    """Raises Wrong where ``heads``, or None, name a head that a Trace does not have."""
    H = trace.shape[1]
    beyond = [head for head in heads or () if head != MEAN and head >= H]
    if beyond:
        right = tuple(head for head in heads if head == MEAN or head < H)
        rule = f"points to head {beyond[0]}, and there {'is 1, head 0' if H == 1 else f'are {H}, from 0 to {H - 1}'}."
        raise Wrong("heads", ",".join(map(str, heads)), rule, [{"heads": ",".join(map(str, right))}] if right else [])


def in_words(heads, count):
    """These of ``count`` heads, by number, and the average, None: "heads 5 and 2 and the average of all 8 heads"."""
    numbers = [head for head in heads if head is not None]
    if not numbers:
        return f"the average of all {count} heads"
    if len(numbers) == count > 1:
        return f"all {count} heads" + " and their average" * (None in heads)
    return listed_heads(numbers) + f" and the average of all {count} heads" * (None in heads and count > 1)


def listed_heads(numbers):
    *before, last = map(str, numbers)
    return f"heads {', '.join(before)} and {last}" if before else f"head {last}"
