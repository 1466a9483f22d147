"""The chosen cell in every head."""

from mha_viz.figures.parts import ALL
from mha_viz.views.number import OfNumber


class Cell(OfNumber):
    """The chosen cell in every head, and on average."""

    name = "cell"
    parts = ("title", "labels", "legend", "values")

    def draw(self, shown, theme="light", width=1104, parts=ALL):
        from mha_viz.figures import number

        return number.cell_in_heads(*shown.opened, theme, width, parts).to_plotly_json()

    def describe(self, shown):
        from mha_viz.figures import number

        return number.describe_cell_in_heads(*shown.opened)

    def caption(self, shown):
        return "One cell in every head"


CELL = Cell()
