"""Streamlit components of our own."""

from mha_viz.components.live import live, measured_width

__all__ = ["live", "measured_width"]
