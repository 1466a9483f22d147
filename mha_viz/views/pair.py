"""One head beside the average."""

from __future__ import annotations

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.views.base import MAPS, PARTS, Naming, OfAttention
from mha_viz.views.shown import Shown


class Pair(OfAttention):
    """One head beside the average."""

    name = "pair"
    public = True
    parts = PARTS
    reads = MAPS
    naming = Naming(1, 1)
    needs = ()
    whole = False
    maps = True

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import heads

        return heads.spec(shown.trace, shown.arranged("pair"), theme, width, strip=False, parts=parts)

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import heads

        return heads.describe(shown.trace, shown.arranged("pair"), strip=False)

    def caption(self, shown: Shown) -> str:
        return f"Attention of head {shown.head} beside the average of all heads"

    def heads(self, shown: Shown) -> list[int | None]:
        return [shown.head, *shown.average]


PAIR = Pair()
