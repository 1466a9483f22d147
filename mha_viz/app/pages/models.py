"""Explore under its former address for models: a shipped model, where the address names no source."""

from mha_viz.app.heads import page

page("models")
