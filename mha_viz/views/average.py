"""The average of all heads alone."""

from __future__ import annotations

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.views.base import MAPS, NARROW, PARTS, Naming, OfAttention
from mha_viz.views.shown import Shown


class Average(OfAttention):
    """The average of all heads alone."""

    name = "average"
    public = True
    parts = PARTS
    reads = tuple(name for name in MAPS if name not in ("order", "head"))  # which only say where its mark is at first
    naming = Naming(most=0)
    needs = ()
    whole = False
    maps = True
    width = NARROW

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 640, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import heads

        return heads.average(shown.trace, shown.view, theme, width, parts)

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import heads

        return heads.describe_average(shown.trace, shown.view)

    def caption(self, shown: Shown) -> str:
        return "Attention, the average of all heads"

    def heads(self, shown: Shown) -> list[int | None]:
        return shown.average


AVERAGE = Average()
