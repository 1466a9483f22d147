"""The row of the chosen number, through the softmax."""

from __future__ import annotations

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec, plain
from mha_viz.figures.theme import ThemeName
from mha_viz.views.number import OfNumber
from mha_viz.views.shown import Shown


class Softmax(OfNumber):
    """The row of the chosen cell through the softmax: scores, exponentials, weights."""

    name = "softmax"
    parts = ("title", "labels", "values")
    alone = True

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import number

        return plain(number.softmax(*shown.opened, theme, width, parts))

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import number

        return number.describe_softmax(*shown.opened)

    def caption(self, shown: Shown) -> str:
        return "One row through the softmax"


SOFTMAX = Softmax()
