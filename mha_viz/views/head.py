"""One head alone."""

from __future__ import annotations

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.views.base import MAPS, NARROW, ONE_HEAD, PARTS, OfAttention
from mha_viz.views.shown import Shown


class Head(OfAttention):
    """One head alone."""

    name = "head"
    public = True
    parts = PARTS
    reads: tuple[str, ...] = MAPS
    naming = ONE_HEAD
    needs = ()
    whole = False
    maps = True
    alone = True
    width = NARROW

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 640, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import heads

        return heads.spec(shown.trace, shown.arranged("one"), theme, width, parts=parts)

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import heads

        return heads.describe(shown.trace, shown.arranged("one"))

    def caption(self, shown: Shown) -> str:
        return f"Attention of head {shown.head}"

    def heads(self, shown: Shown) -> list[int | None]:
        return [shown.head]


HEAD = Head()
