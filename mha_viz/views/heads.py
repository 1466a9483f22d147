"""Every head large."""

from __future__ import annotations

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.settings import View
from mha_viz.views.base import ANY_HEADS, MAPS, PARTS, OfAttention
from mha_viz.views.shown import MEAN, HeadNames, Shown, in_words


class Heads(OfAttention):
    """The heads, all alike, and their average, last unless it is named elsewhere."""

    name = "heads"
    public = True
    parts = PARTS
    reads = MAPS
    naming = ANY_HEADS
    needs = ()
    whole = False
    maps = True

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import heads

        if shown.only_average:
            return heads.average(shown.trace, shown.view, theme, width, parts)
        return heads.spec(shown.trace, shown.arranged("all"), theme, width, average=shown.average_at, parts=parts)

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import heads

        if shown.only_average:
            return heads.describe_average(shown.trace, shown.view)
        return heads.describe(shown.trace, shown.arranged("all"))

    def caption(self, shown: Shown) -> str:
        return f"Attention of {in_words(self.heads(shown), shown.trace.plain.shape[1])}"

    def heads(self, shown: Shown) -> list[int | None]:
        return super().heads(shown) if shown.heads is None else shown.named

    def computed(self, view: View, heads: HeadNames | None) -> tuple[list[int] | None, bool]:
        if heads is None or MEAN in heads:
            return None, True
        return [head for head in heads if isinstance(head, int)], False


HEADS = Heads()
