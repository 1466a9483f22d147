"""What a view is, and VIEWS, the registry of those that there are.

A new view is one module: an instance of a subclass of ``OfAttention`` or ``OfResults``, which ``mha_viz.views`` lists. A subclass that
leaves one of the pieces out cannot be made an instance. The page, ``export --view``, captions and the list in the README know the view
from then on; one that is public has a function of its name in ``mha_viz.export.notebook`` as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.settings import View
from mha_viz.views.shown import Found, HeadNames, Measured, Shown

PARTS = tuple(part.name for part in fields(Parts))  # what stands around the maps or lines of a picture
WIDE, NARROW = 1104.0, 640.0  # px: maps beside each other, and one alone
CHOSEN = ("item", "order", "head", "cell")  # fields of View that decide which head and which cell are looked at
What = TypeVar("What", contravariant=True)  # what a kind of view is of
COLORS = ("scale", "limits", "colors")
MAPS = (*CHOSEN, "weighting", *COLORS, "pooling", "rows", "columns")  # those that say something of maps


@dataclass(frozen=True)
class Naming:
    """Which heads can be named for a picture: as many as ``least`` to ``most``, None for any number, and whether the ``average`` can."""

    least: int = 0
    most: int | None = None
    average: bool = True


NO_HEADS, ONE_HEAD, ANY_HEADS = Naming(most=0, average=False), Naming(1, 1, average=False), Naming()


class Dress(TypedDict, total=False):
    """How a picture is dressed, as in ``draw``."""

    theme: ThemeName
    width: int
    parts: Parts


class ViewKind(ABC, Generic[What]):
    """One way to look at something: a picture, and all that others have to know of it. Its docstring says what it shows.

    ``width`` is how wide the picture is where nobody says, in px; ``maps`` says that its cells are weights, as a table and a program can
    hold them, ``pictured`` that its file is a picture of the page itself, as a browser shows it.
    """

    width = WIDE
    maps = False
    pictured = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What ``--view`` and a notebook call it."""

    @property
    @abstractmethod
    def public(self) -> bool:
        """Whether ``mha_viz`` has a function of this name, for notebooks."""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """Which of PARTS the picture has, and so can leave out."""

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The fields of a Display that say something of the picture."""

    @property
    @abstractmethod
    def naming(self) -> Naming:
        """The Naming of heads for the picture."""

    @abstractmethod
    def draw(self, what: What, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        """The picture of a Shown or a Measured, exactly ``width`` px wide with these ``parts``, as the plain dict that Plotly takes."""

    @abstractmethod
    def describe(self, what: What) -> str:
        """What ``draw`` shows, in words: its text alternative."""

    @abstractmethod
    def caption(self, what: What) -> str:
        """What is seen: the beginning of a caption."""

    @abstractmethod
    def title(self, what: What) -> str:
        """What a page that holds the picture is called."""

    def drawn_as(self, what: Shown | Measured[Any]) -> ViewKind[Any]:
        """The view that is drawn in place of this one."""
        return self

    def drawn(self, what: Shown | Measured[Any], **dress: Unpack[Dress]) -> tuple[Spec, str]:
        """(the picture of this view, or of the one in its place, and what that shows in words); ``dress`` is as in ``draw``."""
        view = self.drawn_as(what)
        return view.draw(what, **dress), view.describe(what)

    def lack(self, what: What) -> Wrong | None:
        """A Wrong that says what is not there for this view, and which to take in its place; None where nothing is missing."""
        return None


class OfAttention(ViewKind[Shown]):
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
    instead: str = "page"

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The fields of a Trace without which there is no picture."""

    @property
    @abstractmethod
    def whole(self) -> bool:
        """Whether the picture needs whole maps, and so cannot be of a long sequence."""

    def title(self, shown: Shown) -> str:
        return shown.source.name

    def lack(self, shown: Shown) -> Wrong | None:
        if shown.trace.plain.has(*self.needs):
            return None
        rule = f"needs {' and '.join(self.needs)}, and the source knows the weights alone."
        return Wrong("view", self.name, rule, [{"view": self.instead}])

    def heads(self, shown: Shown) -> list[int | None]:
        """The numbers of the heads that are drawn, in their order, with None where the average stands."""
        return [*shown.choice.order, *shown.average]

    def placed(self, trace: Trace, view: View) -> View:
        """The View with what it leaves open about which part of a long Trace is in sight."""
        return view

    def of_long(self, trace: Trace, view: View, heads: HeadNames | None, numbers: bool = False) -> Trace:
        """The Trace of a long one that holds what this view shows of it, computed now; ``heads`` are those that are named, or None, and
        ``numbers`` says that a table is made and no picture. Raises Wrong where there is no such view of it."""
        from mha_viz.analysis.long_maps import in_sight

        if self.whole:
            there = [view.name for view in VIEWS.values() if isinstance(view, OfAttention) and not view.whole]
            rule = f"would need the whole maps of {trace.shape[2]:,} tokens. Of these there are {', '.join(there)}."
            raise Wrong("view", self.name, rule, [{"view": "heads"}])
        return in_sight(trace, view, *self.computed(view, heads))

    def computed(self, view: View, heads: HeadNames | None) -> tuple[list[int] | None, bool]:
        """(the numbers of the heads that have to be computed of a long Trace, None for all; whether the average has to be)."""
        if not self.alone:
            return None, True
        named = [head for head in heads or () if isinstance(head, int)]
        return named or (None if view.head is None else [view.head]), False


class OfResults(ViewKind[Measured[Found]], Generic[Found]):
    """A view of what was measured, a Measured.

    It reads no Display, and nothing of it can be left out.
    """

    public = False
    parts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    naming = NO_HEADS

    def title(self, measured: Measured[Found]) -> str:
        return f"{self.name} of attention by head count"

    @abstractmethod
    def holds(self, found: object) -> bool:
        """Whether this is what was measured."""

    @abstractmethod
    def trust(self, measured: Measured[Found]) -> str:
        """What measured it, and where: the end of a caption."""

    @abstractmethod
    def rows(self, measured: Measured[Found]) -> Iterator[list[object]]:
        """Its numbers as the rows of a table, of which the first has the names."""


NOT_MEASURED = (
    "is of what was measured: name it with results, a file of `profile --json` or `quality`, or a task whose quality ships."
)
VIEWS: dict[str, OfAttention | OfResults[Any]] = {}  # by name: ``mha_viz.views`` lists them


def view_of_attention(name: str) -> OfAttention:
    """The view of attention of this ``name``. Raises Wrong for one of what was measured."""
    view = VIEWS[name]
    if isinstance(view, OfResults):
        raise Wrong("view", name, NOT_MEASURED)
    return view


def view_of_results(found: Found) -> OfResults[Found]:
    """The view of what was measured."""
    return next(view for view in VIEWS.values() if isinstance(view, OfResults) and view.holds(found))


def what_it_shows(view: ViewKind[Any]) -> str:
    """The first sentence of what a view says of itself."""
    return (view.__doc__ or "").strip().partition("\n\n")[0]
