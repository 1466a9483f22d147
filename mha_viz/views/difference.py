"""A, B, and what changed."""

from mha_viz.core.rules import Wrong
from mha_viz.figures.parts import ALL
from mha_viz.views.base import MAPS, PARTS, Naming, OfAttention
from mha_viz.views.shown import listed_heads


class Difference(OfAttention):
    """A, B and B − A."""

    name = "difference"
    public = True
    parts = PARTS
    reads = MAPS
    naming = Naming(average=False)
    needs = ()
    whole = False
    maps = True
    takes_a = True
    two = True

    def lack(self, shown):
        if shown.a is None:
            rule = 'needs something to compare with: give against="?seed=8" (an address, or a file), or an address that pins something.'
            return Wrong("view", self.name, rule)
        return super().lack(shown)

    def draw(self, shown, theme="light", width=1104, parts=ALL):
        from mha_viz.figures.compare import difference_spec

        return difference_spec(shown.a, shown.trace, shown.arranged(), theme, width, parts=parts)

    def describe(self, shown):
        from mha_viz.figures.compare import describe_difference

        return describe_difference(shown.a, shown.trace, shown.arranged())

    def caption(self, shown):
        order = shown.choice.order
        of = f", in {listed_heads(order)}" if len(order) < shown.trace.plain.shape[1] else ""
        return f"Attention of A and of B, and what changed from A to B{of}"


DIFFERENCE = Difference()
