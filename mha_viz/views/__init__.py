"""The ways to look at something: a module for each view, listed here in the order in which they are told."""

from typing import Any

from mha_viz.views.average import AVERAGE
from mha_viz.views.base import VIEWS, OfAttention, OfResults
from mha_viz.views.cell import CELL
from mha_viz.views.curves import CURVES
from mha_viz.views.decode import DECODE
from mha_viz.views.difference import DIFFERENCE
from mha_viz.views.head import HEAD
from mha_viz.views.heads import HEADS
from mha_viz.views.layers import LAYERS
from mha_viz.views.lines import LINES
from mha_viz.views.page import PAGE
from mha_viz.views.pair import PAIR
from mha_viz.views.profile import PROFILE
from mha_viz.views.quality import QUALITY
from mha_viz.views.screen import SCREEN
from mha_viz.views.softmax import SOFTMAX
from mha_viz.views.steps import STEPS
from mha_viz.views.terms import TERMS
from mha_viz.views.window import WINDOW

__all__ = ["PAGE", "VIEWS"]
LISTED: tuple[OfAttention | OfResults[Any], ...] = (
    PAGE,
    HEADS,
    HEAD,
    AVERAGE,
    PAIR,
    LINES,
    DIFFERENCE,
    LAYERS,
    TERMS,
    SOFTMAX,
    CELL,
    STEPS,
    DECODE,
    CURVES,
    WINDOW,
    PROFILE,
    QUALITY,
    SCREEN,
)
VIEWS |= {view.name: view for view in LISTED}
