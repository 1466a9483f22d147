"""What the sidebar and the head of a page say of one kind of source, by its name; any other kind has the plain Panel."""

from mha_viz.app.panels.file import FilePanel
from mha_viz.app.panels.panel import Panel
from mha_viz.app.panels.pretrained import PretrainedPanel
from mha_viz.app.panels.random import RandomPanel
from mha_viz.app.panels.shipped import ShippedPanel

PANELS = {"random": RandomPanel, "tiny": RandomPanel, "trained": ShippedPanel, "pretrained": PretrainedPanel, "file": FilePanel}


def panel_of(kind):
    """The Panel of a kind of source."""
    return PANELS.get(kind.name, Panel)(kind)
