"""One head beside the average."""

from mha_viz.figures.parts import ALL
from mha_viz.views.base import MAPS, PARTS, Naming, OfAttention


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

    def draw(self, shown, theme="light", width=1104, parts=ALL):
        from mha_viz.figures import heads

        return heads.spec(shown.trace, shown.arranged("pair"), theme, width, strip=False, parts=parts)

    def describe(self, shown):
        from mha_viz.figures import heads

        return heads.describe(shown.trace, shown.arranged("pair"), strip=False)

    def caption(self, shown):
        return f"Attention of head {shown.head} beside the average of all heads"

    def heads(self, shown):
        return [shown.head, *shown.average]


PAIR = Pair()
