"""Explore: every head of one layer beside the average of them all, whatever source it comes from."""

from mha_viz.app.heads import page

page("explore")
