"""Numbers about heads, computed from a Trace."""

from mha_viz.analysis.choice import Choice, choose
from mha_viz.analysis.difference import difference_from_average

__all__ = ["Choice", "choose", "difference_from_average"]
