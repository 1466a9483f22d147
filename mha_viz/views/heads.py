"""Every head large."""

from mha_viz.figures.parts import ALL
from mha_viz.views.base import ANY_HEADS, MAPS, PARTS, OfAttention
from mha_viz.views.shown import MEAN, in_words


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

    def draw(self, shown, theme="light", width=1104, parts=ALL):
        from mha_viz.figures import heads

        if shown.only_average:
            return heads.average(shown.trace, shown.view, theme, width, parts)
        return heads.spec(shown.trace, shown.arranged("all"), theme, width, average=shown.average_at, parts=parts)

    def describe(self, shown):
        from mha_viz.figures import heads

        if shown.only_average:
            return heads.describe_average(shown.trace, shown.view)
        return heads.describe(shown.trace, shown.arranged("all"))

    def caption(self, shown):
        return f"Attention of {in_words(self.heads(shown), shown.trace.plain.shape[1])}"

    def heads(self, shown):
        return super().heads(shown) if shown.heads is None else shown.named

    def computed(self, view, heads):
        average = heads is None or MEAN in heads
        return None if average else list(heads), average


HEADS = Heads()
