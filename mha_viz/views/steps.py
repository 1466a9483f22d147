"""One step on the way of a query through the layer."""

from __future__ import annotations

from mha_viz.analysis.walkthrough import Tensor, Walk, in_layout, walk
from mha_viz.core.rules import Wrong
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec, plain
from mha_viz.figures.theme import ThemeName
from mha_viz.settings.steps import STEPS as TOLD
from mha_viz.views.base import CHOSEN, ONE_HEAD, OfAttention
from mha_viz.views.shown import Shown


class Steps(OfAttention):
    """The tensors of one step on the way of one query, the ``step`` of its Walk."""

    name = "steps"
    public = False
    parts = ("title", "labels", "values")
    reads = (*CHOSEN, "weighting", "step", "together")
    naming = ONE_HEAD
    needs = ()
    whole = True

    def lack(self, shown: Shown) -> Wrong | None:
        walked, step = shown.once(_walked), shown.walk.step
        drawn = [name for name in walked.steps if walked.tensors[name]]
        if step in drawn:
            return super().lack(shown)
        return Wrong("step", step, f"has no picture here; those that have: {', '.join(drawn)}.")

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import steps

        return plain(steps.picture(_tensors(shown), theme, width, shown.walk.step == "project", parts))

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import steps

        return steps.describe(_tensors(shown))

    def caption(self, shown: Shown) -> str:
        where = "in all heads" if shown.walk.together else f"in head {shown.head}"
        return f"Step by step: {TOLD[shown.walk.step][1]}, query {shown.choice.query} {where}"


def _walked(shown: Shown) -> Walk:
    c = shown.choice
    return walk(shown.trace, c.item, None if shown.walk.together else c.head, c.query, c.key, c.head)


def _tensors(shown: Shown) -> list[Tensor]:
    """The tensors of the step, in the layout of the source."""
    return in_layout(shown.once(_walked).tensors[shown.walk.step], getattr(shown.source.settings, "batch_first", True))


STEPS = Steps()
