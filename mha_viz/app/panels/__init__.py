"""What the sidebar and the head of a page say of a kind of source: a module in this folder for each that has a Panel of its own, which
names its ``kinds``. Any other kind has the plain Panel."""

from importlib import import_module
from pkgutil import iter_modules

from mha_viz.app.panels.panel import Panel

for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")
PANELS = {name: panel for panel in Panel.__subclasses__() for name in panel.kinds}


def panel_of(kind):
    """The Panel of a kind of source."""
    return PANELS.get(kind.name, Panel)(kind)
