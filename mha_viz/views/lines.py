"""Heads as lines between tokens."""

from __future__ import annotations

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.settings import View
from mha_viz.views.base import ANY_HEADS, MAPS, OfAttention
from mha_viz.views.shown import Shown, in_words


class Lines(OfAttention):
    """Heads as lines between tokens: those that were asked for, or one beside the average."""

    name = "lines"
    public = True
    parts = ("title", "labels", "bar", "legend")
    reads = (*MAPS, "arrangement")
    naming = ANY_HEADS
    needs = ()
    whole = False
    maps = True

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import lines

        if shown.only_average:
            return lines.average(shown.trace, shown.view, theme, width, parts)
        return lines.spec(shown.trace, _arranged(shown), theme, width, average=shown.average_at, parts=parts)

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import drawn_lines

        if shown.only_average:
            return drawn_lines.describe_average(shown.trace, shown.view)
        return drawn_lines.describe_lines(shown.trace, _arranged(shown), shown.average_at)

    def caption(self, shown: Shown) -> str:
        return f"Attention of {in_words(self.heads(shown), shown.trace.plain.shape[1])} as lines from queries to keys"

    def heads(self, shown: Shown) -> list[int | None]:
        if shown.heads is not None:
            return shown.named
        if shown.view.arrangement == "all":
            return super().heads(shown)
        return [shown.head, *([] if shown.view.arrangement == "one" else shown.average)]


def _arranged(shown: Shown) -> View:
    return shown.view if shown.heads is None else shown.arranged("all")


LINES = Lines()
