"""The average of all heads alone."""

from mha_viz.figures.parts import ALL
from mha_viz.views.base import MAPS, NARROW, PARTS, Naming, OfAttention


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

    def draw(self, shown, theme="light", width=640, parts=ALL):
        from mha_viz.figures import heads

        return heads.average(shown.trace, shown.view, theme, width, parts)

    def describe(self, shown):
        from mha_viz.figures import heads

        return heads.describe_average(shown.trace, shown.view)

    def caption(self, shown):
        return "Attention, the average of all heads"

    def heads(self, shown):
        return shown.average


AVERAGE = Average()
