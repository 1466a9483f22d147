"""The chosen number, term by term."""

from mha_viz.figures.parts import ALL
from mha_viz.views.number import OfNumber


class Terms(OfNumber):
    """q · k of the chosen cell, term by term."""

    name = "terms"
    parts = ("title", "labels", "values")
    needs = ("q", "k")
    instead = "softmax"
    alone = True

    def draw(self, shown, theme="light", width=1104, parts=ALL):
        from mha_viz.figures import number

        return number.terms(*shown.opened, theme, width, parts).to_plotly_json()

    def describe(self, shown):
        from mha_viz.figures import number

        return number.describe_terms(*shown.opened)

    def caption(self, shown):
        return "q · k term by term"


TERMS = Terms()
