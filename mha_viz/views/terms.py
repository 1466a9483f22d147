"""The chosen number, term by term."""

from __future__ import annotations

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec, plain
from mha_viz.figures.theme import ThemeName
from mha_viz.views.number import OfNumber
from mha_viz.views.shown import Shown


class Terms(OfNumber):
    """q · k of the chosen cell, term by term."""

    name = "terms"
    parts = ("title", "labels", "values")
    needs = ("q", "k")
    instead = "softmax"
    alone = True

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import number

        return plain(number.terms(*shown.opened, theme, width, parts))

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import number

        return number.describe_terms(*shown.opened)

    def caption(self, shown: Shown) -> str:
        return "q · k term by term"


TERMS = Terms()
