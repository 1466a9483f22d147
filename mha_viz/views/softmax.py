"""The row of the chosen number, through the softmax."""

from mha_viz.figures.parts import ALL
from mha_viz.views.number import OfNumber


class Softmax(OfNumber):
    """The row of the chosen cell through the softmax: scores, exponentials, weights."""

    name = "softmax"
    parts = ("title", "labels", "values")
    alone = True

    def draw(self, shown, theme="light", width=1104, parts=ALL):
        from mha_viz.figures import number

        return number.softmax(*shown.opened, theme, width, parts).to_plotly_json()

    def describe(self, shown):
        from mha_viz.figures import number

        return number.describe_softmax(*shown.opened)

    def caption(self, shown):
        return "One row through the softmax"


SOFTMAX = Softmax()
