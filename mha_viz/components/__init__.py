"""Streamlit components of our own."""

from mha_viz.components.links import hold_links
from mha_viz.components.live import live, measured_width
from mha_viz.components.saver import saver
from mha_viz.components.stepper import stepper
from mha_viz.components.theme import turn
from mha_viz.components.width import room

__all__ = ["hold_links", "live", "measured_width", "room", "saver", "stepper", "turn"]
