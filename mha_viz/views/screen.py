"""The app's page itself."""

from mha_viz.views.page import Page
from mha_viz.views.shown import Measured


class Screen(Page):
    """The page of an address as the app shows it, in a browser's window."""

    name = "screen"
    public = False
    pictured = True

    def drawn_as(self, what):
        return self if isinstance(what, Measured) else super().drawn_as(what)


SCREEN = Screen()
