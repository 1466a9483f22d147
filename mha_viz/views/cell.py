"""The chosen cell in every head."""

from __future__ import annotations

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec, plain
from mha_viz.figures.theme import ThemeName
from mha_viz.views.number import OfNumber
from mha_viz.views.shown import Shown


class Cell(OfNumber):
    """The chosen cell in every head, and on average."""

    name = "cell"
    parts = ("title", "labels", "legend", "values")

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures import number

        return plain(number.cell_in_heads(*shown.opened, theme, width, parts))

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import number

        return number.describe_cell_in_heads(*shown.opened)

    def caption(self, shown: Shown) -> str:
        return "One cell in every head"


CELL = Cell()
