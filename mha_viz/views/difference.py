"""A, B, and what changed."""

from __future__ import annotations

from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.views.base import MAPS, PARTS, Naming, OfAttention
from mha_viz.views.shown import Shown, listed_heads


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

    def lack(self, shown: Shown) -> Wrong | None:
        return super().lack(shown) if shown.a is not None else self._without_a()

    def _without_a(self) -> Wrong:
        rule = 'needs something to compare with: give against="?seed=8" (an address, or a file), or an address that pins something.'
        return Wrong("view", self.name, rule)

    def _a(self, shown: Shown) -> Trace:
        if shown.a is None:
            raise self._without_a()
        return shown.a

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures.compare import difference_spec

        return difference_spec(self._a(shown), shown.trace, shown.arranged(), theme, width, parts=parts)

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures.compare import describe_difference

        return describe_difference(self._a(shown), shown.trace, shown.arranged())

    def caption(self, shown: Shown) -> str:
        order = shown.choice.order
        of = f", in {listed_heads(order)}" if len(order) < shown.trace.plain.shape[1] else ""
        return f"Attention of A and of B, and what changed from A to B{of}"


DIFFERENCE = Difference()
