"""What the sidebar and the head of a page say of one kind of source: as it is for every kind, and for some with more."""

from html import escape

import streamlit as st

from mha_viz.app.fields import plain_field
from mha_viz.app.parts.shapes import trace_strip
from mha_viz.app.session import looking
from mha_viz.app.warm import kept
from mha_viz.core.memory import too_long
from mha_viz.core.rules import Wrong


class Panel:
    """How the ``kind`` of a source is set and told. What is here does for any; a subclass for those named in ``kinds`` says more."""

    kinds = ()
    own_what_if = False  # whether its settings hold what is changed in the layers, and the sidebar draws that

    def __init__(self, kind):
        self.kind = kind

    def begin(self):
        """What comes before the sidebar is drawn."""

    def sidebar(self):
        """The widgets of its settings."""
        form = looking().form
        for name in form.raw:
            if name not in self.kind.fixed:
                plain_field(form, name)

    def layer_alone(self):
        """The widgets of what experiments take of it, which bring masks of their own."""
        self.sidebar()

    def open(self, settings):
        """The Source of these settings, shared by the sessions that ask for the same. Raises Wrong where it cannot be had."""
        return kept((self.kind.name, settings), lambda: self.kind.open(settings), self.kind.peak(settings))

    def with_room(self, wrong):
        """``wrong``, with advice for which there is room as well."""
        return wrong

    def is_long(self):
        """Whether maps of what is looked at are too long to be whole."""
        try:
            of = self.open(looking().form.settings())
        except Wrong:
            of = self.open(looking().form.good)
        index = looking().view.layer
        return too_long(of.traces[index if index < len(of.traces) else 0])

    def ask(self):
        """What has to be known before the source can be opened."""

    def nothing(self):
        """What is said where there is no layer to look at."""
        return "There is no layer to look at. Say on the left what to look at."

    def title(self, settings):
        """What a layer of these settings is called."""
        return self.kind.called(settings)

    def told(self, looked):
        """Which layer it is, and of what kind, as HTML."""
        return f"<p class='mode'>{escape(self.title(looked.settings))} · {escape(looked.trace.name)}</p>"

    def above(self, looked):
        """What is to be known before one looks at the heads: a line or two, or they leave the first screen."""

    def below(self, looked):
        """What else is to be known of the source and the layer, drawn below its heads."""
        st.html(trace_strip(looked.trace))

    def left_out(self, of):
        """What is not shown of a source on pages that look at it as it was trained, as sentences."""
        return []

    def beside_wrong(self, wrong):
        """Controls beside the changes that are offered for what is wrong."""

    def below_wrong(self, wrong):
        """What else is said of what is wrong."""

    def inputs(self, looked):
        """Traces of the layer on more inputs than are shown, to find a head's strongest examples in."""
        return [looked.trace]

    def go_to(self, looked, example):
        """Show the input of an example; returns the fields of the View that lead there besides its item."""
        return {}

    def pressed(self, cells):
        """Cells, (query, key) each, were pressed on a map. Returns whether the whole page has to be drawn."""
        return False
