"""What the page shows."""

from __future__ import annotations

from typing import Any

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.views.base import ANY_HEADS, MAPS, PARTS, OfAttention, ViewKind, view_of_results
from mha_viz.views.difference import DIFFERENCE
from mha_viz.views.heads import HEADS
from mha_viz.views.lines import LINES
from mha_viz.views.shown import Measured, Shown, in_words


class Page(OfAttention):
    """What the page shows: maps or lines, or A, B and B − A, arranged as its View says."""

    name = "page"
    public = True
    parts = PARTS
    reads = (*MAPS, "arrangement", "picture")
    naming = ANY_HEADS
    needs = ()
    whole = False
    maps = True
    takes_a = True

    def drawn_as(self, what: Shown | Measured[Any]) -> ViewKind[Any]:
        if isinstance(what, Measured):
            return view_of_results(what.found)
        return self if what.a is None else DIFFERENCE

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import heads, lines

        view = shown.arranged()
        if _named(shown):
            return (LINES if view.picture == "lines" else HEADS).draw(shown, theme, width, parts)
        if view.picture == "lines":
            return lines.spec(shown.trace, view, theme, width, parts=parts)
        return heads.spec(shown.trace, view, theme, width, _strip(shown), parts=parts)

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import drawn_lines, heads

        view = shown.arranged()
        if _named(shown):
            return (LINES if view.picture == "lines" else HEADS).describe(shown)
        if view.picture == "lines":
            return drawn_lines.describe_lines(shown.trace, view)
        return heads.describe(shown.trace, view, _strip(shown))

    def caption(self, shown: Shown) -> str:
        return f"Attention of {in_words(self.heads(shown), shown.trace.plain.shape[1])}"

    def heads(self, shown: Shown) -> list[int | None]:
        view = shown.arranged()
        if _named(shown):
            return shown.named
        if view.arrangement == "one":
            return [shown.head]
        if view.picture == "lines" and view.arrangement == "pair":
            return [shown.head, *shown.average]
        return super().heads(shown)


def _named(shown: Shown) -> bool:
    """Whether those heads that are named are drawn, all alike."""
    return shown.only_average or (shown.heads is not None and shown.view.arrangement == "all")


def _strip(shown: Shown) -> bool:
    """Whether a strip shows all heads: of several layers another picture does."""
    return len(shown.source.traces) == 1 or shown.sight is not None


PAGE = Page()
