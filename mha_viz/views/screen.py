"""The app's page itself."""

from __future__ import annotations

from typing import Any

from mha_viz.views.base import ViewKind
from mha_viz.views.page import Page
from mha_viz.views.shown import Measured, Shown


class Screen(Page):
    """The page of an address as the app shows it, in a browser's window."""

    name = "screen"
    public = False
    pictured = True

    def drawn_as(self, what: Shown | Measured[Any]) -> ViewKind[Any]:
        return self if isinstance(what, Measured) else super().drawn_as(what)


SCREEN = Screen()
