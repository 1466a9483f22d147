"""How a model was trained."""

from mha_viz.core.rules import Wrong
from mha_viz.figures.parts import ALL
from mha_viz.views.base import NO_HEADS, OfAttention

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

    def lack(self, shown):
        if shown.once(_trained) is None:
            rule = f"is for a shipped model, and {shown.source.name} is none."
            return Wrong("view", self.name, rule, [{"view": self.instead}])
        return super().lack(shown)

    def draw(self, shown, theme="light", width=1104, parts=ALL):
        from mha_viz.figures import curves

        return curves.curves(*shown.once(_trained), theme, width, round(width * HIGH)).to_plotly_json()

    def describe(self, shown):
        from mha_viz.figures import curves

        return curves.describe(*shown.once(_trained))

    def caption(self, shown):
        return "Training"


def _trained(shown):
    """The steps, values by name and the step that is looked at, None where no training is on record."""
    return shown.source.kind.curves(shown.source.settings)


CURVES = Curves()
