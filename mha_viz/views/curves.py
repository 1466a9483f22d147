"""How a model was trained."""

from __future__ import annotations

from mha_viz.core.rules import Wrong
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec, plain
from mha_viz.figures.theme import ThemeName
from mha_viz.sources.base import Curves as Training
from mha_viz.views.base import NO_HEADS, OfAttention
from mha_viz.views.shown import Shown

HIGH = 0.32  # of the width


class Curves(OfAttention):
    """How the shipped model was trained: loss and accuracy over the steps."""

    name = "curves"
    public = False
    parts = ()
    reads = ()
    naming = NO_HEADS
    needs = ()
    whole = False
    of_layer = False

    def lack(self, shown: Shown) -> Wrong | None:
        return super().lack(shown) if shown.once(_trained) else self._untrained(shown)

    def _untrained(self, shown: Shown) -> Wrong:
        rule = f"is for a shipped model, and {shown.source.name} is none."
        return Wrong("view", self.name, rule, [{"view": self.instead}])

    def _trained(self, shown: Shown) -> Training:
        found = shown.once(_trained)
        if found is None:
            raise self._untrained(shown)
        return found

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import curves

        return plain(curves.curves(*self._trained(shown), theme, width, round(width * HIGH)))

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import curves

        return curves.describe(*self._trained(shown))

    def caption(self, shown: Shown) -> str:
        return "Training"


def _trained(shown: Shown) -> Training | None:
    """The steps, values by name and the step that is looked at, None where no training is on record."""
    found: Training | None = shown.source.kind.curves(shown.source.settings)
    return found


CURVES = Curves()
