"""Every head of every layer."""

from __future__ import annotations

from dataclasses import replace

from mha_viz.core.trace import Trace
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.theme import ThemeName
from mha_viz.settings import View
from mha_viz.views.base import CHOSEN, COLORS, NO_HEADS, OfAttention
from mha_viz.views.shown import HeadNames, Shown


class Layers(OfAttention):
    """Every head of every layer."""

    name = "layers"
    public = True
    parts = ("title", "labels", "bar", "legend")
    reads = (*CHOSEN, *COLORS)
    naming = NO_HEADS
    needs = ()
    whole = False
    statistics = True

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import overview

        return overview.spec(shown.once(_traces), shown.view, shown.view.layer, theme, width, parts)

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import overview

        return overview.describe(shown.once(_traces), shown.view, shown.view.layer)

    def caption(self, shown: Shown) -> str:
        return "Attention of every head of every layer"

    def of_long(self, trace: Trace, view: View, heads: HeadNames | None, numbers: bool = False) -> Trace:
        from mha_viz.analysis.long_maps import finished, in_sight, in_small
        from mha_viz.analysis.streamed import ANY

        if numbers:  # statistics are read from all rows
            return in_sight(trace, replace(view, order=ANY, rows=None, columns=None))
        return finished(in_small(trace, view)).seen("max")


def _traces(shown: Shown) -> list[Trace]:
    """The Traces of all layers, of a long one those of its size in small."""
    traces = list(shown.source.traces)
    if shown.sight is None:
        return traces
    from mha_viz.analysis.long_maps import finished, in_small

    size = shown.trace.plain.shape[1:]  # layers of another are not drawn
    return [finished(in_small(one, shown.view)).seen("max") if one.shape[1:] == size else one for one in traces]


LAYERS = Layers()
