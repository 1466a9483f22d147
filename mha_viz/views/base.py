"""What a view is, and VIEWS, the registry of those that there are.

A new view is one module: an instance of a subclass of ``OfAttention`` or ``OfResults``, which ``mha_viz.views`` lists. A subclass that
leaves one of the pieces out cannot be made an instance. The page, ``export --view``, captions, the functions of a notebook and the list
in the README know the view from then on.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

from mha_viz.core.rules import Wrong
from mha_viz.figures.parts import ALL, Parts
from mha_viz.views.shown import MEAN

PARTS = tuple(part.name for part in fields(Parts))  # what stands around the maps or lines of a picture
WIDE, NARROW = 1104.0, 640.0  # px: maps beside each other, and one alone
CHOSEN = ("item", "order", "head", "cell")  # fields of View that decide which head and which cell are looked at
COLORS = ("scale", "limits", "colors")
MAPS = (*CHOSEN, "weighting", *COLORS, "pooling", "rows", "columns")  # those that say something of maps


@dataclass(frozen=True)
class Naming:
    """Which heads can be named for a picture: as many as ``least`` to ``most``, None for any number, and whether the ``average`` can."""

    least: int = 0
    most: int | None = None
    average: bool = True


NO_HEADS, ONE_HEAD, ANY_HEADS = Naming(most=0, average=False), Naming(1, 1, average=False), Naming()


class ViewKind(ABC):
    """One way to look at something: a picture, and all that others have to know of it. Its docstring says what it shows.

    ``width`` is how wide the picture is where nobody says, in px; ``maps`` says that its cells are weights, as a table and a program can
    hold them, ``pictured`` that its file is a picture of the page itself, as a browser shows it.
    """

    width = WIDE
    maps = False
    pictured = False

    @property
    @abstractmethod
    def name(self):
        """What ``--view`` and a notebook call it."""

    @property
    @abstractmethod
    def public(self):
        """Whether ``mha_viz`` has a function of this name, for notebooks."""

    @property
    @abstractmethod
    def parts(self):
        """Which of PARTS the picture has, and so can leave out."""

    @property
    @abstractmethod
    def reads(self):
        """The fields of a Display that say something of the picture."""

    @property
    @abstractmethod
    def naming(self):
        """The Naming of heads for the picture."""

    @abstractmethod
    def draw(self, what, theme="light", width=1104, parts=ALL):
        """The picture of a Shown or a Measured, exactly ``width`` px wide with these ``parts``, as the plain dict that Plotly takes."""

    @abstractmethod
    def describe(self, what):
        """What ``draw`` shows, in words: its text alternative."""

    @abstractmethod
    def caption(self, what):
        """What is seen: the beginning of a caption."""

    @abstractmethod
    def title(self, what):
        """What a page that holds the picture is called."""

    def drawn_as(self, what):
        """The view that is drawn in place of this one."""
        return self

    def drawn(self, what, **dress):
        """(the picture of this view, or of the one in its place, and what that shows in words); ``dress`` is as in ``draw``."""
        view = self.drawn_as(what)
        return view.draw(what, **dress), view.describe(what)

    def lack(self, what):
        """A Wrong that says what is not there for this view, and which to take in its place; None where nothing is missing."""
        return None


class OfAttention(ViewKind):
    """A view of the attention of a layer, a Shown.

    ``of_layer`` says that it is of one layer of several; ``takes_a`` that it can compare that with A, ``two`` that it always does;
    ``statistics`` that its numbers are statistics of heads and no weights; ``alone`` that it needs no head but the chosen one.
    ``instead`` is the view to take where the Trace lacks what this one ``needs``.
    """

    of_layer = True
    takes_a = False
    statistics = False
    two = False
    alone = False
    instead = "page"

    @property
    @abstractmethod
    def needs(self):
        """The fields of a Trace without which there is no picture."""

    @property
    @abstractmethod
    def whole(self):
        """Whether the picture needs whole maps, and so cannot be of a long sequence."""

    def title(self, shown):
        return shown.source.name

    def lack(self, shown):
        if shown.trace.plain.has(*self.needs):
            return None
        rule = f"needs {' and '.join(self.needs)}, and the source knows the weights alone."
        return Wrong("view", self.name, rule, [{"view": self.instead}])

    def heads(self, shown):
        """The numbers of the heads that are drawn, in their order, with None where the average stands."""
        return [*shown.choice.order, *shown.average]

    def placed(self, trace, view):
        """The View with what it leaves open about which part of a long Trace is in sight."""
        return view

    def of_long(self, trace, view, heads, numbers=False):
        """The Trace of a long one that holds what this view shows of it, computed now; ``heads`` are those that are named, or None, and
        ``numbers`` says that a table is made and no picture. Raises Wrong where there is no such view of it."""
        from mha_viz.analysis.long_maps import in_sight

        if self.whole:
            there = [view.name for view in VIEWS.values() if isinstance(view, OfAttention) and not view.whole]
            rule = f"would need the whole maps of {trace.shape[2]:,} tokens. Of these there are {', '.join(there)}."
            raise Wrong("view", self.name, rule, [{"view": "heads"}])
        return in_sight(trace, view, *self.computed(view, heads))

    def computed(self, view, heads):
        """(the numbers of the heads that have to be computed of a long Trace, None for all; whether the average has to be)."""
        if not self.alone:
            return None, True
        named = [head for head in heads or () if head != MEAN]
        return named or (None if view.head is None else [view.head]), False


class OfResults(ViewKind):
    """A view of what was measured, a Measured: it reads no Display, and nothing of it can be left out. ``at_lengths`` says that one of
    several lengths can be chosen."""

    at_lengths = False
    public = False
    parts = ()
    reads = ()
    naming = NO_HEADS

    def title(self, measured):
        return f"{self.name} of attention by head count"

    @abstractmethod
    def holds(self, found):
        """Whether this is what was measured."""

    @abstractmethod
    def trust(self, measured):
        """What measured it, and where: the end of a caption."""

    @abstractmethod
    def rows(self, measured):
        """Its numbers as the rows of a table, of which the first has the names."""


VIEWS: dict[str, ViewKind] = {}  # by name: ``mha_viz.views`` lists them


def view_of_results(found):
    """The view of what was measured."""
    return next(view for view in VIEWS.values() if isinstance(view, OfResults) and view.holds(found))


def what_it_shows(view):
    """The first sentence of what a view says of itself."""
    return view.__doc__.strip().partition("\n\n")[0]
