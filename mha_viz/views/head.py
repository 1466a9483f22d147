"""One head alone."""

from mha_viz.figures.parts import ALL
from mha_viz.views.base import MAPS, NARROW, ONE_HEAD, PARTS, OfAttention


class Head(OfAttention):
    """One head alone."""

    name = "head"
    public = True
    parts = PARTS
    reads = MAPS
    naming = ONE_HEAD
    needs = ()
    whole = False
    maps = True
    alone = True
    width = NARROW

    def draw(self, shown, theme="light", width=640, parts=ALL):
        from mha_viz.figures import heads

        return heads.spec(shown.trace, shown.arranged("one"), theme, width, parts=parts)

    def describe(self, shown):
        from mha_viz.figures import heads

        return heads.describe(shown.trace, shown.arranged("one"))

    def caption(self, shown):
        return f"Attention of head {shown.head}"

    def heads(self, shown):
        return [shown.head]


HEAD = Head()
